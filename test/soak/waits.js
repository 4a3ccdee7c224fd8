// Many who wait for a few ids, and give up, run out of time, or see their limiter closed.
'use strict';

const RateLimiter = require('../..');
const { outcomeOf } = require('../support/outcome');
const { randomFrom } = require('../support/traces');

const LIMIT = { interval: 20, maxInInterval: 4, countBlocked: false };
const AT_ONCE = 40;
const IDS = 3;
const PATIENCE_MS = 15_000;
const ENDS = [
  'ABORTED',
  'ERR_ROLLGATE_WAIT_DEADLINE',
  'ERR_ROLLGATE_WAIT_QUEUE',
  'ERR_ROLLGATE_CLOSED',
];
const after = (ms, act) => setTimeout(act, ms);

function startWaiting(limiter, random) {
  const giveUp = new AbortController();
  const options = { signal: giveUp.signal, cost: random.between(1, 2) };
  if (random.chance(20)) options.deadline = random.between(0, 100);
  if (random.chance(20)) options.maxQueue = random.between(1, AT_ONCE);
  const waiting = limiter.wait(random.between(1, IDS), options);
  const reason = Object.assign(new Error('enough'), { code: 'ABORTED' });
  if (random.chance(40)) after(random.between(0, 200), () => giveUp.abort(reason));
  return waiting;
}

function keepWaiting(soak) {
  const random = randomFrom(soak.seed);
  return soak.repeat(async () => {
    const limiter = RateLimiter(LIMIT);
    const all = Array.from({ length: AT_ONCE }, () => startWaiting(limiter, random));
    if (random.chance(30)) after(random.between(0, 100), () => limiter.close());
    for (const outcome of await Promise.allSettled(all.map((one) => outcomeOf(one, PATIENCE_MS)))) {
      const end = outcome.value?.allowed ? 'allowed' : (outcome.value ?? outcome.reason.message);
      if (end !== 'allowed' && !ENDS.includes(end)) soak.violate(`waiting ended with ${end}`);
      soak.count(end === 'allowed' ? 'waits' : 'waits that ended otherwise');
    }
  });
}

module.exports = { keepWaiting };
