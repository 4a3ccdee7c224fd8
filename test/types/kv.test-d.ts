// What must compile for limiters over key-value stores, and what must not.
import { openKv } from '@deno/kv';
import { expectAssignable, expectError, expectType } from 'tsd';

import RateLimiter = require('../../lib');

import {
  type Decision,
  type DenoKv,
  type ErrorCode,
  type KvRateLimiterOptions,
  type PlainKv,
  type RemoteRateLimiter,
  type RemoteStats,
  rateLimit,
} from '../../lib';

const GOOD = { interval: 1000, maxInInterval: 10, namespace: 'n' };
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
  const limiter = RateLimiter({ kv, onError: 'memory', commandTimeout: 5, ...GOOD });
  expectType<RemoteRateLimiter>(limiter);
})();
expectAssignable<PlainKv>(atOnce);
expectAssignable<PlainKv>(numbered);
const limiter = RateLimiter({ kv: numbered, ...GOOD });
expectType<RemoteRateLimiter>(new RateLimiter({ kv: numbered, ...GOOD }));
expectType<RemoteRateLimiter>(limiter);
RateLimiter({
  kv: atOnce,
  namespace: 'n',
  limits: [GOOD].map(({ interval }) => ({ interval, maxInInterval: 1 })),
});
expectAssignable<KvRateLimiterOptions>({
  kv: numbered,
  clock: Date.now,
  countBlocked: false,
  ...GOOD,
});
rateLimit({ kv: numbered, namespace: 'n', commandTimeout: 5, windowMs: 1000, limit: 5 });
rateLimit({ limiter });

expectError(RateLimiter({ kv: numbered, interval: 1000, maxInInterval: 10 }));
expectError(RateLimiter({ kv: 'limits.db', ...GOOD }));
expectError(new RateLimiter({ kv: 'limits.db', ...GOOD }));
expectError(new RateLimiter({ kv: numbered, interval: 1000, maxInInterval: 10 }));
expectError(RateLimiter({ kv: openKv('limits.db'), ...GOOD }));
expectError(RateLimiter({ kv: new Map<string, Uint8Array>(), ...GOOD }));
expectError(RateLimiter({ kv: { get: atOnce.get }, ...GOOD }));
expectError(RateLimiter({ kv: { ...atOnce, set: () => 'OK' }, ...GOOD }));
expectError(RateLimiter({ kv: { ...atOnce, get: () => 'text' }, ...GOOD }));
expectError(RateLimiter({ kv: numbered, redis: 'redis://localhost', ...GOOD }));
expectError(RateLimiter({ redis: 'redis://localhost', commandTimeout: 5, ...GOOD }));
expectError(RateLimiter({ commandTimeout: 5, interval: 1000, maxInInterval: 10 }));
expectError(RateLimiter({ kv: numbered, onError: 'ignore', ...GOOD }));

// Answers
expectType<Promise<number>>(limiter('a'));
expectType<void>(limiter('a', (_error, _timeLeft) => {}));
expectType<Promise<boolean>>(limiter.limit('a'));
expectType<Promise<Decision>>(limiter.attempt('a', { cost: 2 }));
expectType<Promise<Decision[]>>(limiter.attemptMany(['a', 1]));
expectType<Promise<void>>(limiter.clearAll());
expectType<RemoteStats>(limiter.stats());
expectError(limiter.detectedClientType);
expectAssignable<ErrorCode>('ERR_ROLLGATE_KV');
expectAssignable<ErrorCode>('ERR_ROLLGATE_KV_TIMEOUT');
