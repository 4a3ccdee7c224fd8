// Limits new web sockets by address, before the handshake. Run it: node examples/frameworks/ws-upgrade.js, then, for
// instance: npx wscat -c ws://127.0.0.1:3000/
'use strict';

const http = require('node:http');
const { ipKeyGenerator, RateLimiter } = require('rollgate');
const { WebSocketServer } = require('ws');

const upgrades = RateLimiter({ interval: 60_000, maxInInterval: 10, countBlocked: false });

const server = http.createServer((_req, res) => res.end('Connect with a web socket.\n'));
const sockets = new WebSocketServer({ noServer: true, maxPayload: 1024 });

server.on('upgrade', (req, socket, head) => {
  const timeLeft = upgrades(ipKeyGenerator(req.socket.remoteAddress));
  if (timeLeft > 0) return refuse(socket, Math.ceil(timeLeft / 1000));
  sockets.handleUpgrade(req, socket, head, (client) => sockets.emit('connection', client, req));
});

function refuse(socket, wait) {
  for (const event of ['error', 'finish']) socket.on(event, () => socket.destroy());
  socket.end(`HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nRetry-After: ${wait}\r\n\r\n`);
}

sockets.on('connection', (client) => {
  client.on('error', () => client.terminate());
  client.on('message', (data) => client.send(data.toString()));
});

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
