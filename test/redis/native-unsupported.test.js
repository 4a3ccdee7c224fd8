// Where there is no native Redis client: every way to ask for it is refused when the limiter is made.
'use strict';

const Fastify = require('fastify');
const { Redis } = require('ioredis');
const RateLimiter = require('../..');
const rollgate = require('../../lib/fastify');
const RollgateStore = require('../../lib/store');
const native = require('../../lib/native').loadAddon();
const { catchError } = require('../support/set-up');

const { rateLimit, RedisRateLimiter } = RateLimiter;
const GOOD = { interval: 1000, maxInInterval: 1 };
const redis = 'redis://127.0.0.1';

const { versions } = process;
const setVersions = (value) => Object.defineProperty(process, 'versions', { value });

const WAYS = {
  'RateLimiter with a URL': () => RateLimiter({ redis, ...GOOD }),
  'RateLimiter with TLS': () => RateLimiter({ redis: 'rediss://127.0.0.1', ...GOOD }),
  'RateLimiter with an object': () => RateLimiter({ redis: { port: 6379 }, ...GOOD }),
  'RateLimiter with a cluster': () => RateLimiter({ redis: { cluster: [redis] }, ...GOOD }),
  'RateLimiter with client': () => RateLimiter({ client: redis, ...GOOD }),
  RedisRateLimiter: () => new RedisRateLimiter({ redis, ...GOOD }),
  rateLimit: () => rateLimit({ redis }),
  'rateLimit that refuses everything': () => rateLimit({ redis, limit: 0 }),
  'rateLimit with a function': () => rateLimit({ redis, limit: () => 5 }),
  'rateLimit with rules': () => rateLimit({ redis, rules: [{ path: '/', limit: 1 }] }),
  RollgateStore: () => new RollgateStore({ redis }),
};

describe.each([
  ['bun', 'Bun'],
  ['deno', 'Deno'],
])('on %s', (runtime, name) => {
  const refusal = {
    code: 'ERR_ROLLGATE_UNSUPPORTED',
    message: `the native Redis client needs libuv, which ${name} does not have: give 'redis' a client of ioredis or redis (node-redis)`,
  };

  beforeEach(() => setVersions({ ...versions, [runtime]: '1.2.3' }));
  afterEach(() => setVersions(versions));

  test.each(Object.keys(WAYS))('%s is refused', (way) => {
    expect(catchError(WAYS[way])).toMatchObject(refusal);
  });

  test('the Fastify plugin is refused, for a scope and for a route', async () => {
    const ofScope = Fastify();
    ofScope.register(rollgate, { redis });
    await expect(ofScope.ready()).rejects.toMatchObject(refusal);

    const ofRoute = Fastify();
    ofRoute.register(rollgate, { limit: 5 });
    ofRoute.register(async (scope) => {
      scope.get('/', { config: { rateLimit: { redis } } }, async () => 'welcome');
    });
    await expect(ofRoute.ready()).rejects.toMatchObject(refusal);
  });

  test('a client of ioredis and a limiter in memory are not', () => {
    const client = new Redis({ lazyConnect: true });
    expect(RateLimiter({ redis: client, ...GOOD }).detectedClientType).toBe('ioredis');
    expect(RateLimiter(GOOD)('a')).toBe(0);
  });

  test('a wrong option is told of first', () => {
    const error = catchError(() => RateLimiter({ redis: 'http://127.0.0.1', ...GOOD }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  });
});

describe('in a build without it', () => {
  const { createRedisClient } = native;
  beforeEach(() => Object.assign(native, { createRedisClient: undefined }));
  afterEach(() => Object.assign(native, { createRedisClient }));

  test.each(Object.keys(WAYS))('%s is refused', (way) => {
    expect(catchError(WAYS[way])).toMatchObject({
      code: 'ERR_ROLLGATE_UNSUPPORTED',
      message: expect.stringMatching(/not in this build.*install hiredis.*ioredis or redis/),
    });
  });
});
