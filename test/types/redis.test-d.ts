// What must compile for limiters on Redis, and what must not.
import { Cluster, Redis } from 'ioredis';
import { createClient, createClientPool, createCluster } from 'redis';
import { createClient as createClient4 } from 'redis-4';
import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd';

import RateLimiter = require('../../lib');

import {
  type AsyncRateLimiter,
  type Decision,
  type ErrorCode,
  IORedisRateLimiter,
  type LimitInfo,
  NodeRedisRateLimiter,
  type RateLimiterError,
  RedisRateLimiter,
  type RedisRateLimiterOptions,
  type RedisStats,
  rateLimit,
} from '../../lib';

const GOOD = { interval: 1000, maxInInterval: 10 };
const url = 'redis://localhost';
const ioredis = new Redis();
const ioredisCluster = new Cluster([]);
const nodeRedis = createClient();
const nodeRedisCluster = createCluster({ rootNodes: [] });

// Construction
const limiter = RateLimiter({ redis: url, namespace: 'n', onError: 'memory', ...GOOD });
expectType<AsyncRateLimiter>(limiter);
expectType<RateLimiter>(RateLimiter(GOOD));
expectType<AsyncRateLimiter>(new RateLimiter({ redis: url, ...GOOD }));
expectError(new RateLimiter({ redis: url, intervall: 5, ...GOOD }));
expectType<number>(RateLimiter(GOOD)('a'));
expectType<AsyncRateLimiter>(RateLimiter({ client: nodeRedis, ...GOOD }));
expectType<AsyncRateLimiter>(RateLimiter({ redis: { url }, limits: [GOOD] }));
for (const client of [ioredis, ioredisCluster, nodeRedis, nodeRedisCluster]) {
  RateLimiter({ redis: client, ...GOOD });
  RateLimiter({ redis: { client, commandTimeout: 5, maxQueue: 5 }, ...GOOD });
}
RateLimiter({ redis: createClientPool(), ...GOOD });
RateLimiter({ redis: createClient4(), ...GOOD });
RateLimiter({
  redis: {
    host: 'h',
    port: 1,
    username: 'u',
    password: 'p',
    db: 1,
    tls: { ca: 'x' },
    connectTimeout: 1,
    commandTimeout: 1,
    maxQueue: 1,
    retry: { min: 1, max: 2 },
    connectionName: 'n',
  },
  ...GOOD,
});
RateLimiter({ redis: { cluster: [url] }, ...GOOD });
RateLimiter({ redis: { path: '/tmp/redis.sock' }, clock: () => 0, countBlocked: false, ...GOOD });
expectAssignable<RedisRateLimiterOptions>({ redis: url, ...GOOD });

expectError(RateLimiter({ redis: 5, ...GOOD }));
expectError(RateLimiter({ redis: {}, interval: 5 }));
expectError(RateLimiter({ redis: { hots: 'h' }, ...GOOD }));
expectError(RateLimiter({ redis: { client: 5 }, ...GOOD }));
expectError(RateLimiter({ redis: { port: '6379' }, ...GOOD }));
expectError(RateLimiter({ redis: url, onError: 'ignore', ...GOOD }));
expectError(RateLimiter({ redis: url, namespace: 5, ...GOOD }));
expectType<RateLimiter>(RateLimiter({ namespace: 'n', onError: 'allow', ...GOOD }));
expectError(new RateLimiter.InMemoryRateLimiter({ redis: url, ...GOOD }));

// Redis where there is one
declare const maybe: { redis?: string | undefined; shared?: string | undefined };
const either = RateLimiter({ redis: maybe.redis, namespace: 'n', onError: 'memory', ...GOOD });
expectType<RateLimiter | AsyncRateLimiter>(either);
expectType<RateLimiter | AsyncRateLimiter>(new RateLimiter({ client: maybe.redis, ...GOOD }));
expectType<number | Promise<number>>(either('id'));
expectType<Decision | Promise<Decision>>(either.attempt('id', { cost: 2 }));
expectType<void>(either('id', (_error, timeLeft) => timeLeft));
expectType<Promise<void>>(either.clear('id'));
expectType<RateLimiter>(RateLimiter({ redis: undefined, client: undefined, ...GOOD }));
expectType<AsyncRateLimiter>(RateLimiter({ redis: url, client: undefined, ...GOOD }));
expectType<RateLimiter>(RateLimiter({ shared: maybe.shared, ...GOOD }));
rateLimit({ redis: maybe.redis, namespace: 'n' });
rateLimit({ limiter: either });
expectError(RateLimiter({ redis: maybe.redis, shared: 's', ...GOOD }));
expectError(RateLimiter({ redis: maybe.redis as string | number, ...GOOD }));

// Calling it
expectType<Promise<number>>(limiter());
expectType<Promise<number>>(limiter('id'));
expectType<Promise<number>>(limiter(1n, undefined));
expectType<void>(
  limiter('id', (error, timeLeft, actionsLeft) => {
    expectType<RateLimiterError | null>(error);
    expectType<number>(timeLeft);
    expectType<number>(actionsLeft);
  }),
);
expectType<void>(limiter((error: Error | null) => error));
expectError(limiter({}));
expectError(limiter('id', 'callback'));

// Methods
expectType<Promise<boolean>>(limiter.limit('id'));
expectType<Promise<boolean>>(limiter.wouldLimit('id'));
expectType<Promise<LimitInfo>>(limiter.limitWithInfo('id'));
expectType<Promise<LimitInfo>>(limiter.wouldLimitWithInfo('id'));
expectType<Promise<Decision>>(limiter.attempt('id', { cost: 2 }));
expectType<Promise<Decision>>(limiter.peek('id'));
expectType<Promise<Decision>>(limiter.wait('id', { cost: 2, deadline: 5 }));
expectError(limiter.wait('id', { deadline: 5n }));
expectType<Promise<Decision[]>>(limiter.attemptMany(['a', 1]));
expectType<Promise<void>>(limiter.clear('id'));
expectType<Promise<void>>(limiter.clearAll());
expectType<Promise<void>>(limiter.close());
expectType<RedisStats>(limiter.stats());
expectType<number>(limiter.stats().connection.pending);
expectType<'hiredis' | 'ioredis' | 'node-redis'>(limiter.detectedClientType);
declare const decision: Decision;
expectType<Promise<boolean>>(limiter.refund(decision));
expectType<null | 'count' | 'minDifference' | 'block'>(decision.blockedBy);
expectNotAssignable<RateLimiter>(limiter);
expectAssignable<ErrorCode>('ERR_ROLLGATE_REDIS_TIMEOUT');

// Classes
const classical = new RedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD });
expectAssignable<AsyncRateLimiter>(classical);
expectType<Promise<boolean>>(classical.limit('id'));
expectType<Promise<number>>(classical('id'));
new NodeRedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD });
new IORedisRateLimiter({ client: ioredis, namespace: 'n', ...GOOD });
expectType<'ioredis' | 'node-redis' | null>(RedisRateLimiter.determineRedisClientType(ioredis));
expectError(new NodeRedisRateLimiter({ client: ioredis, namespace: 'n', ...GOOD }));
expectError(new IORedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD }));
expectError(new RedisRateLimiter({ namespace: 'n', ...GOOD }));
expectError(RedisRateLimiter({ client: nodeRedis, ...GOOD }));

// Middleware
rateLimit({ redis: url, namespace: 'web', onError: 'allow', windowMs: 1000, limit: 5 });
rateLimit({ redis: ioredis });
rateLimit({ limiter });
rateLimit({ limiter: classical });
expectError(rateLimit({ redis: 5 }));
