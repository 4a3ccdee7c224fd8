// The middleware compared, and requests made by hand for them: real ones of node:http, without a connection.

const http = require('node:http');
const { Duplex } = require('node:stream');
const express = require('express');

const SUBJECTS = ['none', 'rollgate', 'expressRateLimit'];
/** A refused request goes the way of the others, so that only the middleware is compared. */
const LIMITS = { windowMs: 900_000, limit: 1000, handler: (_req, _res, next) => next() };

function createMiddleware(subject, headers) {
  const options = { ...LIMITS, ...headers };
  if (subject === 'rollgate') return require('../../lib').rateLimit(options);
  if (subject === 'expressRateLimit') return require('express-rate-limit').rateLimit(options);
  return (_req, _res, next) => next();
}

/** A function that gives the next { req, res }, as they are when Express calls a middleware. */
function createRequests(clients) {
  const app = express();
  const sockets = Array.from({ length: clients }, (_, i) => socketOf(i));
  let next = 0;
  return () => {
    const req = new http.IncomingMessage(sockets[next++ % clients]);
    req.method = 'GET';
    req.url = '/';
    req.headers.host = '127.0.0.1';
    const res = new http.ServerResponse(req);
    req.res = res;
    res.req = req;
    Object.setPrototypeOf(req, app.request);
    Object.setPrototypeOf(res, app.response);
    return { req, res };
  };
}

function socketOf(i) {
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  socket.remoteAddress = `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
  return socket;
}

module.exports = { SUBJECTS, createMiddleware, createRequests };
