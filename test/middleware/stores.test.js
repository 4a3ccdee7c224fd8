// The middleware over Redis: what processes count together, where, and what an outage does.
'use strict';

const { rateLimit } = require('../..');
const { hasNativeRedis } = require('../support/bindings');
const { clientAt, redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { appWith, get, inTurn, newLogger, setUp, statusesOf, withCode } = require('./apps');

const MINUTE_MS = 60_000;

let server;
beforeAll(async () => {
  server = await startRedis();
});
beforeEach(() => server.command('FLUSHALL'));

const processWith = (rules, options) =>
  setUp(rules, { redis: redisAt(server.url), namespace: 'n', ...options });

test('processes count together by rules in any order, each zone by itself', async () => {
  const rules = [
    { path: '/a', limit: 2 },
    { path: /^\/r/i, method: ['PUT', 'GET'], limit: 2 },
    { path: '/z', limit: 2, zone: 'shared {z}' },
    { path: '/p', limit: 2, perPath: true },
  ];
  const trial = { path: '/', limit: 1, shadow: true };
  const one = processWith([trial, ...rules]);
  const other = processWith([...rules.reverse(), trial, { path: '/new', limit: 9 }]);
  for (const path of ['/a', '/r', '/z', '/p/1']) {
    expect(await one.statuses(path)).toEqual([200]);
    expect(await other.statuses(path, path)).toEqual([200, 429]);
  }
  expect(await one.statuses('/p/2')).toEqual([200]);
  expect(await one.middleware.getKey('ada')).toMatchObject({ totalHits: 2 });
  const { body } = await other.ask('/new');
  expect([body.used, body.shadow[0].allowed]).toEqual([1, false]);
});

test('blockEverywhere refuses on every rule of every process', async () => {
  const block = { blockFor: MINUTE_MS, blockEverywhere: true };
  const one = processWith([{ path: '/login', limit: 1, windowMs: 1000, ...block }]);
  const { hand } = one;
  const trap = { path: '/trap', limit: 0, blockFor: 5 * MINUTE_MS, blockEverywhere: true };
  const rules = [trap, { path: '/x', limit: 2, windowMs: 1000, ...block }];
  const other = processWith(rules, { clock: () => hand.now });
  expect(await one.statuses('/login', '/login')).toEqual([200, 429]);
  hand.now += MINUTE_MS - 1;
  expect(await other.statuses('/x')).toEqual([429]);
  hand.now += 1;
  expect(await other.statuses('/x', '/trap', '/x')).toEqual([200, 429, 429]);
  await other.middleware.resetKey('ada');
  expect(await other.statuses('/x')).toEqual([200]);
});

test('each zone has a namespace, and a long path a short key', async () => {
  const names = ['a', 'b', 'A', 'a:paths', 'a b', 'a%20b', 'ä', 'shared {z}'];
  const rules = names.map((zone, i) => ({ path: `/${i}`, zone, limit: 1 }));
  const perPath = { path: '/path', zone: 'a', limit: 1, perPath: true };
  const { statuses } = processWith([...rules, perPath, { path: '/own', limit: 1 }]);
  const long = `/path/${'x'.repeat(9000)}`;
  const paths = [...names.map((_zone, i) => `/${i}`), '/path', long, '/own'];
  expect(await statuses(...paths)).toEqual(paths.map(() => 200));
  expect(await statuses(...paths)).toEqual(paths.map(() => 429));
  const keys = await server.command('KEYS', '*');
  for (const key of keys) expect(key.length).toBeLessThan(120);
  const found = new Set(keys.map((key) => key.slice(0, key.indexOf('{'))));
  expect(found.size).toBe(paths.length - 1);
  expect(found).toContain('n:zone:shared%20%7Bz%7D');
  expect([...found].filter((name) => /^n:rule:[\w-]{16}$/.test(name))).toHaveLength(1);
});

test.each([...(hasNativeRedis ? [['URLs', (url) => url]] : []), ['clients', clientAt]])(
  'a double count is a warning in one namespace, and none on two servers: by %s',
  async (_, at) => {
    const { url } = await startRedis();
    for (const [other, expected] of [
      [server.url, [[withCode('ROLLGATE_DOUBLE_COUNT')]]],
      [url, []],
    ]) {
      const logger = newLogger();
      const both = [server.url, other].map((place) =>
        rateLimit({ namespace: 'twice', logger, redis: at(place) }),
      );
      expect(await statusesOf(appWith(...both), '/')).toEqual([200]);
      expect(logger.warn.mock.calls).toEqual(expected);
    }
  },
);

test.each([undefined, [{ path: '/', limit: 1, blockFor: 5, blockEverywhere: true }]])(
  'without its server, requests fail, pass or are decided by onError; rules: %j',
  async (rules) => {
    const gone = await startRedis();
    const logger = newLogger();
    const limits = rules === undefined ? { limit: 1 } : { rules };
    const common = { redis: redisAt(gone.url), namespace: 'gone', logger, ...limits };
    const appOf = (options) => appWith(rateLimit({ ...common, ...options }));
    const [failing, passing] = [appOf({}), appOf({ passOnStoreError: true })];
    const deciding = ['allow', 'block', 'memory'].map((onError) => appOf({ onError }));
    await gone.stop();
    const { status, body } = await get(failing);
    // A client of ioredis queues commands while it connects again.
    const why = hasNativeRedis ? 'UNREACHABLE' : 'TIMEOUT';
    expect([status, body.code]).toEqual([500, `ERR_ROLLGATE_REDIS_${why}`]);
    expect(await statusesOf(passing, '/')).toEqual([200]);
    expect(logger.error).toHaveBeenCalledTimes(1);
    expect(await inTurn(deciding, (app) => statusesOf(app, '/', '/'))).toEqual([
      [200, 200],
      [429, 429],
      [200, 429],
    ]);
  },
);
