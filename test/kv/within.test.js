// Limiters whose maximum is told at every attempt, over a key-value store and by onError.
'use strict';

const RateLimiter = require('../..');
const { ATTEMPT_WITHIN, PEEK_WITHIN, SETS_MAX } = require('../../lib/internal-methods');
const { handClock } = require('../support/hand-clock');
const { createPlainKv } = require('../support/kv-stores');
const { randomFrom } = require('../support/traces');

const LIMIT = { interval: 1000, maxInInterval: 1, [SETS_MAX]: true };

test.each(['sliding-window-log', 'sliding-window-counter', 'fixed-window'])(
  '%s: the same as in memory',
  async (algorithm) => {
    const random = randomFrom(7);
    const time = handClock(1_700_000_000_000);
    const kv = createPlainKv();
    for (const countBlocked of [true, false]) {
      const options = { ...LIMIT, algorithm, countBlocked, clock: time.clock };
      const memory = RateLimiter(options);
      const stored = RateLimiter({ ...options, kv, namespace: `${countBlocked}` });
      for (let step = 0; step < 300; step++) {
        time.advance(random.between(0, 400));
        const how = random.chance(20) ? PEEK_WITHIN : ATTEMPT_WITHIN;
        const max = random.between(1, 8);
        expect(await stored[how]('a', max)).toEqual(memory[how]('a', max));
      }
    }
    for (const { value } of kv.entries.values()) expect(value.length).toBeLessThan(24 + 4 * 100);
  },
);

test('calls at once are each judged by their own', async () => {
  const limiter = RateLimiter({
    ...LIMIT,
    kv: createPlainKv(),
    namespace: 'n',
    countBlocked: false,
  });
  const decisions = await Promise.all(
    [2, 1, 3, 2, 9].map((max) => limiter[ATTEMPT_WITHIN]('a', max)),
  );
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, true, false, true]);
  expect(decisions.map(({ limits }) => limits[0].maxInInterval)).toEqual([2, 1, 3, 2, 9]);
});

test.each([
  ['allow', { allowed: true, actionsLeft: 4 }],
  ['block', { allowed: false, actionsLeft: 0 }],
  ['memory', { allowed: true, actionsLeft: 4 }],
])('onError %s', async (onError, expected) => {
  const kv = { ...createPlainKv(), get: () => Promise.reject(new Error('broken')) };
  const limiter = RateLimiter({ ...LIMIT, kv, namespace: 'n', onError });
  const decision = await limiter[ATTEMPT_WITHIN]('a', 5);
  expect(decision).toMatchObject(expected);
  expect(decision.limits).toMatchObject([
    { maxInInterval: 5, used: 5 - expected.actionsLeft, remaining: expected.actionsLeft },
  ]);
});
