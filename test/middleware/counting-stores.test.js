// The option `store`: stores written for express-rate-limit count for the middleware as they do for express-rate-limit.
'use strict';

const expressRateLimit = require('express-rate-limit');
const { RedisStore } = require('rate-limit-redis');
const { Redis } = require('ioredis');
const { rateLimit } = require('../..');
const { startRedis } = require('../support/redis-server');
const apps = require('./apps');

const { FAILING, appWith, callDirectly, get, newLogger, useFastify } = apps;
const { useHandMovedClock, withCode } = apps;
const time = useHandMovedClock();
const WINDOW_MS = 60_000;

const opened = [];
afterEach(() => {
  for (const client of opened.splice(0)) client.disconnect();
});

function openClient(url) {
  const client = new Redis(url);
  opened.push(client);
  return client;
}

/** A fixed window of WINDOW_MS, and what was called. */
class FixedStore {
  calls = [];
  #counts = new Map();

  init({ windowMs }) {
    this.windowMs = windowMs;
  }

  increment(key) {
    this.calls.push(`increment ${key}`);
    const known = this.#counts.get(key);
    const isOpen = known !== undefined && known.resetTime > new Date();
    const start = { totalHits: 0, resetTime: new Date(Date.now() + WINDOW_MS) };
    const count = isOpen ? known : start;
    count.totalHits += 1;
    this.#counts.set(key, count);
    return { ...count };
  }

  decrement(key) {
    this.calls.push(`decrement ${key}`);
    this.#counts.get(key).totalHits -= 1;
  }

  resetKey(key) {
    this.#counts.delete(key);
  }

  get(key) {
    return this.#counts.get(key);
  }
}

const HEADERS = ['retry-after', 'ratelimit', 'ratelimit-policy'];

/** What the client sees of requests after these waits. */
async function play(middleware, waits) {
  const app = appWith(middleware);
  const answers = [];
  for (const ms of waits) {
    time.advance(ms);
    const { status, headers } = await get(app);
    answers.push([status, ...HEADERS.map((name) => headers[name])]);
  }
  return answers;
}

describe('a store counts as under express-rate-limit', () => {
  // The last two are around the end of the window, which a rolling window would refuse.
  const WAITS = [0, 1000, 1, 0, WINDOW_MS - 1001, 0, 1];
  const options = { windowMs: WINDOW_MS, limit: 2, standardHeaders: 'draft-8' };
  const keyGenerator = () => 'ada';

  test.each([
    ['in memory', () => new FixedStore()],
    ['with null as reset time', () => ({ ...neverEnding(null), resetKey() {}, decrement() {} })],
    ['without reset times', () => ({ ...neverEnding(), resetKey() {}, decrement() {} })],
  ])('%s', async (_what, createStore) => {
    const start = Date.now();
    const all = { ...options, keyGenerator };
    const theirs = await play(
      expressRateLimit({ ...all, validate: false, store: createStore() }),
      WAITS,
    );
    jest.setSystemTime(start);
    const ours = await play(rateLimit({ ...all, store: createStore() }), WAITS);
    expect(ours).toEqual(theirs);
    expect(new Set(ours.map(([status]) => status))).toEqual(new Set([200, 429]));
  });

  function neverEnding(resetTime) {
    let totalHits = 0;
    return { increment: async () => ({ totalHits: ++totalHits, resetTime }) };
  }

  test('rate-limit-redis, in one count with express-rate-limit', async () => {
    const { url } = await startRedis();
    const client = openClient(url);
    const sendCommand = (...args) => client.call(...args);
    const newStore = () => new RedisStore({ sendCommand, prefix: 'web:' });
    const all = { ...options, keyGenerator };
    const theirs = appWith(expressRateLimit({ ...all, validate: false, store: newStore() }));
    const ours = appWith(rateLimit({ ...all, store: newStore() }));
    const statuses = [];
    for (const app of [theirs, ours, theirs, ours]) statuses.push((await get(app)).status);
    expect(statuses).toEqual([200, 200, 429, 429]);
    const { headers } = await get(ours);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  });
});

test('a store that answers at once keeps the request synchronous', () => {
  const { calls, returned, req } = callDirectly(rateLimit({ store: new FixedStore(), limit: 1 }));
  expect([calls, returned]).toEqual([[[]], undefined]);
  expect(req.rateLimit).toMatchObject({ limit: 1, used: 1, remaining: 0, key: '192.0.2.1' });
});

test('the limit may be a function, and 0', async () => {
  const limit = (req) => Number(req.query.limit);
  const app = appWith(rateLimit({ store: new FixedStore(), limit }));
  const statuses = [];
  for (const n of [1, 1, 3, 0]) statuses.push((await get(app, `/?limit=${n}`)).status);
  expect(statuses).toEqual([200, 429, 200, 429]);
});

describe('a request is taken back', () => {
  const ask = async (options, path = '/') => {
    const store = new FixedStore();
    const app = appWith(rateLimit({ store, limit: 1, keyGenerator: () => 'ada', ...options }));
    const { status } = await get(app, path);
    return { store, app, status };
  };

  test('where it is wanted, and only there', async () => {
    const done = await ask({ skipSuccessfulRequests: true });
    expect(done.store.calls).toEqual(['increment ada', 'decrement ada']);
    const failed = await ask({ skipSuccessfulRequests: true }, '/unknown');
    expect(failed.store.calls).toEqual(['increment ada']);
  });

  test('also when it was refused, because the store has counted it', async () => {
    const { store, app } = await ask({ skipFailedRequests: true });
    expect((await get(app)).status).toBe(429);
    expect(store.calls).toEqual(['increment ada', 'increment ada', 'decrement ada']);
    expect(store.get('ada').totalHits).toBe(1);
  });

  test('but not from the next window', async () => {
    const store = new FixedStore();
    const slow = (_req, res) => {
      time.advance(WINDOW_MS + 1);
      res.send('done');
    };
    const app = appWith(rateLimit({ store, skipSuccessfulRequests: true }), slow);
    await get(app);
    expect(store.calls).toEqual([expect.stringMatching(/^increment/)]);
  });
});

test('resetKey and getKey are those of the store', async () => {
  const store = new FixedStore();
  const middleware = rateLimit({ store });
  store.increment('ada');
  await expect(middleware.getKey('ada')).resolves.toMatchObject({ totalHits: 1 });
  await middleware.resetKey('ada');
  await expect(middleware.getKey('ada')).resolves.toBeUndefined();
  const { getKey } = rateLimit({ store: Object.assign(new FixedStore(), { get: undefined }) });
  await expect(getKey('ada')).rejects.toThrow(/^getKey: the store has no method get/);
});

test('keys become strings, and an array, which clients can send, is an error', async () => {
  const keys = [1, '1', ['a', 'b']];
  const store = new FixedStore();
  const middleware = rateLimit({ store, keyGenerator: () => keys.shift() });
  const answers = [1, 2, 3].map(() => callDirectly(middleware).calls);
  expect(answers).toEqual([[[]], [[]], [[withCode('ERR_ROLLGATE_ID')]]]);
  expect(store.get('1').totalHits).toBe(2);
  await expect(middleware.getKey(1)).resolves.toMatchObject({ totalHits: 2 });
  await middleware.resetKey(1);
  await expect(middleware.getKey(1)).resolves.toBeUndefined();
});

describe('a wrong store', () => {
  const complete = { increment() {}, decrement() {}, resetKey() {} };

  test.each([
    [{}, /'store': expected a store of express-rate-limit .*got an object/],
    [null, /'store'/],
    ['redis://127.0.0.1', /'store'/],
    [{ ...complete, decrement: 5 }, /'store'/],
    [
      { incr() {}, decrement() {}, resetKey() {} },
      /got an object\. Stores of express-rate-limit 5 and older are not supported\.$/,
    ],
    [{ ...complete, init: 'x' }, /'store\.init': expected a function/],
  ])('%p is refused', (store, message) => {
    expect(() => rateLimit({ store })).toThrow(message);
  });

  test.each([
    { limits: [{ windowMs: 1, limit: 1 }] },
    { cost: 2 },
    { algorithm: 'gcra' },
    { namespace: 'web' },
    { limiter: { attempt() {} } },
    { rules: [{ path: '/' }] },
  ])('is refused together with %j', (options) => {
    const together = () => rateLimit({ store: new FixedStore(), ...options });
    expect(together).toThrow(/conflicts with '(store|rules)'/);
  });

  test.each([
    [undefined],
    [{}],
    [{ totalHits: '1' }],
    [{ totalHits: 1.5 }],
    [{ totalHits: 1, resetTime: 5 }],
    [{ totalHits: 1, resetTime: new Date(Number.NaN) }],
  ])('that counts %j lets nobody pass', (hits) => {
    const middleware = rateLimit({ store: { ...complete, increment: () => hits } });
    expect(callDirectly(middleware).calls).toEqual([[withCode('ERR_ROLLGATE_STORE')]]);
    const passing = { passOnStoreError: true, logger: newLogger() };
    const store = { ...complete, increment: () => hits };
    expect(callDirectly(rateLimit({ store, ...passing })).calls).toEqual([[]]);
    expect(passing.logger.error).toHaveBeenCalledTimes(1);
  });

  test.each(FAILING(new Error('no connection')))('that %s fails the request', async (...row) => {
    const store = { ...complete, increment: row[1] };
    const { status, body } = await get(appWith(rateLimit({ store })));
    expect([status, body.message]).toEqual([500, 'no connection']);
  });
});

describe('init', () => {
  const failing = (init) => Object.assign(new FixedStore(), { init });

  test('gets the settings of the middleware', () => {
    const init = jest.fn();
    const store = failing(init);
    rateLimit({ store, max: 7, headers: false, prefix: undefined });
    expect(init).toHaveBeenCalledTimes(1);
    const [settings] = init.mock.calls[0];
    expect(settings).toMatchObject({ windowMs: 60_000, limit: 7, headers: false, store });
    expect(settings.legacyHeaders).toBe(false);
  });

  test('may be tried again after it threw, without a warning', () => {
    const init = jest.fn().mockImplementationOnce(() => {
      throw new Error('not yet');
    });
    const store = failing(init);
    const logger = newLogger();
    expect(() => rateLimit({ store, logger })).toThrow('not yet');
    rateLimit({ store, logger });
    expect(logger.warn).not.toHaveBeenCalled();
  });

  test('is reported if its promise is rejected', async () => {
    const error = new Error('later');
    const logger = newLogger();
    const app = appWith(rateLimit({ store: failing(() => Promise.reject(error)), logger }));
    expect((await get(app)).status).toBe(200);
    expect(logger.error.mock.calls).toEqual([[error, expect.stringContaining('store.init')]]);
  });

  test('of one store for two middlewares is warned of', () => {
    const store = new FixedStore();
    const logger = newLogger();
    rateLimit({ store, logger });
    expect(logger.warn).not.toHaveBeenCalled();
    rateLimit({ store, logger, validate: { unsharedStore: false } });
    expect(logger.warn).not.toHaveBeenCalled();
    rateLimit({ store, logger });
    expect(logger.warn.mock.calls).toEqual([[withCode('ROLLGATE_STORE_REUSED')]]);
  });
});

test('a request that passes two middlewares with one store is counted twice, which is warned of', async () => {
  const store = new FixedStore();
  const logger = newLogger();
  const options = { store, logger, validate: { unsharedStore: false } };
  await get(appWith(rateLimit(options), rateLimit(options)));
  expect(logger.warn.mock.calls).toEqual([[withCode('ROLLGATE_DOUBLE_COUNT')]]);
});

describe('the plugin of Fastify', () => {
  const { ready, start, statusesAt } = useFastify();

  test('counts in one; each route with limits of its own has its own', async () => {
    const routes = {
      '/': undefined,
      '/own': { store: new FixedStore(), limit: 2 },
      '/rolls': { shared: undefined, rules: [{ path: '/' }] },
    };
    const url = await start({ store: new FixedStore(), limit: 1, clock: undefined }, routes);
    expect(await statusesAt(url, '/', '/', '/own', '/own', '/own', '/rolls')).toEqual([
      200, 429, 200, 200, 429, 200,
    ]);
  });

  test('refuses a route that would count in the store of its scope', async () => {
    const options = { store: new FixedStore(), clock: undefined };
    await expect(ready(options, { limit: 1 })).rejects.toThrow(
      /'config\.rateLimit': the scope's 'store' cannot be shared/,
    );
  });
});
