// The middleware over stores outside the process: shared counts, headers as in memory, errors, blocks of all processes.
'use strict';

const { EventEmitter } = require('node:events');
const Redis = require('ioredis');
const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { startRedis } = require('../support/redis-server');
const { waitUntil } = require('../support/outcome');
const apps = require('./apps');

const { HOUR_MS, appWith, get, getTimes, newLogger, setUp, statusesOf, withCode } = apps;
const { rateLimit } = RateLimiter;
const MINUTE_MS = 60_000;

let server;
let client;
let namespaces = 0;
beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.url);
});
beforeEach(async () => {
  namespaces += 1;
  await server.command('FLUSHALL');
});
afterAll(() => client.disconnect());

/** The options of each way to a store that processes share. */
const WAYS = {
  'Redis, native': () => ({ redis: server.url }),
  'Redis, ioredis': () => ({ redis: client }),
  'a key-value store': () => ({ kv: createPlainKv() }),
};

describe.each(Object.entries(WAYS))('over %s', (_name, optionsOf) => {
  let store;
  beforeEach(() => {
    store = { ...optionsOf(), namespace: `middleware-${namespaces}` };
  });

  test('applications count together', async () => {
    const [one, two] = [1, 2].map(() => appWith(rateLimit({ ...store, limit: 2 })));
    const statuses = [];
    for (const app of [one, two, one, two]) statuses.push(...(await statusesOf(app, '/')));
    expect(statuses).toEqual([200, 200, 429, 429]);
  });

  test.each([true, 'draft-7', 'draft-8', 'draft-10'])(
    'the answers with standardHeaders %p are those of a limiter in memory',
    async (standardHeaders) => {
      const play = async (options) => {
        const limits = { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS };
        const shown = { standardHeaders, legacyHeaders: false, problemDetails: true };
        const answers = await getTimes(appWith(rateLimit({ ...limits, ...shown, ...options })), 3);
        return answers.map(({ status, text, headers: { date, ...headers } }) => {
          return { status, text, headers };
        });
      };
      expect(await play(store)).toEqual(await play({}));
    },
  );

  test('skipFailedRequests takes requests back, also if the client leaves during the decision', async () => {
    const limiter = RateLimiter({
      ...store,
      interval: HOUR_MS,
      maxInInterval: 2,
      countBlocked: false,
    });
    const middleware = rateLimit({ limiter, skipFailedRequests: true });
    const app = appWith(middleware);
    const used = async () => (await limiter.peek('127.0.0.1')).limits[0].used - 1; // the peek itself
    expect(await statusesOf(app, '/', '/missing')).toEqual([200, 404]);
    await waitUntil('the failed request is taken back', async () => (await used()) === 1);
    const res = Object.assign(new EventEmitter(), { headersSent: true, writableEnded: false });
    const done = middleware({ ip: '127.0.0.1' }, res, () => {});
    res.emit('close');
    await done;
    await waitUntil('the abandoned request is taken back', async () => (await used()) === 1);
    expect(await statusesOf(app, '/', '/')).toEqual([200, 429]);
    await limiter.close();
  });

  test('limit as a function judges one count', async () => {
    const limit = async (req) => Number(req.query.limit);
    const options = { ...store, limit, countBlocked: false, keyGenerator: () => 'k' };
    const middleware = rateLimit(options);
    const paths = [3, 3, 2, 3, 3, 0, 5].map((max) => `/?limit=${max}`);
    const statuses = await statusesOf(appWith(middleware), ...paths);
    expect(statuses).toEqual([200, 200, 429, 200, 429, 429, 200]);
    expect(await middleware.getKey('k')).toMatchObject({ totalHits: 4 });
    await middleware.resetKey('k');
    expect(await middleware.getKey('k')).toBe(undefined);
  });

  test('processes count together by rules in any order, each zone by itself', async () => {
    const rules = [
      { path: '/a', limit: 2 },
      { path: /^\/r/i, method: ['PUT', 'GET'], limit: 2 },
      { path: '/z', limit: 2, zone: 'shared {z}' },
      { path: '/p', limit: 2, perPath: true },
    ];
    const one = setUp(rules, store);
    const other = setUp([...rules.reverse(), { path: '/new', limit: 9 }], store);
    for (const path of ['/a', '/r', '/z', '/p/1']) {
      expect(await one.statuses(path)).toEqual([200]);
      expect(await other.statuses(path, path)).toEqual([200, 429]);
    }
    expect(await one.statuses('/p/2')).toEqual([200]);
    expect(await one.middleware.getKey('ada')).toMatchObject({ totalHits: 2 });
  });

  test('blockEverywhere refuses on every rule of every process', async () => {
    const block = { blockFor: MINUTE_MS, blockEverywhere: true };
    const one = setUp([{ path: '/login', limit: 1, windowMs: 1000, ...block }], store);
    const rules = [
      { path: '/trap', limit: 0, blockFor: 5 * MINUTE_MS, blockEverywhere: true },
      { path: '/x', limit: 2, windowMs: 1000, ...block },
    ];
    const { hand } = one;
    const other = setUp(rules, { ...store, clock: () => hand.now });
    expect(await one.statuses('/login', '/login')).toEqual([200, 429]);
    hand.now += MINUTE_MS - 1;
    expect(await other.statuses('/x')).toEqual([429]);
    hand.now += 1;
    expect(await other.statuses('/x', '/trap', '/x')).toEqual([200, 429, 429]);
    await other.middleware.resetKey('ada');
    expect(await other.statuses('/x')).toEqual([200]);
  });

  test('blockEverywhere follows a list of lengths', async () => {
    const lengths = [1000, 5000];
    const login = { path: '/login', limit: 1, windowMs: 30 * MINUTE_MS, blockFor: lengths };
    const rules = [
      { ...login, blockEverywhere: true },
      { path: '/', limit: 1000 },
    ];
    const { hand, statuses } = setUp(rules, store);
    await statuses('/login');
    for (const length of [...lengths, 5000]) {
      expect(await statuses('/', '/login', '/')).toEqual([200, 429, 429]);
      hand.now += length - 1;
      expect(await statuses('/')).toEqual([429]);
      hand.now += 1;
    }
  });

  test('a block of a shadow rule is recorded once, for the time that is left', async () => {
    const rule = {
      limit: 1,
      windowMs: 1000,
      zone: 'z',
      blockFor: MINUTE_MS,
      blockEverywhere: true,
    };
    const rules = [
      { path: '/new', ...rule, shadow: true },
      { path: '/login', ...rule },
      { path: '/x', limit: 100 },
    ];
    const { hand, statuses } = setUp(rules, store);
    expect(await statuses('/new', '/new', '/x')).toEqual([200, 200, 200]);
    hand.now += MINUTE_MS - 10_000;
    const answers = await Promise.all(Array.from({ length: 8 }, () => statuses('/login')));
    expect(answers).toEqual(answers.map(() => [429]));
    hand.now += 10_000 - 1;
    expect(await statuses('/x')).toEqual([429]);
    hand.now += 1;
    expect(await statuses('/x', '/login')).toEqual([200, 200]);
  });
});

test('on Redis each zone has a namespace, and a long path a short key', async () => {
  const names = ['a', 'b', 'A', 'a:paths', 'a b', 'a%20b', 'ä', 'shared {z}'];
  const rules = names.map((zone, i) => ({ path: `/${i}`, zone, limit: 1 }));
  const perPath = { path: '/path', zone: 'a', limit: 1, perPath: true };
  const own = { path: '/own', limit: 1 };
  const { statuses } = setUp([...rules, perPath, own], { redis: server.url, namespace: 'n' });
  const paths = [...names.map((_zone, i) => `/${i}`), '/path', `/path/${'x'.repeat(9000)}`, '/own'];
  expect(await statuses(...paths)).toEqual(paths.map(() => 200));
  expect(await statuses(...paths)).toEqual(paths.map(() => 429));
  const keys = await server.command('KEYS', '*');
  for (const key of keys) expect(key.length).toBeLessThan(120);
  const found = new Set(keys.map((key) => key.slice(0, key.indexOf('{'))));
  expect(found.size).toBe(paths.length - 1);
  expect(found).toContain('n:zone:shared%20%7Bz%7D');
  expect([...found].filter((name) => /^n:rule:[\w-]{16}$/.test(name))).toHaveLength(1);
});

test('a double count is a warning in one namespace, and none on two servers', async () => {
  const { url } = await startRedis();
  for (const [redis, expected] of [
    [server.url, [[withCode('ROLLGATE_DOUBLE_COUNT')]]],
    [url, []],
  ]) {
    const logger = newLogger();
    const options = { namespace: `twice-${namespaces}`, logger };
    const outer = rateLimit({ ...options, redis: server.url });
    expect(await statusesOf(appWith(outer, rateLimit({ ...options, redis })), '/')).toEqual([200]);
    expect(logger.warn.mock.calls).toEqual(expected);
  }
});

test.each([undefined, [{ path: '/', limit: 1, blockFor: 5, blockEverywhere: true }]])(
  'without its server, requests fail, pass or are decided by onError; rules: %j',
  async (rules) => {
    const gone = await startRedis();
    const logger = newLogger();
    const limits = rules === undefined ? { limit: 1 } : { rules };
    const common = { redis: gone.url, namespace: 'gone', logger, ...limits };
    const [failing, passing, ...deciding] = [
      {},
      { passOnStoreError: true },
      ...['allow', 'block', 'memory'].map((onError) => ({ onError })),
    ].map((options) => appWith(rateLimit({ ...common, ...options })));
    await gone.stop();
    const { status, body } = await get(failing);
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_REDIS_UNREACHABLE']);
    expect(await statusesOf(passing, '/')).toEqual([200]);
    expect(logger.error).toHaveBeenCalledTimes(1);
    const statuses = [];
    for (const app of deciding) statuses.push(await statusesOf(app, '/', '/'));
    expect(statuses).toEqual([
      [200, 200],
      [429, 429],
      [200, 429],
    ]);
  },
);
