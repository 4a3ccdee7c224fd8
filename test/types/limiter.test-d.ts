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
  NodeRedisRateLimiter,
  type RateLimiterError,
  type RedisConnection,
  RedisRateLimiter,
  type RemoteRateLimiter,
  type SharedOptions,
  type SharedRateLimiterOptions,
  setAddonPath,
  type WaitOptions,
  type WindowState,
} from '../../lib/types/index';

const GOOD = { interval: 1000, maxInInterval: 10 };
const url = 'redis://localhost';
declare const maybe: { redis?: string | undefined; shared?: string | undefined };

const limiter = new RateLimiter(GOOD);

// The addon
expectType<void>(setAddonPath(new URL('file:///app/rollgate.node')));

// Construction
expectType<RateLimiter>(limiter);
expectType<InMemoryRateLimiter>(new RateLimiter.InMemoryRateLimiter(GOOD));
RateLimiter({ ...GOOD, minDifference: 5, countBlocked: false, clock: () => 5, maxKeys: 1000 });
RateLimiter({ limits: [{ ...GOOD, minDifference: 1 }, GOOD], interval: 5, countBlocked: true });
declare const severalLimits: readonly { interval: number; maxInInterval: number }[];
RateLimiter({ limits: severalLimits });
class Named extends RateLimiter {
  name2 = 'mine';
}
expectType<number>(new Named(GOOD)('a'));
class NamedInMemory extends InMemoryRateLimiter {}
expectType<Promise<boolean>>(new NamedInMemory(GOOD).limit('a'));

expectError(RateLimiter({ interval: 1000 }));
expectError(RateLimiter({ interval: '1000', maxInInterval: 10 }));
expectError(RateLimiter({ ...GOOD, minDiference: 1 }));
expectError(RateLimiter({ ...GOOD, algorithm: 'leaky-bucket' }));
expectError(RateLimiter({ ...GOOD, clock: () => '5' }));
RateLimiter({
  limits: [
    { ...GOOD, name: 'requests' },
    { windowMs: 1000, limit: 5 },
  ],
});
RateLimiter({ limits: [{ windowMs: 1000, maxInInterval: 5, name: undefined }] });
expectError(RateLimiter({ limits: [{ interval: 1000 }] }));
expectError(RateLimiter({ limits: [{ limit: 5, name: 'tokens' }] }));
expectError(RateLimiter({ ...GOOD, name: 'requests' }));
expectError(RateLimiter({ limits: [{ interval: 1, maxInInterval: 1, countBlocked: true }] }));
expectError(InMemoryRateLimiter(GOOD));
expectError(new InMemoryRateLimiter({ interval: 1000 }));

// Calling it
expectType<number>(limiter('id'));
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
expectError(limiter('id', (error: string) => error));
expectError(limiter('id', { limits: 5 }));

// A limiter is a function
expectAssignable<(id: string) => number>(limiter);
expectAssignable<(id: string) => number>(limiter.bind(null));

// Methods
expectType<Decision>(limiter.attempt('id', { cost: 2 }));
expectType<Promise<Decision>>(
  limiter.wait(1n, { cost: 2, signal: AbortSignal.timeout(1), deadline: 5, maxQueue: 5 }),
);
expectNotAssignable<WaitOptions>({ priority: 4 });
expectType<Decision[]>(limiter.attemptMany(['a', 1, 2n, null, undefined]));
declare const manyIds: readonly string[];
expectType<Decision[]>(limiter.attemptMany(manyIds));
expectType<boolean>(limiter.settle(limiter.peek('id'), { tokens: 5, requests: undefined }));
const together = RateLimiter.attemptAll([{ limiter }]);
if (together.allowed) expectType<readonly Decision[]>(together.decisions);
else expectType<number>(together.refusedBy);
expectError(RateLimiter.attemptAll([{ id: 1 }]));
expectType<void>(limiter.setLimits([{ windowMs: 5, limit: 2, name: 'tokens', minDifference: 1 }]));

expectError(limiter.wait('id', { signal: new AbortController() }));
expectError(limiter.attempt('id', { deadline: 5 }));
expectError(limiter.attempt('id', { cost: { tokens: '2' } }));
expectError(limiter.setLimits(GOOD));
expectError(limiter.settle(limiter.attempt('id')));
expectError(limiter.block('id'));

// Calendar windows
const DAY = { calendar: 'day', limit: 5 } as const;
RateLimiter({ algorithm: 'fixed-window', limits: [{ ...DAY, timeZone: 'Europe/Berlin' }, GOOD] });
RateLimiter({ limits: [{ calendar: 'month', maxInInterval: 5, startsOn: 17, name: 'calls' }] });
RateLimiter({ limits: [{ ...DAY, calendar: 'year', startsOn: '02-29', minDifference: 1 }] });
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
expectType<RateLimiter.Usage>(limiter.usage('id', TERMS));
expectType<Promise<Decision>>(limiter.wait('id', { ...TERMS, priority: 1 }));
expectType<RateLimiter.Usage>(limiter.record('id', { cost: { calls: 5 }, calendar: {} }));
expectError(limiter.attempt('id', { calendar: { calendar: 'day' } }));
expectError(limiter.usage('id', { cost: 5 }));
expectError(limiter.record('id', { limits: 5 }));
expectError(limiter.attemptMany(['id'], { limits: 5 }));

// Costs by name of a limit
const COSTS = { requests: 1, tokens: 4000 } as const;
expectType<Decision>(limiter.attempt('id', { cost: COSTS }));
expectError(limiter.attemptMany('id'));
expectError(limiter.refund(limiter.limitWithInfo('id')));

// What they answer
const decision = limiter.attempt('id');
expectType<null | 'count' | 'minDifference' | 'block'>(decision.blockedBy);
const window = decision.limits[0] as WindowState;
expectType<number>(window.maxInInterval + window.used + window.remaining + window.resetIn);
if (window.calendar === undefined) expectType<number>(window.interval);
else expectType<'hour' | 'day' | 'week' | 'month' | 'year'>(window.calendar);
expectError(decision.timeLeft++);
expectError(decision.then);

// Errors
declare const error: RateLimiterError;
expectAssignable<Error>(error);
expectType<ErrorCode>(error.code);
expectAssignable<ErrorCode>('ERR_ROLLGATE_CLOSED');
expectNotAssignable<ErrorCode>('ERR_ROLLGATE_OTHER');

// Shared memory
{
  const region: SharedOptions = { name: 'api', maxKeys: 1000, room: 200, directory: '/dev/shm' };
  const limiter = RateLimiter({ shared: 'api', ...GOOD });
  expectType<RateLimiter>(limiter);
  expectType<RateLimiter>(new RateLimiter({ shared: region, ...GOOD }));
  expectAssignable<SharedRateLimiterOptions>({ shared: region, limits: [GOOD] });

  expectError(RateLimiter({ shared: { name: 'api', size: 5 }, ...GOOD }));
  expectError(RateLimiter.unlinkShared({ directory: '/dev/shm' }));
  expectError(RateLimiter({ shared: 'api', redis: 'redis://localhost', ...GOOD }));
  expectError(RateLimiter({ shared: 'api', namespace: 'n', ...GOOD }));
  expectError(new InMemoryRateLimiter({ shared: 'api', ...GOOD }));
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
  expectType<AsyncRateLimiter>(RateLimiter({ client: nodeRedis, ...GOOD }));
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

  const connection = RateLimiter.createRedisConnection({ url, credentials: () => login });
  expectType<RedisConnection>(connection);
  expectType<AsyncRateLimiter>(RateLimiter({ connection, ...GOOD }));
  expectType<AsyncRateLimiter>(RateLimiter({ redis: connection, namespace: 'n', ...GOOD }));
  expectAssignable<RedisRateLimiter>(new RedisRateLimiter({ connection, ...GOOD }));
  expectNotAssignable<RedisConnection>({ maxQueue: 5, isCluster: false });
  expectError(RateLimiter.createRedisConnection(url, { commandTimeout: 5 }));
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
  expectError(RateLimiter({ redis: { hots: 'h' }, ...GOOD }));
  expectError(RateLimiter({ redis: { tls: { minVersion: 'TLSv1.1' } }, ...GOOD }));
  expectError(RateLimiter({ redis: url, onError: 'ignore', ...GOOD }));
  const leasing = RateLimiter({ redis: url, countBlocked: false, lease: 100, ...GOOD });
  const { leases, leased, returned, local } = leasing.stats();
  expectType<(number | undefined)[]>([leases, leased, returned, local]);
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
  expectType<void>(either('id', (_error, timeLeft) => timeLeft));
  expectType<Decision | Promise<Decision>>(either.attempt('id', { cost: 2 }));
  expectType<RateLimiter>(RateLimiter({ redis: undefined, client: undefined, ...GOOD }));
  expectType<AsyncRateLimiter>(RateLimiter({ redis: url, client: undefined, ...GOOD }));
  expectError(RateLimiter({ redis: maybe.redis, shared: 's', ...GOOD }));

  // Calls
  expectType<Promise<number>>(limiter('id'));
  expectType<Promise<Decision>>(limiter.attempt('id', { cost: 2 }));
  expectType<Promise<boolean>>(limiter.settle(await limiter.attempt('id'), { tokens: 5 }));
  expectType<Promise<Decision[]>>(limiter.attemptMany(['a', 1]));
  expectType<number>(limiter.stats().connection.pending);
  expectType<'hiredis' | 'ioredis' | 'node-redis'>(limiter.detectedClientType);
  const entry = { limiter, id: 'id' };
  expectType<RateLimiter.AttemptAllResult | Promise<RateLimiter.AttemptAllResult>>(
    RateLimiter.attemptAll([entry]),
  );
  expectNotAssignable<RateLimiter>(limiter);

  // Classes
  const classical = new RedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD });
  expectAssignable<AsyncRateLimiter>(classical);
  new NodeRedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD });
  new IORedisRateLimiter({ client: ioredis, namespace: 'n', ...GOOD });
  expectType<'ioredis' | 'node-redis' | null>(RedisRateLimiter.determineRedisClientType(ioredis));
  expectError(new NodeRedisRateLimiter({ client: ioredis, namespace: 'n', ...GOOD }));
  expectError(new IORedisRateLimiter({ client: nodeRedis, namespace: 'n', ...GOOD }));
  expectError(new RedisRateLimiter({ namespace: 'n', ...GOOD }));
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
    RateLimiter({ kv, onError: 'memory', commandTimeout: 5, ...NAMED });
  })();
  const limiter = RateLimiter({ kv: numbered, ...NAMED });
  expectType<RemoteRateLimiter>(new RateLimiter({ kv: numbered, ...NAMED }));
  expectType<RemoteRateLimiter>(limiter);
  RateLimiter({ kv: atOnce, namespace: 'n', limits: severalLimits });
  const kv = numbered;
  expectAssignable<KvRateLimiterOptions>({ kv, clock: Date.now, countBlocked: false, ...NAMED });

  expectError(RateLimiter({ kv: numbered, interval: 1000, maxInInterval: 10 }));
  expectError(RateLimiter({ kv: openKv('limits.db'), ...NAMED }));
  expectError(RateLimiter({ kv: new Map<string, Uint8Array>(), ...NAMED }));
  expectError(RateLimiter({ kv: { ...atOnce, set: () => 'OK' }, ...NAMED }));
  expectError(RateLimiter({ kv: { ...atOnce, get: () => 'text' }, ...NAMED }));
  expectError(RateLimiter({ kv: numbered, redis: 'redis://localhost', ...NAMED }));
  expectError(RateLimiter({ commandTimeout: 5, interval: 1000, maxInInterval: 10 }));

  expectAssignable<RemoteRateLimiter>(RateLimiter({ redis: url, ...GOOD }));
  expectError(limiter.detectedClientType);
}
