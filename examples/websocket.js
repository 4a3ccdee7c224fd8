// Limits the messages of web sockets: by connection and by user. Run it: node examples/websocket.js, then, for
// instance: npx wscat -c 'ws://127.0.0.1:3000/?user=ada'
'use strict';

const http = require('node:http');
const RateLimiter = require('rollgate');
const { WebSocketServer } = require('ws');

const POLICY_VIOLATION = 1008; // RFC 6455, section 7.4.1
const REFUSALS_BEFORE_CLOSE = 5;

// Bursts are short, and one user may have several connections.
const ofConnection = { interval: 1000, maxInInterval: 5 };
const messagesOf = RateLimiter({ interval: 10_000, maxInInterval: 30, countBlocked: false });

const server = http.createServer((_req, res) => res.end('Connect with a web socket.\n'));
const sockets = new WebSocketServer({ server, maxPayload: 1024 });

sockets.on('connection', (socket, req) => {
  // A limiter for one connection costs little, and is freed with it.
  const messages = RateLimiter({ ...ofConnection, countBlocked: false });
  const user = userOf(req);
  let refusals = 0;

  socket.on('error', () => socket.terminate());
  socket.on('message', (data) => {
    const timeLeft = messages() || messagesOf(user);
    if (timeLeft === 0) {
      refusals = 0;
      socket.send(JSON.stringify({ echo: data.toString() }));
    } else if (++refusals < REFUSALS_BEFORE_CLOSE) {
      socket.send(JSON.stringify({ error: 'too many messages', retryAfterMs: timeLeft }));
    } else {
      // After so many refusals, close the connection: replies cost time as well.
      socket.close(POLICY_VIOLATION, 'too many messages');
    }
  });
});

/** Instead of a session: a real application takes the user from a verified cookie or token. */
function userOf(req) {
  const user = new URLSearchParams(req.url.split('?')[1]).get('user');
  return user === null ? RateLimiter.ipKeyGenerator(req.socket.remoteAddress) : `user:${user}`;
}

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
