// The server behind `npm start`: a limited route, and a page that explains the limiters and sends requests to it.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const express = require('express');
const { rateLimit } = require('../..'); // in your application: require('rollgate')

const HOST = process.env.HOST ?? '127.0.0.1';
const PORT = readNumber('PORT', '3000', { min: 0, max: 65_535 });
const PORTS_TO_TRY = 50;
// Other limits to play with: INTERVAL_MS=3000 MAX=2 npm start
const windowMs = readNumber('INTERVAL_MS', '10000', { min: 1, max: 86_400_000 });
const limit = readNumber('MAX', '5', { min: 0, max: 1_000_000 });

/** Written by `npm run page`. It learns here that it has a server, and its limit. */
const page = fs
  .readFileSync(path.join(__dirname, '../../docs/playground.html'), 'utf8')
  .replace('<body>', `<body data-server-limit="${limit}" data-server-window-ms="${windowMs}">`);

const app = express();
app.disable('x-powered-by');
app.get('/api/action', rateLimit({ windowMs, limit, standardHeaders: true }), (_req, res) => {
  res.send('allowed\n');
});
app.get('/', (_req, res) => res.type('html').send(page));

listen(PORT);

function readNumber(name, byDefault, { min, max }) {
  const text = process.env[name] ?? byDefault;
  const number = Number(text);
  if (text !== '' && Number.isInteger(number) && number >= min && number <= max) return number;
  console.error(`${name} must be a number from ${min} to ${max}, not "${text}".`);
  process.exit(1);
}

/** Listens on the port, or on the next one that is free. */
function listen(port) {
  const server = app.listen(port, HOST, (error) => {
    if (error === undefined) {
      greet(server);
      stopOnSignal(server);
    } else if (error.code === 'EADDRINUSE' && port < PORT + PORTS_TO_TRY && port < 65_535) {
      console.log(`Port ${port} is taken, trying ${port + 1}.`);
      listen(port + 1);
    } else {
      console.error(`Cannot listen on ${HOST}:${port}: ${error.message}`);
      process.exitCode = 1;
    }
  });
}

function greet(server) {
  const host = HOST.includes(':') ? `[${HOST}]` : HOST;
  const url = `http://${host}:${server.address().port}`;
  console.log(`
rollgate lets ${limit} requests pass in any ${windowMs / 1000} seconds.

  See the algorithms   ${url}/
  Try it in a shell    curl -i ${url}/api/action

Ctrl+C stops the server.
`);
}

/** Limiters do not keep the process alive: it ends once the server is closed. */
function stopOnSignal(server) {
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}
