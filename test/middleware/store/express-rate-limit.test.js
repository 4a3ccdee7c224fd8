// RollgateStore under the real express-rate-limit, in memory and on a real Redis.
'use strict';

const express = require('express');
const { rateLimit } = require('express-rate-limit');
const RateLimiter = require('../../..');
const RollgateStore = require('../../../lib/store');
const { startRedis } = require('../../support/redis-server');
const { waitUntil } = require('../../support/wait-until');
const { appWith, get, getTimes } = require('../apps');

const HOUR_MS = 3_600_000;
const loud = () => ({ warn: jest.fn(), error: jest.fn() });

async function statusesOf(app, times, path) {
  const statuses = [];
  for (let i = 0; i < times; i++) statuses.push((await get(app, path)).status);
  return statuses;
}

describe.each(['memory', 'Redis'])('in %s', (place) => {
  let redis;
  const stores = [];

  beforeAll(async () => {
    if (place === 'Redis') redis = await startRedis();
  });
  afterAll(() => Promise.all(stores.map((store) => store.shutdown())));

  function newStore(options) {
    const store = new RollgateStore(place === 'Redis' ? { redis: redis.url, ...options } : options);
    stores.push(store);
    return store;
  }

  /** express-rate-limit with its checks on: they must find nothing wrong. */
  function middlewareOver(store, options) {
    const logger = loud();
    const middleware = rateLimit({ windowMs: HOUR_MS, limit: 2, store, logger, ...options });
    return Object.assign(middleware, { logger });
  }

  const hitsOf = async (middleware) => (await middleware.getKey('127.0.0.1'))?.totalHits ?? 0;

  test('requests above the limit are refused, with the headers of express-rate-limit', async () => {
    const middleware = middlewareOver(newStore(), { standardHeaders: 'draft-7' });
    const answers = await getTimes(appWith(middleware), 4);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
    const [first, , refused] = answers;
    expect(first.headers.ratelimit).toBe('limit=2, remaining=1, reset=3600');
    expect(refused.headers.ratelimit).toMatch(/^limit=2, remaining=0, reset=(3600|3599)$/);
    expect(refused.headers['retry-after']).toMatch(/^(3600|3599)$/);
    expect(middleware.logger.warn).not.toHaveBeenCalled();
    expect(middleware.logger.error).not.toHaveBeenCalled();
  });

  test('no double burst at the edge of a window', async () => {
    let now = 5 * HOUR_MS;
    const app = appWith(middlewareOver(newStore({ clock: () => now }), { limit: 3 }));
    const passed = [];
    for (const [ms, times] of [
      [0, 1],
      [HOUR_MS - 1, 2],
      [1, 3],
    ]) {
      now += ms;
      passed.push((await statusesOf(app, times)).filter((status) => status === 200).length);
    }
    expect(passed).toEqual([1, 2, 1]);
  });

  test('many requests at once: exactly the limit passes', async () => {
    const server = appWith(middlewareOver(newStore(), { limit: 5 })).listen(0, '127.0.0.1');
    try {
      const answers = await Promise.all(Array.from({ length: 20 }, () => get(server)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    } finally {
      server.close();
    }
  });

  test('a limit that is an async function', async () => {
    const options = { limit: async (req) => (req.path === '/' ? 2 : 4) };
    const app = appWith(middlewareOver(newStore({ maxInInterval: 4 }), options));
    expect(await statusesOf(app, 3)).toEqual([200, 200, 429]);
    expect(await statusesOf(app, 2, '/missing')).toEqual([404, 429]);
  });

  test('skipFailedRequests takes failed ones back and does not count refused ones', async () => {
    const middleware = middlewareOver(newStore(), { skipFailedRequests: true });
    const app = appWith(middleware);
    for (let i = 0; i < 3; i++) {
      expect((await get(app, '/missing')).status).toBe(404);
      await waitUntil('it is taken back', async () => (await hitsOf(middleware)) === 0);
    }
    expect(await statusesOf(app, 4)).toEqual([200, 200, 429, 429]);
    expect(await hitsOf(middleware)).toBe(2);
  });

  test('skipSuccessfulRequests takes the others back', async () => {
    const middleware = middlewareOver(newStore(), { skipSuccessfulRequests: true });
    const app = appWith(middleware);
    for (let i = 0; i < 3; i++) {
      expect((await get(app)).status).toBe(200);
      await waitUntil('it is taken back', async () => (await hitsOf(middleware)) === 0);
    }
    expect(await statusesOf(app, 3, '/missing')).toEqual([404, 404, 429]);
  });

  test('resetKey and getKey', async () => {
    const middleware = middlewareOver(newStore());
    const app = appWith(middleware);
    expect(await middleware.getKey('127.0.0.1')).toBeUndefined();
    expect(await statusesOf(app, 3)).toEqual([200, 200, 429]);
    expect(await middleware.getKey('127.0.0.1')).toEqual({
      totalHits: 2,
      resetTime: expect.any(Date),
    });
    await middleware.resetKey('127.0.0.1');
    expect(await statusesOf(app, 3)).toEqual([200, 200, 429]);
  });

  test('two middleware behind one another, each with a store, are no double count', async () => {
    const app = express();
    const all = middlewareOver(newStore(), { limit: 4 });
    const few = middlewareOver(newStore(), { limit: 2 });
    app.use(all, appWith(few));
    expect(await statusesOf(app, 5)).toEqual([200, 200, 429, 429, 429]);
    expect([await hitsOf(all), await hitsOf(few)]).toEqual([4, 2]);
    for (const { logger } of [all, few]) expect(logger.error).not.toHaveBeenCalled();
  });

  test('a store that fails is an error, or passes with passOnStoreError', async () => {
    const closed = newStore();
    const app = appWith(middlewareOver(closed));
    await closed.shutdown();
    const { status, body } = await get(app);
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_CLOSED']);
    const passing = newStore();
    const middleware = middlewareOver(passing, { passOnStoreError: true });
    await passing.shutdown();
    expect(await statusesOf(appWith(middleware), 3)).toEqual([200, 200, 200]);
    expect(middleware.logger.error).toHaveBeenCalledTimes(3);
  });
});

test('without its Redis requests fail with the cause, or pass', async () => {
  const gone = await startRedis();
  const store = new RollgateStore({ redis: gone.url });
  const app = appWith(rateLimit({ store, logger: loud() }));
  await gone.stop();
  const { status, body } = await get(app);
  expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_REDIS_UNREACHABLE']);
});

test('two processes of one namespace count together', async () => {
  const redis = await startRedis();
  const apps = Array.from({ length: 2 }, () => {
    const store = new RollgateStore({ redis: redis.url, namespace: 'api' });
    return appWith(rateLimit({ windowMs: HOUR_MS, limit: 3, store, logger: loud() }));
  });
  const statuses = [];
  for (let i = 0; i < 2; i++) {
    for (const app of apps) statuses.push((await get(app)).status);
  }
  expect(statuses).toEqual([200, 200, 200, 429]);
});

test('wrong options are logged by express-rate-limit, and no request passes', async () => {
  const logger = loud();
  const app = appWith(rateLimit({ store: new RollgateStore(), limit: () => 2, logger }));
  expect(logger.error).toHaveBeenCalledTimes(1);
  const { status, body } = await get(app);
  expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_STORE']);
  expect(body.message).toMatch(/maxInInterval/);
});

test('one store of two middleware with other limits: no request passes either', async () => {
  const logger = loud();
  const store = new RollgateStore();
  const app = express();
  app.use('/a', rateLimit({ windowMs: HOUR_MS, limit: 5, store, logger }));
  app.use('/b', rateLimit({ windowMs: HOUR_MS, limit: 300, store, logger }));
  expect(logger.error).toHaveBeenCalled();
  const server = express().use(appWith(app));
  expect(await statusesOf(server, 3, '/a')).toEqual([500, 500, 500]);
  expect(await statusesOf(server, 3, '/b')).toEqual([500, 500, 500]);
});

test('a limiter of yours may have what express-rate-limit has not', async () => {
  const limiter = RateLimiter({
    limits: [
      { interval: HOUR_MS, maxInInterval: 3 },
      { interval: 24 * HOUR_MS, maxInInterval: 5 },
    ],
  });
  const store = new RollgateStore({ limiter });
  const app = appWith(rateLimit({ windowMs: HOUR_MS, limit: 3, store, logger: loud() }));
  expect(await statusesOf(app, 4)).toEqual([200, 200, 200, 429]);
});
