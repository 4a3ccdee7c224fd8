// Limits connections of Socket.IO by address, and events by user. Run it: node examples/frameworks/socket-io.js
'use strict';

const http = require('node:http');
const { ipKeyGenerator, RateLimiter } = require('rollgate');
const { Server } = require('socket.io');

const connections = RateLimiter({ interval: 60_000, maxInInterval: 10, countBlocked: false });
const events = RateLimiter({ interval: 10_000, maxInInterval: 5, countBlocked: false });

const server = http.createServer();
const io = new Server(server);

io.use(({ handshake }, next) => next(refusal(connections(ipKeyGenerator(handshake.address)))));

io.on('connection', (socket) => {
  socket.use((_event, next) => next(refusal(events(userOf(socket)))));
  socket.on('error', (error) => socket.emit('refused', error?.data));
  // A client may send anything: without a callback for the answer, `reply` is no function.
  socket.on('echo', (text, reply) => typeof reply === 'function' && reply(text));
});

/** The client gets `data`. */
function refusal(timeLeft) {
  if (timeLeft === 0) return undefined;
  return Object.assign(new Error('too many requests'), { data: { retryAfterMs: timeLeft } });
}

/** In place of a session: a real application takes the user from a verified cookie or token. */
function userOf({ handshake }) {
  const { user } = handshake.auth;
  return typeof user === 'string' ? `user ${user}` : ipKeyGenerator(handshake.address);
}

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
