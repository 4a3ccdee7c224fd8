// The store for express-rate-limit: rolling windows by itself, and under the real express-rate-limit.
'use strict';

const { rateLimit } = require('express-rate-limit');
const fc = require('fast-check');
const RateLimiter = require('../..');
const RollgateStore = require('../../lib/adapters/express-rate-limit-store');
const { redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { casesOf } = require('../support/tiers');
const { waitUntil } = require('../support/outcome');
const apps = require('./apps');

const { HOUR_MS, appWith, getTimes, inTurn, newLogger } = apps;
const { statusesOf, useHandMovedClock, withCode } = apps;
const WINDOW_MS = 1000;
const redis = redisAt('redis://127.0.0.1:1'); // which no test asks
const time = useHandMovedClock();

function storeWith(init, options) {
  const store = new RollgateStore({ clock: time.clock, ...options });
  store.init({ windowMs: WINDOW_MS, limit: 2, ...init });
  return store;
}

const hitsOf = async (store, key) => (await store.get(key))?.totalHits ?? 0;

const hitsAfter = (store, ...waits) =>
  inTurn(waits, async (ms) => {
    time.advance(ms);
    return (await store.increment('a')).totalHits;
  });

test.each([
  ['a number', (limit) => limit, {}],
  ['a function, beside maxInInterval', (limit) => () => limit, { maxInInterval: 4 }],
])(
  'it allows what an exact rolling window allows; limit is %s',
  async (_what, asOption, options) => {
    const steps = fc.array(fc.integer({ min: 0, max: 700 }), { maxLength: 40 });
    const limits = fc.constantFrom(0, 1, 2, 2.5, 3, 4);
    const property = fc.asyncProperty(limits, steps, async (limit, waits) => {
      const store = storeWith({ limit: asOption(limit) }, options);
      const hits = [];
      for (const ms of waits) {
        time.advance(ms);
        const inside = hits.filter((at) => at > Date.now() - WINDOW_MS).length;
        const { totalHits } = await store.increment('a');
        expect(Number.isInteger(totalHits) && totalHits >= 1).toBe(true);
        expect(totalHits <= limit).toBe(inside < Math.floor(limit));
        // A refusal by a limit that the store does not know counts up to its own.
        if (totalHits <= (options.maxInInterval ?? limit)) hits.push(Date.now());
      }
    });
    await fc.assert(property, { numRuns: casesOf(300) });
  },
);

test('keys are counted apart, reset one by one or all', async () => {
  const store = storeWith();
  const keys = ['a', 'b', '__proto__', '', 'constructor'];
  for (const key of keys) expect((await store.increment(key)).totalHits).toBe(1);
  const all = () => Promise.all(keys.map((key) => hitsOf(store, key)));
  await store.resetKey('a');
  expect(await all()).toEqual([0, 1, 1, 1, 1]);
  await store.resetAll();
  expect(await all()).toEqual([0, 0, 0, 0, 0]);
  expect(await store.get('a')).toBeUndefined();
});

describe('decrement', () => {
  test('takes back the newest hit first', async () => {
    const store = storeWith({ limit: 5 });
    await hitsAfter(store, 0, 400);
    await store.decrement('a');
    time.advance(599);
    expect(await hitsOf(store, 'a')).toBe(1);
    time.advance(1); // the first hit leaves the window
    expect(await hitsOf(store, 'a')).toBe(0);
  });

  test('of a refusal takes back no other hit', async () => {
    const store = storeWith({ limit: 1, skipFailedRequests: true });
    expect(await hitsAfter(store, 0, 0)).toEqual([1, 2]);
    await store.decrement('a'); // that of the refusal
    expect(await hitsOf(store, 'a')).toBe(1);
    await store.decrement('a');
    expect(await hitsOf(store, 'a')).toBe(0);
  });

  test('remembers the last thousands of hits', async () => {
    const store = storeWith({ limit: 100 });
    for (const [others, hitsLeft] of [
      [5000, 0],
      [10_001, 1],
    ]) {
      await store.increment('early');
      for (let i = 0; i < others; i++) await store.increment(`k${i}`);
      await store.decrement('early');
      expect(await hitsOf(store, 'early')).toBe(hitsLeft);
    }
  });
});

test('it remembers few hits of long keys', async () => {
  const store = storeWith({ limit: 100 });
  const keys = Array.from({ length: 200 }, (_, i) => `${i}${'k'.repeat(16_000)}`);
  for (const key of keys) await store.increment(key);
  for (const key of keys) await store.decrement(key);
  const hits = await inTurn(keys, (key) => hitsOf(store, key));
  expect([hits[0], hits.at(-1)]).toEqual([1, 0]);
  expect(hits.reduce((sum, one) => sum + one)).toBeGreaterThan(70);
});

describe('over a limiter of the user', () => {
  const limiterOf = (options) => RateLimiter({ interval: 1e6, maxInInterval: 2, ...options });
  const storeOver = (limiter, init) =>
    storeWith({ windowMs: 1e6, ...init }, { limiter, clock: undefined });
  const hitsOver = (limiter, limit) => hitsAfter(storeOver(limiter, { limit }), 0, 0, 0, 0);

  test('the narrower limit holds, and any refusal is above the limit', async () => {
    expect(await hitsOver(limiterOf(), 2)).toEqual([1, 2, 3, 3]);
    expect(await hitsOver(limiterOf(), 5)).toEqual([1, 2, 6, 6]);
    expect(await hitsOver(limiterOf({ maxInInterval: 9 }), 2)).toEqual([1, 2, 3, 4]);
    expect(await hitsOver(limiterOf(), () => 2)).toEqual([1, 2, 3, 3]);
    const apart = limiterOf({ maxInInterval: 5, minDifference: 1e5 });
    expect((await hitsOver(apart, 5)).slice(0, 2)).toEqual([1, 6]);
  });

  test('the hits follow its limits when they change', async () => {
    const limiter = limiterOf();
    const store = storeOver(limiter, { limit: () => 100 });
    expect(await hitsAfter(store, 0, 0, 0)).toEqual([1, 2, 3]);
    limiter.setLimits([{ interval: 1e6, maxInInterval: 9 }]);
    expect(await hitsAfter(store, 0)).toEqual([3]);
  });

  test('shutdown leaves it open, but closes a limiter of the store', async () => {
    const limiter = limiterOf();
    await storeOver(limiter).shutdown();
    expect(limiter('a')).toBe(0);
    const own = storeWith();
    await own.shutdown();
    await expect(own.increment('a')).rejects.toEqual(withCode('ERR_ROLLGATE_CLOSED'));
    await new RollgateStore().shutdown();
  });

  test('localKeys and prefix tell express-rate-limit where it counts', () => {
    const placeOf = (options) => {
      const { localKeys, prefix } = new RollgateStore(options);
      return [localKeys, prefix];
    };
    const limiter = limiterOf();
    expect(placeOf()).toEqual([true, undefined]);
    expect(placeOf({ redis, namespace: 'api' })).toEqual([false, 'api']);
    expect(placeOf({ redis })).not.toEqual(placeOf({ redis }));
    expect(placeOf({ limiter })[0]).toBe(false);
    expect(placeOf({ limiter })).toEqual(placeOf({ limiter }));
    expect(placeOf({ limiter })).not.toEqual(placeOf({ limiter: limiterOf() }));
  });
});

describe('misuse', () => {
  const limiter = RateLimiter({ interval: 1, maxInInterval: 1 });
  const place = (name) =>
    new RegExp(`^RollgateStore: option '${name}': .*rateLimit\\({ windowMs, limit, store }\\)$`);
  test.each([
    [{ intervall: 1000 }, /intervall/],
    [{ maxInInterval: '3' }, /'maxInInterval'/],
    [{ limiter: {} }, /'limiter'/],
    [{ limiter, clock: Date.now }, /'clock'/],
    ...['interval', 'windowMs', 'limit', 'max'].map((name) => [{ [name]: 5 }, place(name)]),
  ])('options %j are refused', (options, message) => {
    const code = 'ERR_ROLLGATE_OPTION';
    const error = expect.objectContaining({ code, message: expect.stringMatching(message) });
    expect(() => new RollgateStore(options)).toThrow(error);
  });

  test('a lease has to fit into the window, which init() gives', () => {
    const options = { redis, namespace: 'n', lease: 100 };
    expect(() => new RollgateStore({ ...options, lease: 49 })).toThrow(
      /'lease': expected .* from 50/,
    );
    new RollgateStore(options).init({ windowMs: 100, limit: 2 });
    expect(() => new RollgateStore(options).init({ windowMs: 99, limit: 2 })).toThrow(/'lease'/);
  });

  test.each([
    [{}, { windowMs: -1, limit: 2 }],
    [{}, { windowMs: 1000, limit: () => 2 }],
    [{ countBlocked: true }, { windowMs: 1000, limit: 2, skipFailedRequests: true }],
  ])('%j with init of %p is refused there and at every use', async (options, init) => {
    const store = new RollgateStore(options);
    const refused = withCode('ERR_ROLLGATE_OPTION');
    expect(() => store.init(init)).toThrow(refused);
    const error = expect.objectContaining({ code: 'ERR_ROLLGATE_STORE', cause: refused });
    await expect(store.increment('a')).rejects.toEqual(error);
  });

  test('use without init, with the limits of two middleware, and with a key that is no id', async () => {
    const unusable = withCode('ERR_ROLLGATE_STORE');
    const store = new RollgateStore();
    for (const name of ['increment', 'decrement', 'get', 'resetKey', 'resetAll']) {
      await expect(store[name]('a')).rejects.toEqual(unusable);
    }
    const shared = storeWith();
    shared.init({ windowMs: WINDOW_MS, limit: 2 });
    await expect(shared.increment({})).rejects.toEqual(withCode('ERR_ROLLGATE_ID'));
    expect(await hitsAfter(shared, 0)).toEqual([1]);
    for (const limit of [3, 2]) {
      expect(() => shared.init({ windowMs: WINDOW_MS, limit })).toThrow(unusable);
      await expect(shared.increment('a')).rejects.toEqual(unusable);
    }
  });
});

describe.each(['memory', 'Redis'])('under express-rate-limit, in %s', (place) => {
  let own = {};
  const stores = [];
  beforeAll(async () => {
    if (place === 'Redis') own = { redis: redisAt((await startRedis()).url) };
  });
  afterAll(() => Promise.all(stores.map((store) => store.shutdown())));

  /** express-rate-limit with its checks on. */
  function over(options) {
    const store = new RollgateStore(own);
    stores.push(store);
    const logger = newLogger();
    const middleware = rateLimit({ windowMs: HOUR_MS, limit: 2, store, logger, ...options });
    return Object.assign(middleware, { logger });
  }

  const usedIn = async (middleware) => (await middleware.getKey('127.0.0.1'))?.totalHits ?? 0;

  test('requests above the limit are refused, and its checks find nothing wrong', async () => {
    const middleware = over({ standardHeaders: 'draft-7' });
    const answers = await getTimes(appWith(middleware), 4);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
    expect(answers[0].headers.ratelimit).toBe('limit=2, remaining=1, reset=3600');
    expect(answers[2].headers.ratelimit).toMatch(/^limit=2, remaining=0, reset=\d+$/);
    for (const log of Object.values(middleware.logger)) expect(log).not.toHaveBeenCalled();
    expect(await usedIn(middleware)).toBe(2);
    await middleware.resetKey('127.0.0.1');
    expect(await usedIn(middleware)).toBe(0);
  });

  test.each([
    ['skipFailedRequests', '/missing', 404, '/', [200, 200, 429]],
    ['skipSuccessfulRequests', '/', 200, '/missing', [404, 404, 429]],
  ])('%s takes requests back', async (name, path, status, counted, expected) => {
    const middleware = over({ [name]: true });
    const app = appWith(middleware);
    for (let i = 0; i < 3; i++) {
      expect(await statusesOf(app, path)).toEqual([status]);
      await waitUntil('it is taken back', async () => (await usedIn(middleware)) === 0);
    }
    expect(await statusesOf(app, counted, counted, counted)).toEqual(expected);
  });
});
