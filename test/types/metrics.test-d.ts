// What must compile against the types of rollgate/metrics, and what must not.
import { Registry, register } from 'prom-client';
import { expectError, expectType } from 'tsd';

import RateLimiter = require('../../lib');

import {
  type BlockedCount,
  type Metrics,
  registerMetrics,
  type TopBlocked,
  topBlocked,
} from '../../lib/metrics';

const limiter = RateLimiter({ interval: 1, maxInInterval: 1 });
const onRedis = RateLimiter({ redis: 'redis://localhost', interval: 1, maxInInterval: 1 });

expectType<Metrics>(registerMetrics());
expectType<Metrics>(registerMetrics({ limiters: { api: limiter, login: onRedis } }));
const metrics = registerMetrics({
  register: new Registry(),
  prefix: 'app_',
  buckets: [0.001, 0.1],
});
registerMetrics({ register });
expectType<void>(metrics.add('api', limiter));
expectType<boolean>(metrics.remove('api'));
expectType<void>(metrics.unregister());

expectError(registerMetrics({ limiters: [limiter] }));
expectError(registerMetrics({ limiters: { api: 5 } }));
expectError(registerMetrics({ limiter }));
expectError(registerMetrics({ register: {} }));
expectError(registerMetrics({ prefix: 5 }));
expectError(registerMetrics({ buckets: 5 }));
expectError(metrics.add(limiter));

const named = topBlocked({ limiters: { api: limiter, login: onRedis }, capacity: 10 });
expectType<BlockedCount<'api' | 'login'>[]>(named.top(10));
expectType<'api' | 'login'>(named.top()[0].limiter);
const all = topBlocked();
expectType<RateLimiter | RateLimiter.RemoteRateLimiter>(all.top()[0].limiter);
topBlocked({ capacity: 10, limiters: undefined });
const limiters: Record<string, RateLimiter> = { api: limiter };
const either: TopBlocked = limiters.api ? topBlocked({ limiters }) : all;
const [entry] = either.top();
expectType<string>(entry.id);
expectType<number>(entry.blocked + entry.overcount + either.total);
expectType<void>(either.reset());
expectType<void>(either.close());

expectError(topBlocked({ limiter }));
expectError(topBlocked({ limiters: [limiter] }));
expectError(topBlocked({ limiters: { api: 5 } }));
expectError(topBlocked({ capacity: '10' }));
expectError(named.top('10'));

const message: RateLimiter.DecisionMessage = {
  limiter,
  id: 'a',
  cost: 1,
  allowed: true,
  timeLeft: 0,
};
expectType<number>(message.timeLeft);
declare const redisMessage: RateLimiter.RedisMessage;
if (redisMessage.type === 'call') expectType<number>(redisMessage.durationMs);
else expectType<boolean>(redisMessage.isUp);
declare const evictedMessage: RateLimiter.EvictedMessage;
expectType<number>(evictedMessage.evicted);
