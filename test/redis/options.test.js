// The options of a limiter on Redis: what is wrong is refused by name, and no message has a password.
'use strict';

const { inspect } = require('node:util');
const Fastify = require('fastify');
const { Redis } = require('ioredis');
const RateLimiter = require('../..');
const rollgateFastify = require('../../lib/adapters/fastify');
const native = require('../../lib/native/addon').loadAddon();
const { readConnectionOptions } = require('../../lib/stores/redis/connection-options');
const RollgateStore = require('../../lib/adapters/express-rate-limit-store');
const { EACH_CLIENT, EACH_CLUSTER_CLIENT, openings } = require('../support/redis-clients');
const { catchError } = require('../support/set-up');

const { InMemoryRateLimiter, IORedisRateLimiter, NodeRedisRateLimiter } = RateLimiter;
const { rateLimit, RedisRateLimiter } = RateLimiter;
const GOOD = { interval: 1000, maxInInterval: 1 };
const SECRET = 'Xyzzy';
/** All else is undefined. */
const DEFAULTS = {
  host: '127.0.0.1',
  port: 6379,
  db: 0,
  connectTimeout: 2000,
  commandTimeout: 500,
  maxQueue: 10_000,
  retry: { min: 50, max: 2000 },
};

const { using, closeAll } = openings();
const anyClient = () => using({ client: new Redis({ lazyConnect: true }) }).client;
afterEach(closeAll);

describe('a connection', () => {
  const ofTls = (options, expected = options) => [
    { host: 'h', tls: options },
    { host: 'h', tls: expected },
  ];
  const asGiven = [
    {},
    { host: 'h', port: 1, db: 2, password: 'p' },
    { path: '/s', connectionName: 'web:1' },
    { connectTimeout: 1, commandTimeout: 2, maxQueue: 3, retry: { min: 4, max: 5 } },
  ];
  const seeds = ['one', 'two'].map((host) => ({ host, port: host === 'one' ? 1 : 6379 }));
  test.each([
    ...asGiven.map((options) => [options, options]),
    ['redis://', {}],
    ['REDIS://example.com:7000/3', { host: 'example.com', port: 7000, db: 3 }],
    ['redis://[::1]:7000', { host: '::1', port: 7000 }],
    ['redis://:p%40ss%2Fword@h', { host: 'h', password: 'p@ss/word' }],
    ['rediss://h', { host: 'h', tls: {} }],
    ['unix://:pass@/tmp/a%20b.sock?db=2', { path: '/tmp/a b.sock', password: 'pass', db: 2 }],
    ['unix://user:pass@/s', { path: '/s', username: 'user', password: 'pass' }],
    [
      { url: 'redis://h:1/2', db: 3 },
      { host: 'h', port: 1, db: 3 },
    ],
    [
      { url: 'rediss://h', tls: { servername: 's' } },
      { host: 'h', tls: { servername: 's' } },
    ],
    [{ path: '/s', tls: false }, { path: '/s' }],
    ofTls(true, {}),
    ofTls({ ca: ['one', Buffer.from('other')] }, { ca: ['one', 'other'] }),
    ofTls(
      { cert: 'c', key: Buffer.from('k'), passphrase: 'p' },
      { cert: 'c', key: 'k', passphrase: 'p' },
    ),
    ofTls({ ciphers: 'A:TLS_B:C', maxVersion: 'TLSv1.2', sigalgs: 'RSA+SHA256' }),
    [{ cluster: ['rediss://h'] }, { cluster: [{ host: 'h', port: 6379 }], tls: {} }],
    [{ retry: { min: 5000 } }, { retry: { min: 5000, max: 5000 } }],
    [{ host: undefined, url: undefined, tls: undefined }, {}],
    [
      { cluster: ['redis://u:p@one:1', 'redis://u:p@two'] },
      { cluster: seeds, username: 'u', password: 'p' },
    ],
  ])('%j', (redis, expected) => {
    expect(readConnectionOptions('redis', redis)).toEqual({ ...DEFAULTS, ...expected });
  });
});

describe('a client', () => {
  const isUsers = ([name]) => name !== 'native';
  const typeOf = (name) => (name.startsWith('ioredis') ? 'ioredis' : 'node-redis');

  test.each(EACH_CLIENT.filter(isUsers))('%s is known, alone and with options', (name, open) => {
    const type = typeOf(name);
    const { client } = using(open('redis://127.0.0.1:1'));
    for (const options of [
      { redis: client },
      { client },
      { redis: client, client },
      { redis: { client, commandTimeout: 50, maxQueue: 5 }, maxKeys: 5 },
    ]) {
      expect(RateLimiter({ ...GOOD, ...options }).detectedClientType).toBe(type);
      expect(new RedisRateLimiter({ ...GOOD, ...options }).detectedClientType).toBe(type);
    }
    const classes = [IORedisRateLimiter, NodeRedisRateLimiter];
    const [Right, Wrong] = type === 'ioredis' ? classes : classes.reverse();
    expect(new Right({ ...GOOD, client })).toBeInstanceOf(RedisRateLimiter);
    const error = catchError(() => new Wrong({ ...GOOD, client }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    expect(error).toBeInstanceOf(TypeError);
    expect(RedisRateLimiter.determineRedisClientType(client)).toBe(type);
  });

  test.each(EACH_CLUSTER_CLIENT.filter(isUsers))('a cluster of %s is known', (name, open) => {
    const { client } = using(open(['redis://127.0.0.1:1']));
    expect(RateLimiter({ ...GOOD, redis: client }).detectedClientType).toBe(typeOf(name));
  });

  test.each([
    ...[{}, { url: undefined }, { commandTimeout: 100, db: 1 }],
    ...[Object.create(null), { eval() {} }, []],
  ])('%p is none, and has no address of a server', (client) => {
    for (const Class of [RateLimiter, RedisRateLimiter, NodeRedisRateLimiter, IORedisRateLimiter]) {
      const error = catchError(() => new Class({ ...GOOD, client, namespace: 'n' }));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_ROLLGATE_OPTION');
      expect(error.message).toMatch(
        /^option 'client': expected a|^unknown option "eval" in client/,
      );
    }
  });

  test.each([{ host: 'h' }, { cluster: ['redis://h'] }])(
    'may be the options of a connection: %p',
    async (client) => {
      const limiter = new RedisRateLimiter({ ...GOOD, client });
      expect(limiter.detectedClientType).toBe('hiredis');
      await limiter.close();
    },
  );

  test('is needed by the classes of Redis, and refused by that of memory', () => {
    for (const wrong of [GOOD, undefined, null, { ...GOOD, client: {}, namespace: 'n' }]) {
      expect(catchError(() => new RedisRateLimiter(wrong)).code).toBe('ERR_ROLLGATE_OPTION');
    }
    const error = catchError(() => new InMemoryRateLimiter({ ...GOOD, redis: 'redis://h' }));
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
    expect(RedisRateLimiter.determineRedisClientType({})).toBe(null);
  });

  test('that pretends to have every property does not break construction', () => {
    const all = new Proxy({}, { get: () => () => {} });
    expect(() => RateLimiter({ ...GOOD, redis: all })).not.toThrow(RangeError);
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const error = catchError(() => RateLimiter({ ...GOOD, redis: proxy }));
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
  });
});

describe('refused', () => {
  const redis = 'redis://h';
  const expectRefusal = (options, Class, part) => {
    const error = catchError(() => RateLimiter({ ...GOOD, ...options }));
    expect([options, Object.getPrototypeOf(error)]).toEqual([options, Class.prototype]);
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
    expect(error.message).toContain(part);
  };

  test.each([
    ['client', TypeError, {}, 'redis://h'],
    ['url', TypeError, 5, 'x'],
    ['host', TypeError, 5],
    ['host', RangeError, '', 'h@h'],
    ['port', TypeError, '6379'],
    ['port', RangeError, 0, 1.5],
    ['path', RangeError, ''],
    ['db', RangeError, -1],
    ['password', TypeError, 12345],
    ['connectTimeout', RangeError, 0],
    ['commandTimeout', TypeError, '500'],
    ['commandTimeout', RangeError, Number.POSITIVE_INFINITY, 2 ** 31],
    ['maxQueue', RangeError, 0],
    ['retry', TypeError, 5],
    ['retry.max', RangeError, { min: 10, max: 5 }],
    ['connectionName', RangeError, 'a b'],
    ['cluster', TypeError, []],
    ['cluster[0]', TypeError, ['unix:///s']],
    ['cluster[1]', TypeError, ['redis://h', 'redis://h/1'], ['redis://h', 'rediss://h']],
    ['tls', TypeError, 'yes'],
    ['tls.ca', TypeError, { ca: [] }],
    ['tls.ca[0]', TypeError, { ca: [5] }],
    ['tls.cert', TypeError, { cert: {} }],
    ["tls.cert': requires 'redis.tls.key'", TypeError, { cert: 'c' }],
    ['tls.key', TypeError, { key: 5 }],
    ["tls.key': requires 'redis.tls.cert'", TypeError, { key: 'k' }],
    ['tls.passphrase', TypeError, { passphrase: 5 }],
    ['tls.servername', TypeError, { servername: 5 }],
    ['tls.rejectUnauthorized', TypeError, { rejectUnauthorized: 'no' }],
    ['tls.minVersion', RangeError, { minVersion: 'TLSv1.1' }],
    ['tls.maxVersion', RangeError, { maxVersion: 'TLSv1.1' }],
    ['tls.minDHSize', RangeError, { minDHSize: 0 }],
    ['tls.secureOptions', TypeError, { secureOptions: 5n }],
    ['tls.secureContext', TypeError, { secureContext: {} }],
    ['tls.checkServerIdentity', TypeError, { checkServerIdentity: 5 }],
    ['tls.ALPNProtocols', TypeError, { ALPNProtocols: 5 }],
    ['tls.ALPNProtocols[0]', RangeError, { ALPNProtocols: ['é'.repeat(128)] }],
    ['tls.ecdhCurve', TypeError, { ecdhCurve: 5n }],
    ['tls.sigalgs', RangeError, { sigalgs: '' }],
    ['tls.crl', TypeError, { crl: 5n }],
    ['tls.pfx', TypeError, { pfx: 'p' }],
    ['tls.ciphers', RangeError, { ciphers: ':' }],
  ])('redis.%s, with a %p', (name, Class, ...wrong) => {
    const [option] = name.split(/[^a-zA-Z]/);
    for (const value of wrong)
      expectRefusal({ redis: { [option]: value } }, Class, `redis.${name}`);
  });

  test.each([
    ...[null, 5, [], () => {}, new Map(), new (class Client {})(), new URL('redis://h')].map(
      (wrong) => [{ redis: wrong }, TypeError, "'redis'"],
    ),
    ...['', 'localhost:6379', 'redis://h:99999', 'redis://h?x=1', 'unix://relative'].map(
      (wrong) => [{ redis: wrong }, TypeError, "'redis'"],
    ),
    [{ redis: 'http://localhost' }, TypeError, 'http://***'],
    [{ redis: 'redis://h/x' }, RangeError, 'redis'],
    [{ redis: 'redis://h/2147483648' }, RangeError, 'redis'],
    [{ client: 'x' }, TypeError, "'client'"],
    [{ redis: { client: anyClient(), host: 'h' } }, TypeError, "'redis.host'"],
    [{ redis: 'redis://a', client: 'redis://b' }, TypeError, "'redis' and 'client'"],
    [{ redis: { url: 'redis://h', host: 'h' } }, TypeError, "'redis.url' and 'redis.host'"],
    [{ redis: { path: '/s', port: 5 } }, TypeError, "'redis.path' and 'redis.port'"],
    [{ redis: { username: 'u' } }, TypeError, 'redis.password'],
    [{ redis: { tls: { socket: {} } } }, TypeError, 'unknown option "socket"'],
    [{ redis: { url: 'rediss://h', tls: false } }, TypeError, 'conflicts with a rediss:// URL'],
    [{ redis: { cluster: ['rediss://h'], tls: false } }, TypeError, 'redis.tls'],
    [{ redis: { path: '/s', tls: true } }, TypeError, 'a unix socket, which has no TLS'],
    [{ redis: { retry: { mix: 10 } } }, TypeError, "did you mean 'min'"],
    [{ redis: { hots: 'h' } }, TypeError, "did you mean 'host'"],
    [{ redis: { cluster: ['redis://h'], db: 1 } }, RangeError, 'redis.db'],
    ...['', 'a{b', 'a}', '\ud800'].map((namespace) => [
      { redis, namespace },
      RangeError,
      'namespace',
    ]),
    [{ redis, namespace: 5 }, TypeError, 'namespace'],
    [{ redis, onError: 'ignore' }, TypeError, 'onError'],
    [{ redis: undefined, namespace: 'a{b' }, RangeError, 'namespace'],
    [{ redis: undefined, onError: 'ignore' }, TypeError, 'onError'],
    [{ commandTimeout: 5 }, TypeError, "requires 'kv'"],
  ])('%p', expectRefusal);

  test.each([{ redis: undefined }, {}])(
    'not a namespace and onError beside %p, a limiter in memory',
    (where) => {
      const options = { ...where, namespace: 'n', onError: 'memory' };
      expect(RateLimiter({ ...GOOD, ...options })('a')).toBe(0);
      rateLimit({ ...options, rules: [{ path: '/', limit: 1 }] });
      expect(new RollgateStore(options).localKeys).toBe(true);
    },
  );
});

describe('a password is in no message', () => {
  const good = `redis://user:${SECRET}@h:1`;
  const rests = [
    ...[`://:${SECRET}@h:99999`, `://user:${SECRET}@h/x`, `://user:${SECRET}@h?db=1`],
    ...[`://${SECRET}`, `://:${SECRET}`, `://u:a/${SECRET}@h`, `://u:12/${SECRET}@h`],
    ...[`://u:a?${SECRET}@h`, `://u:a#${SECRET}@h`, `://u:%zz${SECRET}@h`],
    ...[`://u@${SECRET}@h/y`, `:${SECRET}@h`],
  ];
  const bad = ['redis', 'rediss', 'unix', 'http', 'x']
    .flatMap((scheme) => rests.map((rest) => scheme + rest))
    .filter((url) => catchError(() => readConnectionOptions('redis', url)));

  test.each([
    ...bad.map((url) => [{ redis: url }]),
    ...bad.map((url) => [{ redis: { url } }]),
    ...bad.map((url) => [{ redis: { cluster: [url] } }]),
    ...['cluster', 'host', 'port', 'db', 'tls', 'commandTimeout', 'client'].map((name) => [
      { redis: { [name]: good } },
    ]),
    [{ redis: { cluster: [good, 'redis://h'] } }],
    [{ redis: { host: `user:${SECRET}@h` } }],
    [{ redis: { password: { SECRET } } }],
    [{ redis: { password: [SECRET] } }],
    [{ redis: { password: SECRET, port: -1 } }],
    [{ redis: { tls: { key: [SECRET] } } }],
    [{ redis: { tls: { passphrase: { SECRET } } } }],
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

  test('nor shown with the limiter, nor in failures', async () => {
    const limiter = RateLimiter({ ...GOOD, redis: `redis://user:${SECRET}@127.0.0.1:1` });
    for (const shown of [limiter, limiter.stats()]) {
      expect(inspect(shown, { depth: 9 })).not.toContain(SECRET);
    }
    await expect(limiter('a')).rejects.toMatchObject({
      message: expect.not.stringContaining(SECRET),
    });
  });
});

describe('without a native client', () => {
  const redis = 'redis://127.0.0.1';
  const { createRedisClient } = native;
  beforeEach(() => Object.assign(native, { createRedisClient: undefined }));
  afterEach(() => Object.assign(native, { createRedisClient }));

  const WAYS = {
    'RateLimiter with a URL': () => RateLimiter({ redis, ...GOOD }),
    RedisRateLimiter: () => new RedisRateLimiter({ redis, ...GOOD }),
    'rateLimit that refuses everything': () => rateLimit({ redis, limit: 0 }),
    'rateLimit with a function': () => rateLimit({ redis, limit: () => 5 }),
    'rateLimit with rules': () => rateLimit({ redis, rules: [{ path: '/', limit: 1 }] }),
    RollgateStore: () => new RollgateStore({ redis }),
  };

  const refusal = {
    code: 'ERR_ROLLGATE_UNSUPPORTED',
    message: expect.stringMatching(/not in this build.*install hiredis.*ioredis or redis/),
  };

  test.each(Object.keys(WAYS))('%s is refused', (way) => {
    expect(catchError(WAYS[way])).toMatchObject(refusal);
  });

  test('the Fastify plugin is refused, for a scope and for a route', async () => {
    const ofScope = Fastify();
    ofScope.register(rollgateFastify, { redis });
    await expect(ofScope.ready()).rejects.toMatchObject(refusal);
    const ofRoute = Fastify();
    ofRoute.register(rollgateFastify, { limit: 5 });
    ofRoute.register(async (scope) => {
      scope.get('/', { config: { rateLimit: { redis } } }, async () => 'welcome');
    });
    await expect(ofRoute.ready()).rejects.toMatchObject(refusal);
  });

  test("a user's client and a limiter in memory are not, and a wrong option is named first", () => {
    expect(RateLimiter({ redis: anyClient(), ...GOOD }).detectedClientType).toBe('ioredis');
    expect(RateLimiter(GOOD)('a')).toBe(0);
    const error = catchError(() => RateLimiter({ redis: 'http://127.0.0.1', ...GOOD }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  });
});
