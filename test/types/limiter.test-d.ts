// What must compile against the types of limiters on every store, and what must not.
import { openKv } from '@deno/kv';
import { Cluster, Redis } from 'ioredis';
import { createClient, createClientPool, createCluster } from 'redis';
import { createClient as createClient4 } from 'redis-4';
import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd';

import RateLimiter = require('../../lib/types/index');

import {
  type AsyncRateLimiter,
  type Decision,
  type DenoKv,
  type ErrorCode,
  InMemoryRateLimiter,
  IORedisRateLimiter,
  type KvRateLimiterOptions,
  type LimitInfo,
  NodeRedisRateLimiter,
  type RateLimiterError,
  type RateLimiterOptions,
  type RedisConnection,
  RedisRateLimiter,
  type RedisRateLimiterOptions,
  type RemoteRateLimiter,
  type RemoteStats,
  type SharedOptions,
  type SharedRateLimiterOptions,
  type Stats,
  setAddonPath,
  unlinkShared,
  type WaitOptions,
  type WindowState,
} from '../../lib/types/index';

const GOOD = { interval: 1000, maxInInterval: 10 };
const url = 'redis://localhost';
declare const maybe: { redis?: string | undefined; shared?: string | undefined };

const limiter = new RateLimiter(GOOD);

// The addon
expectType<string>(RateLimiter.addonPath());
expectType<void>(setAddonPath('/app/rollgate.node'));
expectType<void>(setAddonPath(new URL('file:///app/rollgate.node')));
expectError(setAddonPath());
expectError(setAddonPath(5));

// Construction
expectType<RateLimiter>(limiter);
expectType<typeof RateLimiter>(RateLimiter.RateLimiter);
expectAssignable<RateLimiter>(new InMemoryRateLimiter(GOOD));
expectType<InMemoryRateLimiter>(new RateLimiter.InMemoryRateLimiter(GOOD));
RateLimiter({ ...GOOD, minDifference: 5, countBlocked: false, clock: () => 5, maxKeys: 1000 });
RateLimiter({ limits: [{ ...GOOD, minDifference: 1 }, GOOD], interval: 5, countBlocked: true });
RateLimiter({ interval: 1, maxInInterval: 1, minDifference: undefined, limits: undefined });
declare const severalLimits: readonly { interval: number; maxInInterval: number }[];
RateLimiter({ limits: severalLimits });
class Named extends RateLimiter {
  name2 = 'mine';
}
expectType<number>(new Named(GOOD)('a'));
class NamedInMemory extends InMemoryRateLimiter {}
expectType<Promise<boolean>>(new NamedInMemory(GOOD).limit('a'));

expectError(RateLimiter());
expectError(RateLimiter({ interval: 1000 }));
expectError(RateLimiter({ interval: '1000', maxInInterval: 10 }));
expectError(RateLimiter({ ...GOOD, minDifference: '1' }));
expectError(RateLimiter({ ...GOOD, minDiference: 1 }));
expectError(RateLimiter({ ...GOOD, countBlocked: 'no' }));
expectError(RateLimiter({ ...GOOD, algorithm: 'leaky-bucket' }));
RateLimiter({ ...GOOD, algorithm: 'gcra', blockFor: 5000 });
RateLimiter({ limits: [GOOD], blockFor: [1000, 60_000] as const });
expectError(RateLimiter({ ...GOOD, blockFor: '5s' }));
expectError(RateLimiter({ ...GOOD, clock: 5 }));
expectError(RateLimiter({ ...GOOD, clock: () => '5' }));
expectError(RateLimiter({ ...GOOD, maxKeys: '5' }));
RateLimiter({
  limits: [
    { ...GOOD, name: 'requests' },
    { windowMs: 1000, limit: 5 },
  ],
});
RateLimiter({ limits: [{ windowMs: 1000, maxInInterval: 5, name: undefined }] });
expectError(RateLimiter({ limits: [{ interval: 1000 }] }));
expectError(RateLimiter({ limits: [{ limit: 5, name: 'tokens' }] }));
expectError(RateLimiter({ limits: [{ ...GOOD, name: 5 }] }));
expectError(RateLimiter({ ...GOOD, name: 'requests' }));
expectError(RateLimiter({ limits: [{ interval: 1, maxInInterval: 1, countBlocked: true }] }));
expectError(RateLimiter({ limits: GOOD }));
expectError(InMemoryRateLimiter(GOOD));
expectError(new InMemoryRateLimiter({ interval: 1000 }));

// Calling it
expectType<number>(limiter());
expectType<number>(limiter('id'));
expectType<number>(limiter(1n));
expectType<number>(limiter(null));
expectType<number>(limiter('id', undefined));
expectType<void>(
  limiter((error, timeLeft, actionsLeft) => {
    expectType<RateLimiterError | null>(error);
    expectType<number>(timeLeft);
    expectType<number>(actionsLeft);
  }),
);
expectType<void>(limiter('id', (error: Error | null, timeLeft: number) => [error, timeLeft]));
expectType<void>(limiter(undefined, (error: NodeJS.ErrnoException | null) => error?.code));

expectError(limiter(true));
expectError(limiter({}));
expectError(limiter('id', (error: string) => error));
expectError(limiter('id', () => {}, 1));

// A limiter is a function
expectType<number>(limiter.call(undefined, 'id'));
expectAssignable<(id: string) => number>(limiter);
expectAssignable<(id: string) => number>(limiter.bind(null));

// Methods
expectType<Promise<boolean>>(limiter.limit('id'));
expectType<Promise<boolean>>(limiter.wouldLimit());
expectType<Promise<LimitInfo>>(limiter.limitWithInfo(1));
expectType<Promise<LimitInfo>>(limiter.wouldLimitWithInfo(1n));
expectType<Decision>(limiter.attempt());
expectType<Decision>(limiter.attempt('id', { cost: 2 }));
expectType<Decision>(limiter.peek('id', {}));
expectType<Promise<Decision>>(limiter.wait());
expectType<Promise<Decision>>(
  limiter.wait(1n, { cost: 2, signal: AbortSignal.timeout(1), deadline: 5, maxQueue: 5 }),
);
expectType<Promise<Decision>>(limiter.wait(null, { signal: undefined, deadline: undefined }));
expectAssignable<WaitOptions>({ cost: 1, priority: 3 });
expectNotAssignable<WaitOptions>({ priority: 4 });
expectType<Decision[]>(limiter.attemptMany(['a', 1, 2n, null, undefined]));
declare const manyIds: readonly string[];
expectType<Decision[]>(limiter.attemptMany(manyIds));
expectType<boolean>(limiter.refund(limiter.attempt('id')));
expectType<boolean>(limiter.settle(limiter.attempt('id'), 0));
expectType<boolean>(limiter.settle(limiter.peek('id'), { tokens: 5, requests: undefined }));
expectType<RateLimiter.Usage>(limiter.usage('id'));
expectType<readonly WindowState[]>(limiter.usage().limits);
expectType<RateLimiter.AttemptAllResult>(RateLimiter.attemptAll([{ limiter, id: 1, cost: 2 }]));
expectType<number | null>(RateLimiter.attemptAll([{ limiter }]).refusedBy);
const together = RateLimiter.attemptAll([{ limiter }]);
if (together.allowed) expectType<readonly Decision[]>(together.decisions);
else expectType<number>(together.refusedBy);
expectError(RateLimiter.attemptAll([{ id: 1 }]));
expectError(RateLimiter.attemptAll([{ limiter, cost: 'all' }]));
expectType<void>(limiter.setLimits([GOOD]));
expectType<void>(limiter.setLimits([{ windowMs: 5, limit: 2, name: 'tokens', minDifference: 1 }]));
expectType<Promise<void>>(limiter.block('id', 1000));
expectType<Promise<void>>(limiter.clear('id'));
expectType<Promise<void>>(limiter.clear());
expectType<Promise<void>>(limiter.clearAll());
expectType<Stats>(limiter.stats());
expectType<Promise<void>>(limiter.close());

expectError(limiter.limit(true));
expectError(limiter.limit('id', () => {}));
expectError(limiter.wait({}));
expectError(limiter.wait('id', 5));
expectError(limiter.wait('id', { deadline: '5' }));
expectError(limiter.wait('id', { signal: new AbortController() }));
expectError(limiter.wait('id', { timeout: 5 }));
expectError(limiter.attempt('id', { deadline: 5 }));
expectError(limiter.attempt('id', { cost: '2' }));
expectError(limiter.attempt('id', { costs: 2 }));
expectError(limiter.attempt('id', { cost: { tokens: '2' } }));
expectError(limiter.attempt('id', { cost: { tokens: null } }));
expectError(limiter.settle(limiter.attempt('id')));
expectError(limiter.settle(limiter.attempt('id'), '2'));
expectError(limiter.settle({ allowed: true }, 2));
expectError(limiter.setLimits(GOOD));
expectError(limiter.setLimits());
expectError(limiter.setLimits([{ interval: 5 }]));
expectError(limiter.block('id'));
expectError(limiter.block('id', '5'));
expectError(limiter.block({}, 5));

// Calendar windows
const DAY = { calendar: 'day', limit: 5 } as const;
RateLimiter({ algorithm: 'fixed-window', limits: [{ ...DAY, timeZone: 'Europe/Berlin' }, GOOD] });
RateLimiter({ limits: [{ calendar: 'month', maxInInterval: 5, startsOn: 17, name: 'calls' }] });
RateLimiter({ limits: [{ ...DAY, calendar: 'year', startsOn: '02-29', minDifference: 1 }] });
RateLimiter({ limits: [{ ...DAY, interval: undefined, timeZone: undefined }] });
limiter.setLimits([{ calendar: 'week', limit: 5, startsOn: 7 }]);
expectError(RateLimiter({ limits: [{ ...DAY, calendar: 'fortnight' }] }));
expectError(RateLimiter({ limits: [{ ...DAY, interval: 5 }] }));
expectError(RateLimiter({ limits: [{ ...DAY, startsOn: 5 }] }));
expectError(RateLimiter({ limits: [{ ...DAY, calendar: 'month', startsOn: '01-01' }] }));
expectError(RateLimiter({ limits: [{ ...DAY, calendar: 'year', startsOn: 1 }] }));
expectError(RateLimiter({ limits: [{ ...GOOD, timeZone: 'UTC' }] }));
expectError(RateLimiter({ ...DAY, maxInInterval: 5, algorithm: 'fixed-window' }));

// Limits and calendars of a call, and what has already happened
const TERMS = {
  limits: { calls: 5, bytes: 0 },
  calendar: { timeZone: 'UTC', startsOn: 5 },
} as const;
expectType<Decision>(limiter.attempt('id', { cost: 2, limits: 5 }));
expectType<Decision>(limiter.peek('id', TERMS));
expectType<RateLimiter.Usage>(limiter.usage('id', TERMS));
expectType<Promise<Decision>>(limiter.wait('id', { ...TERMS, priority: 1 }));
RateLimiter.attemptAll([{ limiter, ...TERMS }]);
expectType<RateLimiter.Usage>(limiter.record());
expectType<RateLimiter.Usage>(limiter.record('id', { cost: { calls: 5 }, calendar: {} }));
expectError(limiter.attempt('id', { limits: '5' }));
expectType<Decision>(limiter.attempt('id', { limits: { calls: undefined } }));
expectError(limiter.attempt('id', { calendar: { calendar: 'day' } }));
expectError(limiter.usage('id', { cost: 5 }));
expectError(limiter.record('id', { limits: 5 }));
expectError(limiter.attemptMany(['id'], { limits: 5 }));
expectError(limiter('id', { limits: 5 }));

// Costs by name of a limit
const COSTS = { requests: 1, tokens: 4000 } as const;
expectAssignable<RateLimiter.Cost>(COSTS);
expectType<Decision>(limiter.attempt('id', { cost: COSTS }));
expectType<Decision>(limiter.peek('id', { cost: { tokens: 0 } }));
expectType<Promise<Decision>>(limiter.wait('id', { cost: COSTS }));
RateLimiter.attemptAll([{ limiter, cost: COSTS }]);
expectType<string | undefined>(limiter.usage().limits[0]?.name);
expectError(limiter.peek(false));
expectError(limiter.attemptMany('id'));
expectError(limiter.refund('id'));
expectError(limiter.refund({ allowed: true }));
expectError(limiter.refund(limiter.limitWithInfo('id')));

// What they answer
const decision = limiter.attempt('id');
expectType<boolean>(decision.allowed);
expectType<number>(decision.timeLeft);
expectType<number>(decision.actionsLeft);
expectType<number>(decision.resetIn);
expectType<null | 'count' | 'minDifference' | 'block'>(decision.blockedBy);
expectType<readonly WindowState[]>(decision.limits);
type Numbers<Names extends string> = { [name in Names]: number };
const window = decision.limits[0] as WindowState;
expectType<number>(window.maxInInterval + window.used + window.remaining + window.resetIn);
if (window.calendar === undefined) expectType<number>(window.interval);
else expectType<'hour' | 'day' | 'week' | 'month' | 'year'>(window.calendar);
expectError(decision.limits.push());
expectError(decision.timeLeft++);
expectError(decision.then);
expectType<{
  blocked: boolean;
  blockedDueToCount: boolean;
  blockedDueToMinDifference: boolean;
  millisecondsUntilAllowed: number;
  actionsRemaining: number;
}>({ ...({} as LimitInfo) });
expectType<Numbers<'keys' | 'allowed' | 'blocked' | 'recorded' | 'evicted' | 'errors' | 'bytes'>>({
  ...limiter.stats(),
});

// Errors
declare const error: RateLimiterError;
expectAssignable<Error>(error);
expectType<ErrorCode>(error.code);
expectAssignable<ErrorCode>('ERR_ROLLGATE_CLOSED');
expectNotAssignable<ErrorCode>('ERR_ROLLGATE_OTHER');
expectNotAssignable<RateLimiterOptions>({ interval: '1', maxInInterval: 1 });

// Shared memory
{
  const region: SharedOptions = { name: 'api', maxKeys: 1000, room: 200, directory: '/dev/shm' };
  const limiter = RateLimiter({ shared: 'api', ...GOOD });
  expectType<RateLimiter>(limiter);
  expectType<RateLimiter>(new RateLimiter({ shared: region, ...GOOD }));
  expectAssignable<SharedRateLimiterOptions>({ shared: region, limits: [GOOD] });
  RateLimiter({ shared: maybe.shared, ...GOOD });

  expectError(RateLimiter({ shared: 5, ...GOOD }));
  expectError(RateLimiter({ shared: { name: 'api', size: 5 }, ...GOOD }));
  expectError(RateLimiter({ shared: 'api', redis: 'redis://localhost', ...GOOD }));
  expectError(RateLimiter({ shared: 'api', namespace: 'n', ...GOOD }));
  expectError(RateLimiter({ shared: 'api', onError: 'allow', ...GOOD }));
  expectError(RateLimiter({ shared: 'api', localRefusals: true, ...GOOD }));
  expectError(RateLimiter({ shared: 'api', lease: 100, ...GOOD }));
  expectError(new InMemoryRateLimiter({ shared: 'api', ...GOOD }));

  // The file
  expectType<boolean>(unlinkShared('api'));
  expectType<boolean>(RateLimiter.unlinkShared(region));
  expectError(RateLimiter.unlinkShared());
  expectError(RateLimiter.unlinkShared({ directory: '/dev/shm' }));
  expectAssignable<ErrorCode>('ERR_ROLLGATE_SHARED_CORRUPT');
}

// Redis
{
  const ioredis = new Redis();
  const ioredisCluster = new Cluster([]);
  const nodeRedis = createClient();
  const nodeRedisCluster = createCluster({ rootNodes: [] });

  // Construction
  const limiter = RateLimiter({ redis: url, namespace: 'n', onError: 'memory', ...GOOD });
  expectType<AsyncRateLimiter>(limiter);
  expectType<AsyncRateLimiter>(new RateLimiter({ redis: url, ...GOOD }));
  expectError(new RateLimiter({ redis: url, intervall: 5, ...GOOD }));
  expectType<AsyncRateLimiter>(RateLimiter({ client: nodeRedis, ...GOOD }));
  expectType<AsyncRateLimiter>(RateLimiter({ redis: { url }, limits: [GOOD] }));
  for (const client of [ioredis, ioredisCluster, nodeRedis, nodeRedisCluster]) {
    RateLimiter({ redis: client, ...GOOD });
    RateLimiter({ redis: { client, commandTimeout: 5, maxQueue: 5 }, ...GOOD });
  }
  RateLimiter({ redis: createClientPool(), ...GOOD });
  RateLimiter({ redis: createClient4(), ...GOOD });
  const tls = { ca: ['x', Buffer.from('y')], minVersion: 'TLSv1.3', ciphers: 'c' } as const;
  const login = { username: 'u', password: 'p', db: 1, connectionName: 'n', tls };
  const timing = { connectTimeout: 1, commandTimeout: 1, maxQueue: 1, retry: { min: 1, max: 2 } };
  RateLimiter({ redis: { host: 'h', port: 1, ...login, ...timing }, ...GOOD });
  RateLimiter({ redis: { cluster: [url] }, ...GOOD });
  RateLimiter({ redis: { path: '/tmp/redis.sock' }, clock: () => 0, countBlocked: false, ...GOOD });
  expectAssignable<RedisRateLimiterOptions>({ redis: url, ...GOOD });

  const connection = RateLimiter.createRedisConnection({ url, credentials: () => login });
  expectType<RedisConnection>(connection);
  expectType<AsyncRateLimiter>(RateLimiter({ connection, ...GOOD }));
  expectType<AsyncRateLimiter>(RateLimiter({ redis: connection, namespace: 'n', ...GOOD }));
  expectAssignable<RedisRateLimiter>(new RedisRateLimiter({ connection, ...GOOD }));
  expectError(RateLimiter({ connection: url, ...GOOD }));
  expectNotAssignable<RedisConnection>({ maxQueue: 5, isCluster: false });
  expectError(RateLimiter.createRedisConnection(url, { commandTimeout: 5 }));
  expectError(RateLimiter.createRedisConnection());
  expectError(RateLimiter.createRedisConnection({ credentials: () => 'secret' }));
  const sentinels = ['redis://one', { host: 'two' }, { port: 3 }];
  RateLimiter({ redis: { sentinels, name: 'm', sentinelPassword: 'p' }, ...GOOD });
  const addressMap = { 'a:1': { host: 'h', port: 1 } };
  RateLimiter({ redis: { cluster: [url], addressMap, credentials: async () => login }, ...GOOD });
  RateLimiter({
    redis: { cluster: [url], addressMap: (at: string) => ({ host: at, port: 1 }) },
    ...GOOD,
  });
  expectError(RateLimiter({ redis: { cluster: [url], addressMap: { 'a:1': 'b:2' } }, ...GOOD }));
  expectError(RateLimiter({ redis: 5, ...GOOD }));
  expectError(RateLimiter({ redis: { hots: 'h' }, ...GOOD }));
  expectError(RateLimiter({ redis: { port: '6379' }, ...GOOD }));
  expectError(RateLimiter({ redis: { tls: { minVersion: 'TLSv1.1' } }, ...GOOD }));
  expectError(RateLimiter({ redis: { tls: { secureContext: {} } }, ...GOOD }));
  expectError(RateLimiter({ redis: url, onError: 'ignore', ...GOOD }));
  expectError(RateLimiter({ redis: url, namespace: 5, ...GOOD }));
  RateLimiter({ redis: url, countBlocked: false, localRefusals: true, ...GOOD });
  expectError(RateLimiter({ redis: url, countBlocked: false, localRefusals: 1, ...GOOD }));
  const leasing = RateLimiter({ redis: url, countBlocked: false, lease: 100, ...GOOD });
  expectType<AsyncRateLimiter>(leasing);
  const { leases, leased, returned, local } = leasing.stats();
  expectType<(number | undefined)[]>([leases, leased, returned, local]);
  RateLimiter({ redis: maybe.redis, countBlocked: false, lease: undefined, ...GOOD });
  expectError(RateLimiter({ redis: url, countBlocked: false, lease: '100', ...GOOD }));
  expectError(RateLimiter({ redis: url, countBlocked: false, lease: true, ...GOOD }));
  expectAssignable<RateLimiter.RedisMessage>({
    ...{ type: 'call', limiter: leasing, command: 'lease', ids: 1, durationMs: 1, error: null },
  });
  expectType<RateLimiter>(RateLimiter({ namespace: 'n', onError: 'allow', ...GOOD }));
  expectError(new RateLimiter.InMemoryRateLimiter({ redis: url, ...GOOD }));

  // Redis where there is one
  const either = RateLimiter({ redis: maybe.redis, namespace: 'n', onError: 'memory', ...GOOD });
  expectType<RateLimiter | AsyncRateLimiter>(either);
  expectType<RateLimiter | AsyncRateLimiter>(new RateLimiter({ client: maybe.redis, ...GOOD }));
  expectType<number | Promise<number>>(either('id'));
  expectType<Decision | Promise<Decision>>(either.attempt('id', { cost: 2 }));
  expectType<void>(either('id', (_error, timeLeft) => timeLeft));
  expectType<Promise<void>>(either.clear('id'));
  expectType<RateLimiter>(RateLimiter({ redis: undefined, client: undefined, ...GOOD }));
  expectType<AsyncRateLimiter>(RateLimiter({ redis: url, client: undefined, ...GOOD }));
  expectError(RateLimiter({ redis: maybe.redis, shared: 's', ...GOOD }));
  expectError(RateLimiter({ redis: maybe.redis as string | number, ...GOOD }));

  // Calls
  expectType<Promise<number>>(limiter('id'));
  expectType<void>(limiter((error: Error | null) => error));
  expectType<Promise<boolean>>(limiter.limit('id'));
  expectType<Promise<LimitInfo>>(limiter.limitWithInfo('id'));
  expectType<Promise<Decision>>(limiter.attempt('id', { cost: 2 }));
  expectType<Promise<boolean>>(limiter.settle(await limiter.attempt('id'), { tokens: 5 }));
  expectType<Promise<Decision>>(limiter.peek('id'));
  expectType<Promise<Decision>>(limiter.wait('id', { cost: 2, deadline: 5 }));
  expectType<Promise<Decision[]>>(limiter.attemptMany(['a', 1]));
  expectType<Promise<void>>(limiter.clear('id'));
  expectType<Promise<void>>(limiter.clearAll());
  expectType<Promise<void>>(limiter.close());
  expectType<RemoteStats>(limiter.stats());
  expectType<number>(limiter.stats().connection.pending);
  expectType<'hiredis' | 'ioredis' | 'node-redis'>(limiter.detectedClientType);
  expectType<Promise<boolean>>(limiter.refund(decision));
  expectType<Promise<RateLimiter.Usage>>(limiter.usage());
  expectType<void>(limiter.setLimits([GOOD]));
  expectType<Promise<void>>(limiter.block('id', 0));
  const entry = { limiter, id: 'id' };
  expectType<RateLimiter.AttemptAllResult | Promise<RateLimiter.AttemptAllResult>>(
    RateLimiter.attemptAll([entry]),
  );
  expectNotAssignable<RateLimiter>(limiter);
  expectAssignable<ErrorCode>('ERR_ROLLGATE_REDIS_TIMEOUT');

  // Classes
  const classical = new RedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD });
  expectAssignable<AsyncRateLimiter>(classical);
  new NodeRedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD });
  new IORedisRateLimiter({ client: ioredis, namespace: 'n', ...GOOD });
  expectType<'ioredis' | 'node-redis' | null>(RedisRateLimiter.determineRedisClientType(ioredis));
  expectError(new NodeRedisRateLimiter({ client: ioredis, namespace: 'n', ...GOOD }));
  expectError(new IORedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD }));
  expectError(new RedisRateLimiter({ namespace: 'n', ...GOOD }));
  expectError(RedisRateLimiter({ client: nodeRedis, ...GOOD }));
}

// Key-value stores
{
  const NAMED = { ...GOOD, namespace: 'n' };
  const atOnce = { get: (_key: string) => null, set: () => true };
  const numbered = {
    async get(_key: string) {
      return { value: new Uint8Array(), version: 5 };
    },
    async set(_key: string, _value: Uint8Array, _version: number | null, _ttlMs: number) {
      return true;
    },
    async delete(_key: string) {},
    async *list(prefix: string) {
      yield prefix;
    },
  };

  // Construction
  (async () => {
    const kv = await openKv('limits.db');
    expectAssignable<DenoKv>(kv);
    const limiter = RateLimiter({ kv, onError: 'memory', commandTimeout: 5, ...NAMED });
    expectType<RemoteRateLimiter>(limiter);
  })();
  const limiter = RateLimiter({ kv: numbered, ...NAMED });
  expectType<RemoteRateLimiter>(new RateLimiter({ kv: numbered, ...NAMED }));
  expectType<RemoteRateLimiter>(limiter);
  RateLimiter({ kv: atOnce, namespace: 'n', limits: severalLimits });
  const kv = numbered;
  expectAssignable<KvRateLimiterOptions>({ kv, clock: Date.now, countBlocked: false, ...NAMED });

  expectError(RateLimiter({ kv: numbered, interval: 1000, maxInInterval: 10 }));
  expectError(new RateLimiter({ kv: 'limits.db', ...NAMED }));
  expectError(RateLimiter({ kv: openKv('limits.db'), ...NAMED }));
  expectError(RateLimiter({ kv: new Map<string, Uint8Array>(), ...NAMED }));
  expectError(RateLimiter({ kv: { ...atOnce, set: () => 'OK' }, ...NAMED }));
  expectError(RateLimiter({ kv: { ...atOnce, get: () => 'text' }, ...NAMED }));
  expectError(RateLimiter({ kv: numbered, redis: 'redis://localhost', ...NAMED }));
  expectError(RateLimiter({ kv: numbered, localRefusals: true, ...NAMED }));
  expectError(RateLimiter({ kv: numbered, lease: 100, ...NAMED }));
  expectError(RateLimiter({ redis: 'redis://localhost', commandTimeout: 5, ...NAMED }));
  expectError(RateLimiter({ commandTimeout: 5, interval: 1000, maxInInterval: 10 }));

  expectType<RemoteStats>(limiter.stats());
  expectType<number>(limiter.stats().localRefusals);
  expectAssignable<RemoteRateLimiter>(RateLimiter({ redis: url, ...GOOD }));
  expectError(limiter.detectedClientType);
  expectAssignable<ErrorCode>('ERR_ROLLGATE_KV');
}
