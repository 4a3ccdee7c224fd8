// The middleware compared, and requests made by hand for them: real ones of node:http, without a connection.

const http = require('node:http');
const { Duplex } = require('node:stream');
const express = require('express');

const SUBJECTS = ['none', 'headersAlone', 'rollgate', 'expressRateLimit'];
/** A refused request goes the way of the others, so that only the middleware is compared. */
const LIMITS = { windowMs: 900_000, limit: 100, handler: (_req, _res, next) => next() };

/** The same headers with texts that stand: the least that any middleware with them adds. */
const HEADERS_ALONE = {
  legacy: {
    'X-RateLimit-Limit': '100',
    'X-RateLimit-Remaining': '99',
    Date: new Date().toUTCString(),
    'X-RateLimit-Reset': '1700000000',
  },
  'draft-6': {
    'RateLimit-Policy': '100;w=900',
    'RateLimit-Limit': '100',
    'RateLimit-Remaining': '99',
    'RateLimit-Reset': '900',
  },
  'draft-7': {
    'RateLimit-Policy': '100;w=900',
    RateLimit: 'limit=100, remaining=99, reset=900',
  },
  'draft-8': {
    'RateLimit-Policy': '"100-in-15min"; q=100; w=900; pk=:MTJjYTE3YjQ5YWYy:',
    RateLimit: '"100-in-15min"; r=99; t=900',
  },
};

function createMiddleware(subject, headers) {
  if (subject === 'headersAlone') return headersAlone(headers);
  const options = { ...LIMITS, ...headers };
  if (subject === 'rollgate') return require('../../lib').rateLimit(options);
  if (subject === 'expressRateLimit') return require('express-rate-limit').rateLimit(options);
  return (_req, _res, next) => next();
}

function headersAlone({ standardHeaders }) {
  const headers = Object.entries(HEADERS_ALONE[standardHeaders || 'legacy']);
  return (_req, res, next) => {
    for (const [name, value] of headers) res.setHeader(name, value);
    next();
  };
}

/**
 * A function that gives the next { req, res }, with what either middleware asks of Express. It has no objects
 * of Express, whose changed prototypes make every property and header dearer, for both alike.
 */
function createRequests(clients) {
  const app = express();
  const addresses = Array.from({ length: clients }, (_, i) => {
    return `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
  });
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  let next = 0;
  return () => {
    const req = new http.IncomingMessage(socket);
    req.method = 'GET';
    req.url = '/';
    req.headers.host = '127.0.0.1';
    req.app = app;
    req.ip = addresses[next++ % clients];
    return { req, res: new http.ServerResponse(req) };
  };
}

module.exports = { SUBJECTS, createMiddleware, createRequests };
