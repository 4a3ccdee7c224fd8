// wait(): one after the other, in time, with a deadline, a signal and a bound on those who wait.
import assert from 'node:assert/strict';
import RateLimiter from 'rollgate';

{
  const limiter = RateLimiter({ interval: 30, maxInInterval: 2, countBlocked: false });
  const order = [];
  const startedAt = performance.now();
  const waiting = [0, 1, 2, 3, 4, 5].map(async (number) => {
    const decision = await limiter.wait('ada');
    assert.equal(decision.allowed, true);
    order.push(number);
  });
  await Promise.all(waiting);
  assert.deepEqual(order, [0, 1, 2, 3, 4, 5]);
  const took = performance.now() - startedAt;
  assert.ok(took >= 59, `six actions with two in 30 ms took ${took} ms`);
}

const limiter = RateLimiter({ interval: 600_000, maxInInterval: 1, countBlocked: false });
limiter('ada');
await assert.rejects(limiter.wait('ada', { deadline: 10 }), { code: 'ERR_ROLLGATE_WAIT_DEADLINE' });

const controller = new AbortController();
const aborted = assert.rejects(limiter.wait('ada', { signal: controller.signal }), {
  name: 'AbortError',
});
const refused = limiter.wait('ada', { maxQueue: 1 });
await assert.rejects(refused, { code: 'ERR_ROLLGATE_WAIT_QUEUE' });
controller.abort();
await aborted;

const closed = assert.rejects(limiter.wait('ada'), { code: 'ERR_ROLLGATE_CLOSED' });
await limiter.close();
await closed;
console.log('result: works');
