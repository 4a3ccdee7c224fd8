// What must compile for limiters in shared memory, and what must not.
import { expectAssignable, expectError, expectType } from 'tsd';

import RateLimiter = require('../../lib');

import {
  type Decision,
  type ErrorCode,
  InMemoryRateLimiter,
  rateLimit,
  type SharedOptions,
  type SharedRateLimiterOptions,
  type Stats,
  unlinkShared,
} from '../../lib';
import type { RollgateFastifyOptions } from '../../lib/fastify';
import { RollgateStore } from '../../lib/store';

const GOOD = { interval: 1000, maxInInterval: 10 };
const region: SharedOptions = { name: 'api', maxKeys: 1000, directory: '/dev/shm' };

// Construction
const limiter = RateLimiter({ shared: 'api', ...GOOD });
expectType<RateLimiter>(limiter);
expectType<RateLimiter>(new RateLimiter({ shared: region, ...GOOD }));
expectType<RateLimiter>(RateLimiter({ shared: undefined, ...GOOD }));
expectAssignable<SharedRateLimiterOptions>({ shared: region, limits: [GOOD] });
declare const place: string | undefined;
RateLimiter({ shared: place, ...GOOD });
new RateLimiter({ shared: place, ...GOOD });
rateLimit({ shared: 'api', windowMs: 1000, limit: 5 });
rateLimit({ shared: region, rules: [{ path: '/', limit: 5 }] });
rateLimit({ limiter });
new RollgateStore({ shared: 'api', maxKeys: 1000 });
expectAssignable<RollgateFastifyOptions>({ shared: region, limit: 5 });
expectAssignable<RollgateFastifyOptions>({ shared: 'api', rules: [{ path: '/', limit: 5 }] });

expectError(RateLimiter({ shared: 5, ...GOOD }));
expectError(RateLimiter({ shared: {}, ...GOOD }));
expectError(RateLimiter({ shared: { name: 'api', size: 5 }, ...GOOD }));
expectError(RateLimiter({ shared: 'api', redis: 'redis://localhost', ...GOOD }));
expectError(RateLimiter({ shared: 'api', namespace: 'n', ...GOOD }));
expectError(RateLimiter({ shared: 'api', onError: 'allow', ...GOOD }));
expectError(new InMemoryRateLimiter({ shared: 'api', ...GOOD }));
expectError(rateLimit({ rules: [{ path: '/', limit: 5, shared: 'api' }] }));

// Answers
expectType<number>(limiter('a'));
expectType<Decision>(limiter.attempt('a', { cost: 2 }));
expectType<Stats>(limiter.stats());
expectType<boolean>(unlinkShared('api'));
expectType<boolean>(RateLimiter.unlinkShared(region));
expectError(RateLimiter.unlinkShared());
expectError(RateLimiter.unlinkShared({ directory: '/dev/shm' }));
expectAssignable<ErrorCode>('ERR_ROLLGATE_SHARED_MISMATCH');
expectAssignable<ErrorCode>('ERR_ROLLGATE_SHARED_FILE');
expectAssignable<ErrorCode>('ERR_ROLLGATE_SHARED_SYSTEM');
expectAssignable<ErrorCode>('ERR_ROLLGATE_SHARED_FULL');
expectAssignable<ErrorCode>('ERR_ROLLGATE_SHARED_CORRUPT');
