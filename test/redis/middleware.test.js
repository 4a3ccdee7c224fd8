// rateLimit over Redis: the same headers and refusals, shared by those of one namespace.
'use strict';

const express = require('express');
const request = require('supertest');
const { rateLimit } = require('../..');
const { REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');

const { using, closeAll } = openings();
afterEach(closeAll);
let server;

beforeAll(async () => {
  server = await startRedis();
});

function appWith(options) {
  const app = express();
  const limit = rateLimit({ windowMs: 60_000, limit: 2, standardHeaders: true, ...options });
  app.use(limit);
  app.get('/', (_req, res) => res.send('welcome'));
  app.use((error, _req, res, _next) => res.status(500).send(error.code));
  return { app, limit };
}

const open = () => using(REDIS_CLIENTS.ioredis.open(server.url));

test('two servers count together', async () => {
  const redis = open();
  const [one, two] = [1, 2].map(() => appWith({ redis, namespace: 'web' }));
  const answers = [];
  for (const { app } of [one, two, one, two]) answers.push(await request(app).get('/'));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
  expect(answers[1].headers['ratelimit-remaining']).toBe('0');
  expect(Number(answers[2].headers['retry-after'])).toBeGreaterThan(0);
  const key = '127.0.0.1';
  expect(await two.limit.getKey(key)).toMatchObject({ totalHits: 2 });
  await two.limit.resetKey(key);
  expect(await one.limit.getKey(key)).toBe(undefined);
});

test('a failure reaches the error handlers, or is softened', async () => {
  const redis = { ...open(), commandTimeout: 200 };
  const strict = appWith({ redis, namespace: 'strict' });
  const open503 = appWith({ redis, namespace: 'lenient', onError: 'allow' });
  const closed = appWith({ redis, namespace: 'closed', onError: 'block' });
  for (const { app } of [strict, open503, closed]) {
    expect((await request(app).get('/')).status).toBe(200);
  }
  await server.freeze();
  const answers = [];
  for (const { app } of [strict, open503, closed]) answers.push(await request(app).get('/'));
  server.thaw();
  expect(answers.map(({ status }) => status)).toEqual([500, 200, 429]);
  expect(answers[0].text).toMatch(/^ERR_ROLLGATE_REDIS_TIMEOUT$/);
  expect(answers[2].headers['retry-after']).toBe('1');
});
