// Keeps a server busy over many sockets: node http-client.js PORT SOCKETS. Told a number of requests, it makes them,
// one at a time on each socket, and answers how many were not answered with 200.
'use strict';

const { once } = require('node:events');
const net = require('node:net');

const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

let begun = 0;
let requests = 0;
let refused = 0;

async function callerOn(socket) {
  while (begun < requests) {
    begun++;
    socket.write(REQUEST);
    const [answer] = await once(socket, 'data'); // without a body, so it comes at once
    if (!answer.startsWith('HTTP/1.1 200')) refused++;
  }
}

async function main(port, count) {
  const sockets = Array.from({ length: count }, () => net.connect(port, '127.0.0.1'));
  for (const socket of sockets) socket.setEncoding('latin1').setNoDelay();
  process.on('message', async (number) => {
    [begun, requests, refused] = [0, number, 0];
    await Promise.all(sockets.map(callerOn));
    process.send(refused);
  });
  process.on('disconnect', () => process.exit(0));
}

main(...process.argv.slice(2).map(Number));
