// The options of a limiter on Redis: what is wrong is refused by name, and no message has a password.
'use strict';

const RateLimiter = require('../..');
const { readRedisOptions } = require('../../lib/redis/options');
const RollgateStore = require('../../lib/store');
const { EACH_CLIENT, EACH_CLUSTER_CLIENT, openings } = require('../support/redis-clients');
const { catchError } = require('../support/set-up');

const GOOD = { interval: 1000, maxInInterval: 1 };
const SECRET = 'Xyzzy';

const connectionOf = (redis) => readRedisOptions({ redis }).connection;

const DEFAULTS = {
  host: '127.0.0.1',
  port: 6379,
  path: undefined,
  cluster: undefined,
  username: undefined,
  password: undefined,
  db: 0,
  tls: undefined,
  connectTimeout: 2000,
  commandTimeout: 500,
  maxQueue: 10_000,
  retry: { min: 50, max: 2000 },
  connectionName: undefined,
};

describe('a connection', () => {
  const seeds = ['redis://u:p@one:1', 'redis://u:p@two'];
  const tls = { ca: 'certificate' };
  test.each([
    ['redis://', {}],
    ['redis://localhost', { host: 'localhost' }],
    ['REDIS://example.com:7000/3', { host: 'example.com', port: 7000, db: 3 }],
    ['redis://[::1]:7000', { host: '::1', port: 7000 }],
    ['redis:///5', { db: 5 }],
    ['redis://:p%40ss%2Fword@h', { host: 'h', password: 'p@ss/word' }],
    ['redis://user:pass@h/', { host: 'h', username: 'user', password: 'pass' }],
    ['rediss://h', { host: 'h', tls: {} }],
    ['unix:///tmp/redis.sock', { path: '/tmp/redis.sock' }],
    ['unix://:pass@/tmp/a%20b.sock?db=2', { path: '/tmp/a b.sock', password: 'pass', db: 2 }],
    ['unix://user:pass@/s', { path: '/s', username: 'user', password: 'pass' }],
    [{}, {}],
    [
      { host: 'h', port: 1, db: 2, password: 'p' },
      { host: 'h', port: 1, db: 2, password: 'p' },
    ],
    [
      { url: 'redis://h:1/2', db: 3, password: 'p' },
      { host: 'h', port: 1, db: 3, password: 'p' },
    ],
    [
      { url: 'rediss://h', tls },
      { host: 'h', tls },
    ],
    [{ url: 'rediss://h', tls: false }, { host: 'h' }],
    [
      { host: 'h', tls: true },
      { host: 'h', tls: {} },
    ],
    [
      { path: '/s', connectionName: 'web:1' },
      { path: '/s', connectionName: 'web:1' },
    ],
    [
      { connectTimeout: 1, commandTimeout: 2, maxQueue: 3, retry: { min: 4, max: 5 } },
      { connectTimeout: 1, commandTimeout: 2, maxQueue: 3, retry: { min: 4, max: 5 } },
    ],
    [{ retry: { min: 5000 } }, { retry: { min: 5000, max: 5000 } }],
    [{ host: undefined, url: undefined, tls: undefined }, {}],
    [
      { cluster: seeds },
      {
        cluster: [
          { host: 'one', port: 1 },
          { host: 'two', port: 6379 },
        ],
        username: 'u',
        password: 'p',
      },
    ],
  ])('%j', (redis, expected) => {
    expect(connectionOf(redis)).toEqual({ ...DEFAULTS, ...expected });
  });

  const { using, closeAll } = openings();
  afterAll(closeAll);
  const own = EACH_CLIENT.filter(([name]) => name !== 'native');
  const ownClusters = EACH_CLUSTER_CLIENT.filter(([name]) => name !== 'native');

  test.each(own)('%s is known, as it is and with options beside it', (name, open) => {
    const type = name.startsWith('ioredis') ? 'ioredis' : 'node-redis';
    const { client } = using(open('redis://127.0.0.1:1'));
    for (const options of [
      { redis: client },
      { client },
      { redis: client, client },
      { redis: { client, commandTimeout: 50, maxQueue: 5 } },
    ]) {
      expect(RateLimiter({ ...GOOD, ...options }).detectedClientType).toBe(type);
      expect(new RateLimiter.RedisRateLimiter({ ...GOOD, ...options }).detectedClientType).toBe(
        type,
      );
    }
    const { NodeRedisRateLimiter, IORedisRateLimiter, RedisRateLimiter } = RateLimiter;
    const [Right, Wrong] =
      type === 'ioredis'
        ? [IORedisRateLimiter, NodeRedisRateLimiter]
        : [NodeRedisRateLimiter, IORedisRateLimiter];
    expect(new Right({ ...GOOD, client })).toBeInstanceOf(RedisRateLimiter);
    const error = catchError(() => new Wrong({ ...GOOD, client }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    expect(error).toBeInstanceOf(TypeError);
    expect(RedisRateLimiter.determineRedisClientType(client)).toBe(type);
  });

  test.each(ownClusters)('a cluster of %s is known', (name, openCluster) => {
    const { client } = using(openCluster(['redis://127.0.0.1:1']));
    const { detectedClientType } = RateLimiter({ ...GOOD, redis: client });
    expect(detectedClientType).toBe(name.startsWith('ioredis') ? 'ioredis' : 'node-redis');
  });

  test.each([
    {},
    { url: undefined },
    { commandTimeout: 100, db: 1 },
    Object.create(null),
    { eval() {} },
    [],
  ])('client: %p is none, and says of no server where it is', (client) => {
    const { IORedisRateLimiter, NodeRedisRateLimiter, RedisRateLimiter } = RateLimiter;
    for (const Class of [RateLimiter, RedisRateLimiter, NodeRedisRateLimiter, IORedisRateLimiter]) {
      const error = catchError(() => new Class({ ...GOOD, client, namespace: 'n' }));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_ROLLGATE_OPTION');
      expect(error.message).toMatch(
        /^option 'client': expected a|^unknown option "eval" .* in client/,
      );
    }
  });

  test.each([
    { host: 'h' },
    { port: 1 },
    { url: 'redis://h' },
    { path: '/s' },
    { cluster: ['redis://h'] },
  ])('client: %p says where, as the option redis does', async (client) => {
    const limiter = new RateLimiter.RedisRateLimiter({ ...GOOD, client });
    expect(limiter.detectedClientType).toBe('hiredis');
    await limiter.close();
  });

  test('the classes want a client', () => {
    const { RedisRateLimiter, InMemoryRateLimiter } = RateLimiter;
    for (const wrong of [GOOD, undefined, null, { ...GOOD, client: {}, namespace: 'n' }]) {
      expect(catchError(() => new RedisRateLimiter(wrong)).code).toBe('ERR_ROLLGATE_OPTION');
    }
    const error = catchError(() => new InMemoryRateLimiter({ ...GOOD, redis: 'redis://h' }));
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
    expect(RedisRateLimiter.determineRedisClientType({})).toBe(null);
  });
});

const many = new Proxy({}, { get: () => () => {} });
const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();

describe('refused', () => {
  test.each([
    [{ redis: null }, TypeError, 'redis'],
    [{ redis: 5 }, TypeError, 'redis'],
    [{ redis: [] }, TypeError, 'redis'],
    [{ redis: () => {} }, TypeError, 'redis'],
    [{ redis: new Map() }, TypeError, 'redis'],
    [{ redis: new (class Client {})() }, TypeError, 'redis'],
    [{ redis: new URL('redis://h') }, TypeError, 'redis'],
    [{ client: 'x' }, TypeError, 'client'],
    [{ client: { sendCommand() {} } }, TypeError, 'sendCommand'],
    [{ redis: { client: {} } }, TypeError, 'redis.client'],
    [{ redis: { client: 'redis://h' } }, TypeError, 'redis.client'],
    [{ redis: 'redis://a', client: 'redis://b' }, TypeError, "'redis' and 'client'"],
    [{ redis: '' }, TypeError, 'redis'],
    [{ redis: 'localhost:6379' }, TypeError, 'redis'],
    [{ redis: 'http://localhost' }, TypeError, 'http://***'],
    [{ redis: 'redis://h:99999' }, TypeError, 'redis'],
    [{ redis: 'redis://h/x' }, RangeError, 'redis'],
    [{ redis: 'redis://h?x=1' }, TypeError, 'redis'],
    [{ redis: 'redis://%zz@h' }, TypeError, 'redis'],
    [{ redis: 'redis://h/2147483648' }, RangeError, 'redis'],
    [{ redis: { host: 'h@h' } }, RangeError, 'redis.host'],
    [{ redis: 'unix://relative' }, TypeError, 'redis'],
    [{ redis: { url: 5 } }, TypeError, 'redis.url'],
    [{ redis: { url: 'x' } }, TypeError, 'redis.url'],
    [{ redis: { url: 'redis://h', host: 'h' } }, TypeError, "'redis.url' and 'redis.host'"],
    [{ redis: { path: '/s', port: 5 } }, TypeError, "'redis.path' and 'redis.port'"],
    [{ redis: { host: '' } }, RangeError, 'redis.host'],
    [{ redis: { host: 5 } }, TypeError, 'redis.host'],
    [{ redis: { port: '6379' } }, TypeError, 'redis.port'],
    [{ redis: { port: 0 } }, RangeError, 'redis.port'],
    [{ redis: { port: 1.5 } }, RangeError, 'redis.port'],
    [{ redis: { path: '' } }, RangeError, 'redis.path'],
    [{ redis: { db: -1 } }, RangeError, 'redis.db'],
    [{ redis: { password: 12345 } }, TypeError, 'redis.password'],
    [{ redis: { username: 'u' } }, TypeError, 'redis.password'],
    [{ redis: { tls: 'yes' } }, TypeError, 'redis.tls'],
    [{ redis: { connectTimeout: 0 } }, RangeError, 'redis.connectTimeout'],
    [{ redis: { commandTimeout: '500' } }, TypeError, 'redis.commandTimeout'],
    [{ redis: { commandTimeout: Number.POSITIVE_INFINITY } }, RangeError, 'redis.commandTimeout'],
    [{ redis: { commandTimeout: 2 ** 31 } }, RangeError, 'redis.commandTimeout'],
    [{ redis: { maxQueue: 0 } }, RangeError, 'redis.maxQueue'],
    [{ redis: { retry: 5 } }, TypeError, 'redis.retry'],
    [{ redis: { retry: { min: 10, max: 5 } } }, RangeError, 'redis.retry.max'],
    [{ redis: { retry: { mix: 10 } } }, TypeError, "did you mean 'min'"],
    [{ redis: { connectionName: 'a b' } }, RangeError, 'redis.connectionName'],
    [{ redis: { hots: 'h' } }, TypeError, "did you mean 'host'"],
    [{ redis: { cluster: [] } }, TypeError, 'redis.cluster'],
    [{ redis: { cluster: ['unix:///s'] } }, TypeError, 'redis.cluster[0]'],
    [{ redis: { cluster: ['redis://h', 'redis://h/1'] } }, TypeError, 'redis.cluster[1]'],
    [{ redis: { cluster: ['redis://h', 'rediss://h'] } }, TypeError, 'redis.cluster[1]'],
    [{ redis: { cluster: ['redis://h'], db: 1 } }, RangeError, 'redis.db'],
    [{ redis: 'redis://h', namespace: '' }, RangeError, 'namespace'],
    [{ redis: 'redis://h', namespace: 5 }, TypeError, 'namespace'],
    [{ redis: 'redis://h', namespace: 'a{b' }, RangeError, 'namespace'],
    [{ redis: 'redis://h', namespace: 'a}' }, RangeError, 'namespace'],
    [{ redis: 'redis://h', namespace: '\ud800' }, RangeError, 'namespace'],
    [{ redis: 'redis://h', onError: 'ignore' }, TypeError, 'onError'],
    [{ redis: 'redis://h', onError: null }, TypeError, 'onError'],
    [{ redis: undefined, namespace: 'a{b' }, RangeError, 'namespace'],
    [{ redis: undefined, onError: 'ignore' }, TypeError, 'onError'],
    [{ commandTimeout: 5 }, TypeError, "only beside 'kv'"],
  ])('%p', (options, Class, part) => {
    const error = catchError(() => RateLimiter({ ...GOOD, ...options }));
    expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
    if (part !== 'sendCommand') expect(error.message).toContain(part);
  });

  test.each([{ redis: undefined }, { client: undefined }, {}])(
    'not a namespace and onError beside %p, a limiter in memory',
    (where) => {
      const options = { ...where, namespace: 'n', onError: 'memory' };
      expect(RateLimiter({ ...GOOD, ...options })('a')).toBe(0);
      RateLimiter.rateLimit({ ...options, rules: [{ path: '/', limit: 1 }] });
      expect(new RollgateStore(options).localKeys).toBe(true);
    },
  );

  test('a client beside which there is a connection', () => {
    const { using, closeAll } = openings();
    const { client } = using(EACH_CLIENT[1][1]('redis://127.0.0.1:1'));
    const error = catchError(() => RateLimiter({ ...GOOD, redis: { client, host: 'h' } }));
    expect(error.message).toContain("'redis.host'");
    return closeAll();
  });

  test('what pretends to be everything does not break construction', () => {
    expect(() => RateLimiter({ ...GOOD, redis: many })).not.toThrow(RangeError);
    const error = catchError(() => RateLimiter({ ...GOOD, redis: revoked }));
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
  });
});

describe('a password is in no message', () => {
  const urls = ['redis', 'rediss', 'unix', 'http', 'x'].flatMap((scheme) =>
    [
      `://:${SECRET}@h:99999`,
      `://user:${SECRET}@h/x`,
      `://user:${SECRET}@h?db=1`,
      `://${SECRET}`,
      `://:${SECRET}`,
      `://u:a/${SECRET}@h`,
      `://u:12/${SECRET}@h`,
      `://u:a?${SECRET}@h`,
      `://u:a#${SECRET}@h`,
      `://u:%zz${SECRET}@h`,
      `://u@${SECRET}@h/y`,
      `:${SECRET}@h`,
    ].map((rest) => `${scheme}${rest}`),
  );
  const bad = urls.filter((url) => catchError(() => readRedisOptions({ redis: url })));
  const good = `redis://user:${SECRET}@h:1`;

  test.each([
    ...bad.map((url) => [{ redis: url }]),
    ...bad.map((url) => [{ redis: { url } }]),
    ...bad.map((url) => [{ redis: { cluster: [url] } }]),
    [{ redis: { cluster: good } }],
    [{ redis: { cluster: [good, 'redis://h'] } }],
    [{ redis: { host: good } }],
    [{ redis: { host: `user:${SECRET}@h` } }],
    [{ redis: { port: good } }],
    [{ redis: { db: good } }],
    [{ redis: { tls: good } }],
    [{ redis: { commandTimeout: good } }],
    [{ redis: { client: good } }],
    [{ redis: { password: { SECRET } } }],
    [{ redis: { password: [SECRET] } }],
    [{ redis: { password: SECRET, port: -1 } }],
    [{ redis: good, onError: 'x' }],
    [{ redis: good, client: 'redis://other' }],
    [{ redis: good, namespace: `{${good}` }],
    [{ redis: good, [good]: 1 }],
    [{ interval: good }],
    [{ redis: new URL(good) }],
  ])('%#', (options) => {
    const error = catchError(() => RateLimiter({ ...GOOD, ...options }));
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
    for (const text of [error.message, String(error.stack), JSON.stringify(error)]) {
      expect(text).not.toContain(SECRET);
    }
    expect(error.cause).toBe(undefined);
  });

  test('nor shown with the limiter', () => {
    const { inspect } = require('node:util');
    const limiter = RateLimiter({ ...GOOD, redis: good });
    expect(inspect(limiter, { depth: 9 })).not.toContain(SECRET);
    expect(inspect(limiter.stats(), { depth: 9 })).not.toContain(SECRET);
  });

  test('and the messages of failures have none either', async () => {
    const limiter = RateLimiter({ ...GOOD, redis: `redis://user:${SECRET}@127.0.0.1:1` });
    await expect(limiter('a')).rejects.toMatchObject({
      message: expect.not.stringContaining(SECRET),
    });
  });
});

test('maxKeys bounds what onError: memory holds, so it goes with redis', () => {
  expect(() => RateLimiter({ ...GOOD, redis: 'redis://h', maxKeys: 5 })).not.toThrow();
});

test('a constructor does no I/O', () => {
  const before = process.getActiveResourcesInfo().length;
  for (const redis of [
    'redis://127.0.0.1:1',
    'unix:///none',
    { cluster: ['redis://127.0.0.1:1'] },
  ]) {
    RateLimiter({ ...GOOD, redis });
  }
  expect(process.getActiveResourcesInfo().length).toBe(before);
});
