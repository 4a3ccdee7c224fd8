// limit (or max) as a function: one count for each key, judged by the limit of each request.
'use strict';

const express = require('express');
const request = require('supertest');
const { rateLimit } = require('../..');
const { startRedis } = require('../support/redis-server');
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

describe.each([
  ['in memory', {}],
  ['on Redis', { redis: true }],
])('%s', (_name, { redis }) => {
  let server;
  let namespaces = 0;

  beforeAll(async () => {
    if (redis) server = await startRedis();
  });

  const askerOf = (options) => {
    const store = redis ? { redis: server.url, namespace: `limits-${++namespaces}` } : {};
    return appOf({ ...store, ...options });
  };

  test.each([
    ['limit', byHeader],
    ['max', async (req) => byHeader(req)],
  ])('%s: each request has the limit that it asks for, of one count', async (name, limitOf) => {
    const ask = askerOf({ [name]: limitOf, countBlocked: false });
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

  test('0 refuses everything, and another request is not hurt by it', async () => {
    const ask = askerOf({ limit: byHeader, countBlocked: false });
    expect((await ask(0)).status).toBe(429);
    expect((await ask(1)).status).toBe(200);
    expect((await ask(0)).headers['x-ratelimit-limit']).toBe('0');
  });

  test('in rules, too, where one zone has one count', async () => {
    const zone = { zone: 'z', limit: byHeader, countBlocked: false };
    const ask = askerOf({
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

  test('skipFailedRequests takes back what was counted', async () => {
    const requestWasSuccessful = (req) => !req.url.endsWith('bad');
    const ask = askerOf({ limit: byHeader, skipFailedRequests: true, requestWasSuccessful });
    expect((await ask(1, '/bad')).status).toBe(200);
    expect((await ask(1)).body).toMatchObject({ used: 1 });
  });
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
  for (const options of [{ minDifference: '5' }, { windowMs: 0 }, { max: -1 }]) {
    expect(() => rateLimit({ limit: byHeader, ...options })).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION' }),
    );
  }
});
