// Types of concurrency limiters: what compiles, and what must not.
import RateLimiter = require('../../lib/types/index');

import { concurrencyLimitFetch } from '../../lib/types/fetch';

const { ConcurrencyLimiter, concurrencyLimit } = RateLimiter;
const slots = ConcurrencyLimiter({ max: 2, maxAge: 1000 });
const taken = slots.acquire('a', { cost: 2, max: 4 });
if (taken.allowed) {
  const released: boolean = taken.release();
  const signal: AbortSignal = taken.lost;
  void [released, signal];
} else {
  const remaining: number = taken.remaining;
  void remaining;
  // @ts-expect-error a refusal has nothing to release
  taken.release();
}
const waited: Promise<RateLimiter.Slot> = slots.wait('a', { deadline: 5, priority: 3, cost: 2 });
const ran: Promise<string> = slots.run('a', async (slot) => String(slot.used));
const ranWith: Promise<number> = slots.run('a', { maxQueue: 3 }, () => 5);
const shared: RateLimiter.ConcurrencyLimiter = ConcurrencyLimiter({ max: 2, shared: 'jobs' });
// @ts-expect-error max is missing
ConcurrencyLimiter({});
// @ts-expect-error a key-value store knows no holders
ConcurrencyLimiter({ max: 1, kv: {} });

const remote = ConcurrencyLimiter({
  max: 2,
  redis: 'redis://127.0.0.1',
  ttl: 5000,
  onError: 'allow',
});
const perhaps = ConcurrencyLimiter({ max: 2, redis: process.env.REDIS_URL });
const connection = RateLimiter.createRedisConnection('redis://127.0.0.1');
const alsoRemote: RateLimiter.RemoteConcurrencyLimiter = new ConcurrencyLimiter({
  max: 2,
  connection,
});
async function hold() {
  const slot = await remote.acquire('a');
  if (slot.allowed) {
    const isReleased: boolean = await slot.release();
    // @ts-expect-error its release takes a round trip
    slot[Symbol.dispose]();
    await slot[Symbol.asyncDispose]();
    void [isReleased, slot.lost.aborted];
  }
  const { used }: RateLimiter.SlotUsage = await perhaps.usage('a');
  const keys: null = remote.stats().keys;
  const both = await RateLimiter.attemptAll([{ limiter: remote, id: 'a' }, { limiter: slots }]);
  if (both.allowed) {
    const [one, other]: readonly [RateLimiter.RemoteSlot, RateLimiter.Slot] = both.decisions;
    void [one, other];
  }
  const ofRedis = concurrencyLimit({ max: 2, redis: 'redis://127.0.0.1' });
  const given: RateLimiter.RemoteConcurrencyLimiter = ofRedis.limiter;
  const count: number = concurrencyLimit({ max: 2 }).limiter.usage('a').used;
  void [used, keys, given, count];
}
// @ts-expect-error what is held cannot move to memory
ConcurrencyLimiter({ max: 1, redis: 'redis://127.0.0.1', onError: 'memory' });
// @ts-expect-error it would not wait for Redis
const atOnce: RateLimiter.Slot = remote.acquire('a');

const limiter = RateLimiter({ interval: 1000, maxInInterval: 1 });
const all = RateLimiter.attemptAll([
  { limiter: slots, id: 'a' },
  { limiter, id: 'a', cost: 2 },
]);
if (all.allowed) {
  const slot: RateLimiter.Slot = all.decisions[0];
  const decision: RateLimiter.Decision = all.decisions[1];
  void [slot, decision];
}

const middleware = concurrencyLimit({ max: (req) => (req.headers.pro ? 20 : 2), maxWait: 100 });
const limit = concurrencyLimitFetch({ max: 2 });
async function serve(request: Request) {
  const { allowed, response, release } = await limit(request, { ip: '192.0.2.1' });
  if (!allowed) return response;
  release();
  return new Response();
}
void [shared, alsoRemote, hold, atOnce, waited, ran, ranWith, middleware, serve];
