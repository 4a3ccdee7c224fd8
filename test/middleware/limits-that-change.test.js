// Middleware over a limiter whose limits change, and whose ids are blocked.
'use strict';

const express = require('express');
const expressRateLimit = require('express-rate-limit').rateLimit;
const request = require('supertest');
const RateLimiter = require('../..');
const rollgate = require('../../lib/adapters/fastify');
const { RollgateStore } = require('../../lib/adapters/express-rate-limit-store');
const { useFastify } = require('./apps');

const { rateLimit } = RateLimiter;
const MINUTE = { interval: 60_000, maxInInterval: 2 };
const newLimiter = () => RateLimiter({ ...MINUTE, countBlocked: false, clock: () => 0 });
const limits = (maxInInterval) => [{ interval: 60_000, maxInInterval }];

function appWith(middleware) {
  const app = express();
  app.use(middleware);
  app.use((req, res) => res.json(req.rateLimit));
  return app;
}

describe.each([
  ['draft-6', (max) => ({ 'ratelimit-policy': `${max};w=60`, 'ratelimit-limit': String(max) })],
  ['draft-7', (max) => ({ 'ratelimit-policy': `${max};w=60` })],
  [
    'draft-8',
    (max) => ({ 'ratelimit-policy': expect.stringContaining(`"${max}-in-1min"; q=${max}; w=60`) }),
  ],
  [
    'draft-10',
    (max) => ({ 'ratelimit-policy': expect.stringContaining(`"${max}-in-1min";q=${max};w=60`) }),
  ],
])('headers of %s', (standardHeaders, headersOf) => {
  // Kills: headers that are remembered from the request before.
  test('show the limits of each request', async () => {
    const limiter = newLimiter();
    const app = appWith(rateLimit({ limiter, standardHeaders }));
    for (const max of [2, 5, 1, 5]) {
      limiter.setLimits(limits(max));
      const { headers } = await request(app).get('/');
      expect(headers).toMatchObject(headersOf(max));
      expect(headers['x-ratelimit-limit']).toBe(String(max));
    }
  });
});

test('req.rateLimit, the answers and getKey follow the limits', async () => {
  const limiter = newLimiter();
  const middleware = rateLimit({ limiter, keyGenerator: () => 'a' });
  const app = appWith(middleware);
  const get = async () => {
    const { status, body } = await request(app).get('/');
    return [status, body.limit, body.remaining];
  };
  expect([await get(), await get()]).toEqual([
    [200, 2, 1],
    [200, 2, 0],
  ]);
  expect((await request(app).get('/')).status).toBe(429);
  limiter.setLimits(limits(4));
  expect([await get(), await get()]).toEqual([
    [200, 4, 1],
    [200, 4, 0],
  ]);
  expect(await middleware.getKey('a')).toMatchObject({ totalHits: 4 });
});

test('a cost that fits no more is a refusal, and fits again after the next change', async () => {
  const limiter = newLimiter();
  const app = appWith(rateLimit({ limiter, cost: 2 }));
  const statusOf = async () => (await request(app).get('/')).status;
  limiter.setLimits(limits(1));
  expect(await statusOf()).toBe(429);
  limiter.setLimits(limits(3));
  expect(await statusOf()).toBe(200);
});

test('a blocked client is refused until then', async () => {
  const limiter = newLimiter();
  const app = appWith(rateLimit({ limiter, keyGenerator: () => 'a' }));
  await limiter.block('a', 90_000);
  const { status, headers } = await request(app).get('/');
  expect([status, headers['retry-after']]).toEqual([429, '90']);
  await limiter.block('a', 0);
  expect((await request(app).get('/')).status).toBe(200);
});

test('a store of express-rate-limit over the limiter follows, too', async () => {
  const limiter = newLimiter();
  const store = new RollgateStore({ limiter });
  const app = appWith(expressRateLimit({ windowMs: 60_000, limit: () => 100, store }));
  const hits = async () => (await request(app).get('/')).status;
  expect([await hits(), await hits(), await hits()]).toEqual([200, 200, 200]);
  limiter.setLimits(limits(200));
  await limiter.attempt('x');
  expect((await store.increment('x')).totalHits).toBe(2);
});

describe('Fastify', () => {
  const { newApp, serve } = useFastify();

  test('follows the limits of the limiter', async () => {
    const limiter = newLimiter();
    const app = newApp();
    app.register(rollgate, { limiter, standardHeaders: 'draft-6' });
    app.get('/', (req) => ({ limit: req.rateLimit.limit }));
    const at = await serve(app);
    for (const max of [2, 7]) {
      limiter.setLimits(limits(max));
      const response = await fetch(at);
      expect(response.headers.get('ratelimit-policy')).toBe(`${max};w=60`);
      expect(await response.json()).toEqual({ limit: max });
    }
  });
});
