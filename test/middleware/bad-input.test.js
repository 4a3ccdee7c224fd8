// What comes from the network or from the user's own functions: no crash, no shared bucket, one next(err).
'use strict';

const net = require('node:net');
const { once } = require('node:events');
const express = require('express');
const request = require('supertest');
const { rateLimit } = require('../..');
const { useHandMovedClock, appWith, get } = require('./apps');

const time = useHandMovedClock();
const boom = () => {
  throw Object.assign(new Error('boom'), { code: 'BOOM' });
};
const FAILING = [
  ['throws', boom],
  ['rejects', async () => boom()],
];

describe.each(FAILING)('a function that %s reaches next(err) once', (_what, fails) => {
  test.each([
    ['skip', { skip: fails }],
    ['keyGenerator', { keyGenerator: fails }],
    ['identifier in draft 8', { identifier: fails, standardHeaders: 'draft-8' }],
    ['identifier in draft 10', { identifier: fails, standardHeaders: 'draft-10' }],
    ['identifier in problem details', { identifier: fails, problemDetails: true, limit: 0 }],
    ['handler', { handler: fails, limit: 0 }],
    ['message', { message: fails, limit: 0 }],
    ['message in problem details', { message: fails, problemDetails: true, limit: 0 }],
  ])('%s', async (_where, options) => {
    const passed = jest.fn();
    const app = express();
    app.use((req, res, next) => {
      rateLimit({ validate: false, ...options })(req, res, (...args) => {
        passed(...args);
        next(...args);
      });
    });
    app.use((error, _req, res, _next) => res.status(500).send(error.code));
    const { status, text } = await get(app);
    expect([status, text]).toEqual([500, 'BOOM']);
    expect(passed).toHaveBeenCalledTimes(1);
  });

  test('ipv6Subnet', async () => {
    const passed = jest.fn();
    const middleware = rateLimit({ ipv6Subnet: fails });
    await middleware({ ip: '2001:db8::1' }, { headersSent: true }, passed);
    expect(passed.mock.calls).toEqual([[expect.objectContaining({ code: 'BOOM' })]]);
  });
});

describe('headers of a request', () => {
  const key = (req) => req.headers['x-key'];

  test.each([
    ['upper and lower case', ['Key', 'key', 'KEY']],
    ['percent-encoding', ['%61', 'a', '%2561']],
    ['names of Object.prototype', ['__proto__', 'constructor', 'toString', 'hasOwnProperty']],
    ['Latin-1 beyond ASCII', ['\u00e9', 'e', '\u00c3\u00a9']],
    ['white space within', ['a b', 'a  b', 'ab']],
    ['addresses written otherwise', ['192.0.2.1', '192.0.2.01', '::ffff:192.0.2.1']],
    ['long ones', ['k'.repeat(8000), `${'k'.repeat(7999)}l`, 'k'.repeat(7999)]],
  ])('as keys do not share a bucket: %s', async (_what, values) => {
    for (const standardHeaders of ['draft-8', 'draft-10']) {
      const app = appWith(
        rateLimit({ limit: 1, standardHeaders, keyGenerator: key, clock: time.clock }),
      );
      for (const value of values) expect((await get(app).set('X-Key', value)).status).toBe(200);
      for (const value of values) expect((await get(app).set('X-Key', value)).status).toBe(429);
    }
  });

  test('a list where a text was expected is an error of that request, not a shared count', async () => {
    const app = appWith(rateLimit({ limit: 1, keyGenerator: (req) => req.query.key }));
    app.set('query parser', 'extended');
    for (const query of ['key[]=a&key[]=b', 'key[a]=b']) {
      const { status, body } = await get(app, `/?${query}`);
      expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_ID']);
    }
    expect((await get(app, '/?key=a')).status).toBe(200);
  });
});

/** The answer to bytes that no HTTP client would send. */
async function send(app, bytes) {
  const server = app.listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const socket = net.connect(server.address().port, '127.0.0.1');
    socket.write(bytes);
    let answer = '';
    socket.setEncoding('latin1');
    socket.on('error', () => {});
    for await (const chunk of socket) answer += chunk;
    return answer.split('\r\n')[0];
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test.each(['/', '//', '/../..', '/%2e%2e/%00', '/A?b=%', '/%E0%A4%A', `/${'a'.repeat(8000)}`])(
  'a path such as %s counts for its client like any other',
  async (path) => {
    const middleware = rateLimit({ limit: 1, standardHeaders: 'draft-10', clock: time.clock });
    const app = appWith(middleware);
    await send(app, `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect((await middleware.getKey('127.0.0.1')).totalHits).toBe(1);
    expect((await get(app)).status).toBe(429);
  },
);

test('headers of a megabyte are refused by Node itself, and the server lives on', async () => {
  const app = appWith(rateLimit({ clock: time.clock }));
  const long = 'x'.repeat(2 ** 20);
  const first = await send(app, `GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${long}\r\n\r\n`);
  expect(first === '' || first.includes('431')).toBe(true);
  expect((await request(app).get('/')).status).toBe(200);
});

test('an X-Forwarded-For made of anything is counted, and told', async () => {
  const logger = { warn: jest.fn(), error: jest.fn() };
  const app = express();
  app.set('trust proxy', 1);
  app.use(rateLimit({ limit: 1, logger, clock: time.clock, standardHeaders: 'draft-8' }));
  app.get('/', (_req, res) => res.end());
  const values = ['unknown', '"[2001:db8::1]:80"', 'fe80::1%eth0', '__proto__', ',,,', '%00'];
  for (const value of values) {
    const answer = await get(app).set('X-Forwarded-For', value);
    expect(answer.status).toBe(200);
  }
  expect(logger.warn).toHaveBeenCalledTimes(1);
  expect(logger.error).not.toHaveBeenCalled();
});
