// A limiter over a key-value store decides like one in memory, whatever the algorithm: the same traces on both.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/algorithms');
const { expectEqual } = require('../support/expect-same');
const { handClock } = require('../support/hand-clock');
const { createPlainKv, openDenoKv } = require('../support/kv-stores');
const { optionsFor, randomFrom, randomPolicy, randomStep } = require('../support/traces');

const STEPS = 150;

const plain = async () => ({ kv: createPlainKv(), close() {} });

/**
 * One random trace on both, step by step. The clock steps back or there are refunds: after both, a store
 * in memory may err on the side of fewer admissions.
 */
async function runTrace({ seed, algorithm, open, steps }) {
  const random = randomFrom(seed);
  const countBlocked = algorithm !== 'gcra' && random.chance(50);
  const policy = randomPolicy(random, { countBlocked });
  const blockFor = random.chance(40)
    ? Array.from(
        { length: random.between(1, 3) },
        () => (random.between(1, 60) * policy.unit) / 1000,
      )
    : undefined;
  const time = handClock(1_700_000_000_000);
  const options = { ...optionsFor(policy, random), algorithm, blockFor, clock: time.clock };
  const store = await open();
  const memory = RateLimiter(options);
  const stored = RateLimiter({ ...options, kv: store.kv, namespace: 'n', commandTimeout: 10_000 });
  const smallestMax = Math.min(...policy.limits.map(({ maxInInterval }) => maxInInterval));
  const longest = Math.max(...policy.limits.map(({ interval }) => interval)) / 1000;
  const stepsBack = random.chance(50);
  const made = [];
  for (let step = 0; step < steps; step++) {
    const back = stepsBack && random.chance(4) ? -2 : 1;
    time.advance((randomStep(random, policy.unit) / 1000) * back);
    const id = random.pick(['a', 'b']);
    const options = { cost: random.between(1, Math.min(smallestMax, 3)) };
    const context = { seed, step, algorithm, policy, blockFor };
    if (!stepsBack && made.length > 0 && random.chance(20)) {
      const [one, other, at] = made.splice(random.between(0, made.length - 1), 1)[0];
      const [found, expected] = [await stored.refund(other), memory.refund(one)];
      // A log may have dropped what has left every window.
      const isInside = algorithm !== 'sliding-window-log' || time.clock() - at < longest;
      if (isInside) expectEqual(found, expected, { ...context, does: 'refund' });
    } else if (random.chance(2)) {
      await memory.clear(id);
      await stored.clear(id);
    } else {
      const how = random.chance(20) ? 'peek' : 'attempt';
      const one = memory[how](id, options);
      const other = await stored[how](id, options);
      expectEqual({ ...other }, { ...one }, { ...context, does: how });
      if (how === 'attempt') made.push([one, other, time.clock()]);
    }
  }
  await store.close();
}

describe.each(ALGORITHMS)('%s', (algorithm) => {
  test('over a plain object', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      await runTrace({ seed, algorithm, open: plain, steps: STEPS });
    }
  });

  test('over Deno KV', async () => {
    await runTrace({ seed: 1, algorithm, open: openDenoKv, steps: STEPS });
  });
});
