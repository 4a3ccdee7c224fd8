// The option `store`: stores written for express-rate-limit count for the middleware as they do for express-rate-limit.
'use strict';

const expressRateLimit = require('express-rate-limit');
const { RedisStore } = require('rate-limit-redis');
const { Redis } = require('ioredis');
const { rateLimit } = require('../..');
const { startRedis } = require('../support/redis-server');
const apps = require('./apps');

const { MemoryStore } = expressRateLimit;
const { FAILING, appWith, callDirectly, get, inTurn, newLogger, statusesOf, useFastify } = apps;
const { useHandMovedClock, withCode } = apps;
const time = useHandMovedClock();
const WINDOW_MS = 60_000;
const keyGenerator = () => 'ada';

/** Its keys go on for ever. */
function neverEnding(resetTime) {
  let totalHits = 0;
  return giving(async () => ({ totalHits: ++totalHits, resetTime }));
}

const giving = (increment, others) => ({ increment, decrement() {}, resetKey() {}, ...others });

describe('a store counts as under express-rate-limit', () => {
  // The last two are around the end of the window, which a rolling window would refuse.
  const WAITS = [0, 1000, 1, 0, WINDOW_MS - 1001, 0, 1];
  const options = { windowMs: WINDOW_MS, limit: 2, standardHeaders: 'draft-8', keyGenerator };

  /** What the client sees of requests after these waits. */
  function play(middleware) {
    const app = appWith(middleware);
    return inTurn(WAITS, async (ms) => {
      time.advance(ms);
      const { status, headers } = await get(app);
      return [status, headers['retry-after'], headers.ratelimit, headers['ratelimit-policy']];
    });
  }

  test.each([
    ['in memory', () => new MemoryStore()],
    ['with null as reset time', () => neverEnding(null)],
    ['without reset times', () => neverEnding()],
  ])('%s', async (_what, createStore) => {
    const start = Date.now();
    const theirs = { ...options, validate: false, store: createStore() };
    const expected = await play(expressRateLimit(theirs));
    jest.setSystemTime(start);
    const answers = await play(rateLimit({ ...options, store: createStore() }));
    expect(answers).toEqual(expected);
    expect(new Set(answers.map(([status]) => status))).toEqual(new Set([200, 429]));
  });

  test('rate-limit-redis, in one count with express-rate-limit', async () => {
    const client = new Redis((await startRedis()).url);
    const sendCommand = (...args) => client.call(...args);
    const common = () => ({ ...options, store: new RedisStore({ sendCommand, prefix: 'web:' }) });
    const theirs = appWith(expressRateLimit({ ...common(), validate: false }));
    const ours = appWith(rateLimit(common()));
    const statuses = await inTurn([theirs, ours, theirs, ours], (app) => statusesOf(app, '/'));
    expect(statuses.flat()).toEqual([200, 200, 429, 429]);
    expect(Number((await get(ours)).headers['retry-after'])).toBeGreaterThan(0);
    client.disconnect();
  });
});

test('a store that answers at once keeps the request synchronous', () => {
  const store = giving(() => ({ totalHits: 1, resetTime: new Date() }));
  const { calls, returned, req } = callDirectly(rateLimit({ store, limit: 1 }));
  expect([calls, returned]).toEqual([[[]], undefined]);
  expect(req.rateLimit).toMatchObject({ limit: 1, used: 1, remaining: 0, key: '192.0.2.1' });
});

test('the limit may be a function, and 0', async () => {
  const limit = (req) => Number(req.query.limit);
  const app = appWith(rateLimit({ store: new MemoryStore(), limit }));
  const paths = [1, 1, 3, 0].map((n) => `/?limit=${n}`);
  expect(await statusesOf(app, ...paths)).toEqual([200, 429, 200, 429]);
});

describe('a request is taken back', () => {
  /** How often requests with these paths were taken back. */
  async function decrements(options, paths, handler = (_req, _res, next) => next()) {
    const store = new MemoryStore();
    const decrement = jest.spyOn(store, 'decrement');
    const app = appWith(rateLimit({ store, limit: 1, keyGenerator, ...options }), handler);
    await statusesOf(app, ...paths);
    for (const args of decrement.mock.calls) expect(args).toEqual(['ada']);
    return decrement.mock.calls.length;
  }

  const late = (_req, res) => {
    time.advance(WINDOW_MS + 1);
    res.send('done');
  };

  test.each([
    ['where it is wanted', 1, { skipSuccessfulRequests: true }, ['/']],
    ['but not elsewhere', 0, { skipSuccessfulRequests: true }, ['/unknown']],
    ['also when refused, because it was counted', 1, { skipFailedRequests: true }, ['/', '/']],
    ['but not from the next window', 0, { skipSuccessfulRequests: true }, ['/'], late],
  ])('%s: %i times', async (_what, times, ...asked) => {
    expect(await decrements(...asked)).toBe(times);
  });
});

test('resetKey and getKey are those of the store', async () => {
  const store = new MemoryStore();
  const middleware = rateLimit({ store });
  await store.increment('ada');
  await expect(middleware.getKey('ada')).resolves.toMatchObject({ totalHits: 1 });
  await middleware.resetKey('ada');
  await expect(middleware.getKey('ada')).resolves.toBeUndefined();
  const { getKey } = rateLimit({ store: neverEnding() });
  await expect(getKey('ada')).rejects.toThrow(/^getKey: the store has no method get/);
});

test('keys become strings, and an array, which clients can send, is an error', async () => {
  const keys = [1, '1', ['a', 'b']];
  const store = new MemoryStore();
  const middleware = rateLimit({ store, keyGenerator: () => keys.shift() });
  const answers = await inTurn([1, 2, 3], async () => {
    const { calls, returned } = callDirectly(middleware);
    await returned;
    return calls;
  });
  expect(answers).toEqual([[[]], [[]], [[withCode('ERR_ROLLGATE_ID')]]]);
  await expect(middleware.getKey(1)).resolves.toMatchObject({ totalHits: 2 });
  await middleware.resetKey(1);
  expect(await store.get('1')).toBeUndefined();
});

describe('a wrong store', () => {
  const complete = giving(() => {});
  test.each([
    [{}, /'store': expected a store of express-rate-limit .*got an object/],
    ['redis://127.0.0.1', /'store'/],
    [
      { ...complete, decrement: 5 },
      /got an object\. Stores of .* 5 and older are not supported\.$/,
    ],
    [{ ...complete, init: 'x' }, /'store\.init': expected a function/],
  ])('%p is refused', (store, message) => {
    expect(() => rateLimit({ store })).toThrow(message);
  });

  test.each([
    { limits: [{ windowMs: 1, limit: 1 }] },
    { cost: 2 },
    { namespace: 'web' },
    { limiter: { attempt() {} } },
    { rules: [{ path: '/' }] },
  ])('is refused together with %j', (options) => {
    const together = () => rateLimit({ store: complete, ...options });
    expect(together).toThrow(/conflicts with '(store|rules)'/);
  });

  test.each([
    [undefined],
    [{ totalHits: '1' }],
    [{ totalHits: 1.5 }],
    [{ totalHits: -1 }],
    [{ totalHits: 1, resetTime: 5 }],
    [{ totalHits: 1, resetTime: new Date(Number.NaN) }],
  ])('that counts %j lets nobody pass', (hits) => {
    const store = giving(() => hits);
    expect(callDirectly(rateLimit({ store })).calls).toEqual([[withCode('ERR_ROLLGATE_STORE')]]);
    const logger = newLogger();
    const passing = rateLimit({ store, passOnStoreError: true, logger });
    expect(callDirectly(passing).calls).toEqual([[]]);
    expect(logger.error).toHaveBeenCalledTimes(1);
  });

  test.each(FAILING(new Error('no connection')))('that %s fails the request', async (...row) => {
    const { calls, returned } = callDirectly(rateLimit({ store: giving(row[1]) }));
    await returned;
    expect(calls).toEqual([[new Error('no connection')]]);
  });
});

describe('init', () => {
  const withInit = (init) => giving(() => ({ totalHits: 1 }), { init });

  test('gets the settings of the middleware', () => {
    const init = jest.fn();
    const store = withInit(init);
    rateLimit({ store, max: 7, headers: false, prefix: undefined });
    const settings = { windowMs: 60_000, limit: 7, headers: false, legacyHeaders: false, store };
    expect(init.mock.calls).toEqual([[expect.objectContaining(settings)]]);
  });

  test('may be tried again after it threw, without a warning', () => {
    const [, throws] = FAILING(new Error('not yet'))[0];
    const store = withInit(jest.fn().mockImplementationOnce(throws));
    const logger = newLogger();
    expect(() => rateLimit({ store, logger })).toThrow('not yet');
    rateLimit({ store, logger });
    expect(logger.warn).not.toHaveBeenCalled();
  });

  test('is reported if its promise is rejected', async () => {
    const error = new Error('later');
    const logger = newLogger();
    const app = appWith(rateLimit({ store: withInit(() => Promise.reject(error)), logger }));
    expect((await get(app)).status).toBe(200);
    expect(logger.error.mock.calls).toEqual([[error, expect.stringContaining('store.init')]]);
  });
});

test('one store for two middlewares is warned of, and a request that passes both', async () => {
  const store = new MemoryStore();
  const logger = newLogger();
  const isOff = { store, logger, validate: { unsharedStore: false } };
  const both = [rateLimit({ store, logger }), rateLimit(isOff)];
  expect(logger.warn).not.toHaveBeenCalled();
  await get(appWith(...both));
  expect(logger.warn.mock.calls).toEqual([[withCode('ROLLGATE_DOUBLE_COUNT')]]);
  rateLimit({ store, logger });
  expect(logger.warn).toHaveBeenLastCalledWith(withCode('ROLLGATE_STORE_REUSED'));
});

describe('the plugin of Fastify', () => {
  const { ready, start, statusesAt } = useFastify();
  const withStore = () => ({ store: new MemoryStore(), limit: 1, clock: undefined });

  test('counts in one; each route with limits of its own has its own', async () => {
    const routes = {
      '/': undefined,
      '/own': { store: new MemoryStore(), limit: 2 },
      '/rolls': { shared: undefined, rules: [{ path: '/' }] },
    };
    const url = await start(withStore(), routes);
    const statuses = await statusesAt(url, '/', '/', '/own', '/own', '/own', '/rolls');
    expect(statuses).toEqual([200, 429, 200, 200, 429, 200]);
  });

  test('refuses a route that would count in the store of its scope', async () => {
    await expect(ready(withStore(), { limit: 1 })).rejects.toThrow(
      /'config\.rateLimit': the scope's 'store' cannot be shared/,
    );
  });
});
