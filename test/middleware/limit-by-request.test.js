// limit (or max) as a function: one count for each key, judged by the limit of each request.
'use strict';

const express = require('express');
const { Redis } = require('ioredis');
const request = require('supertest');
const { rateLimit: expressRateLimit } = require('express-rate-limit');
const { rateLimit } = require('../..');
const { startRedis } = require('../support/redis-server');
const { randomFrom } = require('../support/traces');
const { appWith, get } = require('./apps');

const byHeader = (req) => Number(req.headers['x-limit']);

function appOf(options) {
  const app = express();
  app.use(rateLimit({ standardHeaders: 'draft-7', ...options }));
  app.use((req, res) => res.json(req.rateLimit));
  app.use((error, _req, res, _next) => {
    res.status(500).json({ code: error.code, name: error.name, message: error.message });
  });
  return (limit, path = '/') => request(app).get(path).set('x-limit', String(limit));
}

test.each([
  ['limit', byHeader],
  ['max', async (req) => byHeader(req)],
])('%s: each request has the limit that it asks for, of one count', async (name, limitOf) => {
  const ask = appOf({ [name]: limitOf, countBlocked: false });
  expect((await ask(2)).body).toMatchObject({ limit: 2, used: 1, remaining: 1 });
  expect((await ask(5)).body).toMatchObject({ limit: 5, used: 2, remaining: 3 });
  const refused = await ask(2);
  expect(refused.status).toBe(429);
  expect(refused.headers).toMatchObject({
    'x-ratelimit-limit': '2',
    'x-ratelimit-remaining': '0',
    'ratelimit-policy': '2;w=60',
    ratelimit: expect.stringMatching(/^limit=2, remaining=0, reset=\d+$/),
  });
  expect((await ask(3)).body).toMatchObject({ limit: 3, used: 3, remaining: 0 });
  expect((await ask(1)).status).toBe(429);
});

test.each(['sliding-window-log', 'sliding-window-counter', 'fixed-window'])(
  'by %s, counted refusals and blocks as well',
  async (algorithm) => {
    const ask = appOf({ limit: byHeader, algorithm });
    expect((await ask(1)).status).toBe(200);
    expect((await ask(1)).status).toBe(429);
    expect((await ask(10)).status).toBe(200);
    const askBlocked = appOf({ limit: byHeader, algorithm, blockFor: 50_000 });
    expect((await askBlocked(1)).status).toBe(200);
    expect((await askBlocked(1)).status).toBe(429);
    expect((await askBlocked(10)).status).toBe(429);
  },
);

test('the same requests pass as with express-rate-limit, refused ones counted', async () => {
  const random = randomFrom(3);
  const limits = Array.from({ length: 120 }, () => random.between(1, 60));
  const statuses = await Promise.all(
    [rateLimit, expressRateLimit].map(async (make) => {
      const app = appWith(make({ limit: byHeader, keyGenerator: () => 'k', windowMs: 3_600_000 }));
      const own = [];
      for (const limit of limits) {
        own.push((await request(app).get('/').set('x-limit', String(limit))).status);
      }
      return own;
    }),
  );
  expect(statuses[0]).toEqual(statuses[1]);
  expect(new Set(statuses[0]).size).toBe(2);
});

test('0 refuses everything, and another request is not hurt by it', async () => {
  for (const countBlocked of [true, false]) {
    const ask = appOf({ limit: byHeader, countBlocked });
    const refused = await ask(0);
    expect([refused.status, refused.headers['x-ratelimit-limit']]).toEqual([429, '0']);
    expect((await ask(1)).status).toBe(200);
    expect((await ask(0)).status).toBe(429);
  }
});

test('what no count reaches is no limit', async () => {
  const ask = appOf({ limit: byHeader });
  for (const limit of [1e300, Number.MAX_SAFE_INTEGER, 2 ** 32, 1]) {
    expect((await ask(limit)).status).toBe(limit === 1 ? 429 : 200);
  }
});

test('in rules, too, where one zone has one count', async () => {
  const zone = { zone: 'z', limit: byHeader, countBlocked: false };
  const ask = appOf({
    rules: [
      { path: '/a', ...zone },
      { path: '/b', ...zone },
    ],
  });
  expect((await ask(2, '/a')).status).toBe(200);
  expect((await ask(1, '/b')).status).toBe(429);
  expect((await ask(2, '/b')).status).toBe(200);
  expect((await ask(2, '/a')).status).toBe(429);
});

test('with blockEverywhere the list of lengths is followed, and a block tells the limit of its request', async () => {
  const hand = { now: 1000 };
  const lengths = [1000, 5000];
  const ask = appOf({
    clock: () => hand.now,
    rules: [
      { path: '/a', limit: byHeader, windowMs: 1e6, blockFor: lengths, blockEverywhere: true },
      { path: '/b', limit: byHeader },
    ],
  });
  await ask(1, '/a');
  for (const length of [...lengths, 5000]) {
    expect((await ask(1, '/a')).status).toBe(429);
    hand.now += length - 1;
    const { status, headers } = await ask(100, '/b');
    expect([status, headers['x-ratelimit-limit']]).toEqual([429, '100']);
    hand.now += 1;
    expect((await ask(100, '/b')).status).toBe(200);
  }
});

test('skipFailedRequests takes back what was counted', async () => {
  const requestWasSuccessful = (req) => !req.url.endsWith('bad');
  const ask = appOf({ limit: byHeader, skipFailedRequests: true, requestWasSuccessful });
  expect((await ask(1, '/bad')).status).toBe(200);
  expect((await ask(1)).body).toMatchObject({ used: 1 });
});

test('getKey and resetKey know the whole count, whatever the last limit was', async () => {
  const middleware = rateLimit({ limit: byHeader, countBlocked: false });
  const ask = (limit) => {
    const req = { ip: '192.0.2.1', headers: { 'x-limit': limit } };
    middleware(req, { headersSent: true, end() {} }, () => {});
  };
  expect(await middleware.getKey('192.0.2.1')).toBe(undefined);
  for (const limit of [3, 3, 3, 1]) ask(limit);
  expect(await middleware.getKey('192.0.2.1')).toMatchObject({ totalHits: 3 });
  await middleware.resetKey('192.0.2.1');
  expect(await middleware.getKey('192.0.2.1')).toBe(undefined);
});

test('the key comes first, then the limit', async () => {
  const steps = [];
  const options = {
    keyGenerator: async () => steps.push('key') && 'k',
    limit: async () => steps.push('limit'),
  };
  await get(appWith(rateLimit(options)));
  expect(steps).toEqual(['key', 'limit']);
});

test.each([
  ['a text', () => '5', 'TypeError'],
  ['nothing', () => undefined, 'TypeError'],
  ['a fraction', () => 1.5, 'RangeError'],
  ['less than 0', () => -1, 'RangeError'],
  ['no number, later', async () => Number.NaN, 'RangeError'],
])('a function that gives %s is an error for next', async (_what, limit, name) => {
  for (const options of [
    { limit },
    { limit, passOnStoreError: true },
    { rules: [{ path: '/', limit }] },
  ]) {
    const { status, body } = await appOf(options)(1);
    expect(status).toBe(500);
    expect(body).toMatchObject({ code: 'ERR_ROLLGATE_LIMIT', name });
  }
});

test.each([
  [
    'throws',
    () => {
      throw new Error('no plan');
    },
  ],
  ['rejects', () => Promise.reject(new Error('no plan'))],
])('a function that %s: its error reaches next, once', async (_what, limit) => {
  for (const options of [
    { limit },
    { limit, passOnStoreError: true },
    { rules: [{ path: '/', limit }] },
  ]) {
    const next = jest.fn();
    await rateLimit(options)({ method: 'GET', url: '/', ip: '192.0.2.1', headers: {} }, {}, next);
    expect(next.mock.calls).toEqual([[expect.objectContaining({ message: 'no plan' })]]);
  }
});

test('rules of one zone must have the same function', () => {
  const rules = (one, other) => [
    { path: '/a', zone: 'z', limit: one },
    { path: '/b', zone: 'z', limit: other },
  ];
  expect(rateLimit({ rules: rules(byHeader, byHeader) })).toHaveLength(3);
  for (const other of [(req) => byHeader(req), 5, 1]) {
    expect(() => rateLimit({ rules: rules(byHeader, other) })).toThrow(/'rules\[1\]\.zone'/);
  }
});

test('wrong options beside a function are refused all the same', () => {
  const wrong = [{ minDifference: '5' }, { windowMs: 0 }, { max: -1 }, { algorithm: 'gcra' }];
  for (const options of wrong) {
    expect(() => rateLimit({ limit: byHeader, ...options })).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION' }),
    );
  }
});

describe('over Redis', () => {
  let server;
  let client;
  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.url);
  });
  afterAll(() => client.disconnect());

  test.each(['native', 'ioredis'])(
    '%s: one count, judged by the limit of each request',
    async (kind) => {
      const redis = kind === 'native' ? server.url : client;
      const options = { limit: async (req) => byHeader(req), redis, namespace: kind };
      const middleware = rateLimit({ ...options, countBlocked: false, keyGenerator: () => 'k' });
      const app = appWith(middleware);
      const ask = (limit) => request(app).get('/').set('x-limit', String(limit));
      const statuses = [];
      for (const limit of [3, 3, 2, 3, 3, 0, 5]) statuses.push((await ask(limit)).status);
      expect(statuses).toEqual([200, 200, 429, 200, 429, 429, 200]);
      expect((await ask(6)).headers).toMatchObject({
        'x-ratelimit-limit': '6',
        'x-ratelimit-remaining': '1',
      });
      expect(await middleware.getKey('k')).toMatchObject({ totalHits: 5 });
      await middleware.resetKey('k');
      expect(await middleware.getKey('k')).toBe(undefined);
    },
  );
});
