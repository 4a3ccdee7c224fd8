// The middleware over each store outside the process: what processes count together, and what an outage does.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const Redis = require('ioredis');
const { rateLimit } = require('../..');
const { hasNativeRedis } = require('../support/bindings');
const { createPlainKv } = require('../support/kv-stores');
const { clientAt, redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { appWith, get, inTurn, newLogger, setUp, statusesOf, withCode } = require('./apps');

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
  ...(hasNativeRedis && { 'Redis, native': () => ({ redis: server.url }) }),
  'Redis, ioredis': () => ({ redis: client }),
  'a key-value store': () => ({ kv: createPlainKv() }),
};

describe.each(Object.entries(WAYS))('over %s', (_name, optionsOf) => {
  let store;
  beforeEach(() => {
    store = { ...optionsOf(), namespace: `middleware-${namespaces}` };
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

  // Kills: trials that publish decisions; a report that comes after next().
  test('a shadow rule counts for all processes, on its own channel', async () => {
    const rules = [
      { path: '/', limit: 1, zone: 'z', shadow: true },
      { path: '/', limit: 5, zone: 'z' },
    ];
    const decided = jest.fn();
    diagnostics.subscribe('rollgate:decision', decided);
    const [one, other] = [setUp(rules, store), setUp(rules, store)];
    const infos = [(await one.ask('/')).body, (await other.ask('/')).body];
    diagnostics.unsubscribe('rollgate:decision', decided);
    expect(infos.map(({ used, shadow }) => [used, shadow[0].allowed])).toEqual([
      [1, true],
      [2, false],
    ]);
    expect(decided).toHaveBeenCalledTimes(2);
  });

  test('a block of one zone is recorded once, for the time that is left', async () => {
    const rule = { limit: 1, windowMs: 1000, zone: 'z', blockFor: MINUTE_MS };
    const rules = [
      { path: '/new', ...rule },
      { path: '/login', ...rule, blockEverywhere: true },
      { path: '/x', limit: 100 },
    ];
    const { hand, statuses } = setUp(rules, store);
    expect(await statuses('/new', '/new', '/x')).toEqual([200, 429, 200]);
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
  const { statuses } = setUp([...rules, perPath, own], {
    redis: redisAt(server.url),
    namespace: 'n',
  });
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

test.each([...(hasNativeRedis ? [['URLs', (url) => url]] : []), ['clients', clientAt]])(
  'a double count is a warning in one namespace, and none on two servers: by %s',
  async (_, at) => {
    const { url } = await startRedis();
    for (const [redis, expected] of [
      [at(server.url), [[withCode('ROLLGATE_DOUBLE_COUNT')]]],
      [at(url), []],
    ]) {
      const logger = newLogger();
      const options = { namespace: `twice-${namespaces}`, logger };
      const outer = rateLimit({ ...options, redis: at(server.url) });
      expect(await statusesOf(appWith(outer, rateLimit({ ...options, redis })), '/')).toEqual([
        200,
      ]);
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
    const [failing, passing, ...deciding] = [
      {},
      { passOnStoreError: true },
      ...['allow', 'block', 'memory'].map((onError) => ({ onError })),
    ].map((options) => appWith(rateLimit({ ...common, ...options })));
    await gone.stop();
    const { status, body } = await get(failing);
    // A client of ioredis queues commands while it connects again.
    const why = hasNativeRedis ? 'UNREACHABLE' : 'TIMEOUT';
    expect([status, body.code]).toEqual([500, `ERR_ROLLGATE_REDIS_${why}`]);
    expect(await statusesOf(passing, '/')).toEqual([200]);
    expect(logger.error).toHaveBeenCalledTimes(1);
    const statuses = await inTurn(deciding, (app) => statusesOf(app, '/', '/'));
    expect(statuses).toEqual([
      [200, 200],
      [429, 429],
      [200, 429],
    ]);
  },
);
