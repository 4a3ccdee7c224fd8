// What must compile against the types of rollgate/store, and what must not.
import { rateLimit, type Store } from 'express-rate-limit';
import { expectAssignable, expectError, expectType } from 'tsd';

import RollgateStore = require('../../lib/store');

import { type PlainKv, RateLimiter, RedisRateLimiter } from '../../lib';
import { RollgateStore as named, type RollgateStoreHits } from '../../lib/store';

const store = new RollgateStore();
expectAssignable<Store>(store);
expectType<typeof RollgateStore>(named);
expectType<Promise<RollgateStoreHits>>(store.increment('a'));
expectType<Promise<RollgateStoreHits | undefined>>(store.get('a'));
expectType<boolean>(store.localKeys);
rateLimit({ windowMs: 1000, limit: 2, store });
rateLimit({ limit: async () => 2, store: new named({ maxInInterval: 5 }) });

const limiter = new RateLimiter({ interval: 1000, maxInInterval: 2 });
new RollgateStore({ limiter });
new RollgateStore({
  limiter: new RedisRateLimiter({ redis: 'redis://localhost', interval: 1, maxInInterval: 1 }),
});
new RollgateStore({ redis: 'redis://localhost', namespace: 'api', onError: 'allow' });
new RollgateStore({ countBlocked: false, minDifference: 5, clock: () => 0, maxKeys: 10 });
new RollgateStore({ limits: [{ interval: 1000, maxInInterval: 2 }] });

declare const kv: PlainKv;
new RollgateStore({ kv, namespace: 'api', commandTimeout: 100, onError: 'memory' });
new RollgateStore({ limiter: RateLimiter({ kv, namespace: 'n', interval: 1, maxInInterval: 1 }) });

expectError(new RollgateStore({ kv: 'limits.db', namespace: 'api' }));
expectError(new RollgateStore({ interval: 1000 }));
expectError(new RollgateStore({ windowMs: 1000 }));
expectError(new RollgateStore({ limiter, countBlocked: false }));
expectError(new RollgateStore({ maxInInterval: '5' }));
expectError(RollgateStore());
new RollgateStore({ limiter, maxInInterval: undefined, redis: undefined });
