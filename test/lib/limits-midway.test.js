// Limits that change in memory, at awkward moments: in the middle of a call, before a settle, with GCRA.
'use strict';

const { ALGORITHMS } = require('../../lib/options/algorithms');
const { setUp } = require('../support/set-up');

describe('setLimits', () => {
  // Kills: a cost above the maximum that passes, because max - cost + 1 is below 0.
  test.each(ALGORITHMS)('of the clock refuses what cannot pass any more: %s', (algorithm) => {
    for (const name of [undefined, 'tokens']) {
      const limitTo = (maxInInterval) => [{ name, interval: 1000, maxInInterval }];
      const options = { limits: limitTo(100), algorithm, countBlocked: false };
      const { limiter, time } = setUp(options);
      limiter('known');
      for (const id of ['known', 'new']) {
        time.onNextReading(() => limiter.setLimits(limitTo(10)));
        const never = { allowed: false, timeLeft: Number.POSITIVE_INFINITY };
        expect(limiter.attempt(id, { cost: 50 })).toMatchObject(never);
        limiter.setLimits(limitTo(100));
      }
      expect(limiter.usage('known').limits[0].used).toBe(1);
      expect(limiter.usage('new').limits[0].used).toBe(0);
      time.advance(1000);
      expect(limiter.attempt('new', { cost: 50 }).allowed).toBe(true);
    }
  });

  // Kills: entries that forget that others were merged onto them.
  test('keeps what merged entries know, so that they can be settled', () => {
    const limits = [{ name: 'tokens', interval: 1000, maxInInterval: 1_000_000 }];
    const { limiter, time } = setUp({ limits, countBlocked: false });
    const decisions = [];
    for (let i = 0; i < 3000; i++) {
      time.advance(0.3);
      decisions.push(limiter.attempt('a', { cost: { tokens: 2 } }));
    }
    limiter.setLimits(limits);
    expect(limiter.settle(decisions[10], { tokens: 100 })).toBe(true);
    expect(limiter.usage('a').limits[0].used).toBe(6098);
  });

  describe('with gcra', () => {
    // Kills: a full bucket at most.
    test('keeps an overdraft', () => {
      const limits = [{ interval: 1000, maxInInterval: 10 }];
      const { limiter } = setUp({ limits, algorithm: 'gcra' });
      limiter.settle(limiter.attempt('a'), 1000);
      limiter.setLimits(limits);
      expect(limiter.usage('a')).toMatchObject({ allowed: false, timeLeft: 99_100 });
      expect(limiter.usage('a').limits[0].used).toBe(1000);
    });

    // Kills: a millionth of an action in each bucket.
    test('leaves an empty bucket empty', () => {
      const limits = [{ interval: 3_600_000, maxInInterval: 1 }];
      const { limiter, time } = setUp({ limits, algorithm: 'gcra' });
      limiter('a');
      time.advance(3_600_000);
      limiter.setLimits(limits);
      expect(limiter('a')).toBe(0);
    });
  });
});

describe('settle', () => {
  // Kills: room that is made for an attempt that is gone, and never saved.
  test('of a cleared attempt at a higher cost changes nothing', () => {
    const { limiter, time } = setUp({ interval: 100_000, maxInInterval: 500 });
    for (let before = 1; before < 12; before++) {
      for (let after = 1; after < 12; after++) {
        const id = `${before} ${after}`;
        const attempt = () => {
          time.advance(1);
          return limiter.attempt(id);
        };
        const first = attempt();
        for (let i = 1; i < before; i++) attempt();
        limiter.clear(id);
        for (let i = 0; i < after; i++) attempt();
        expect(limiter.settle(first, 60)).toBe(false);
        expect(limiter.usage(id).limits[0].used).toBe(after);
        limiter(id);
        expect(limiter.usage(id).limits[0].used).toBe(after + 1);
      }
    }
  });

  // Kills: sums that begin again at 2^64.
  test('and refusals at the largest costs never make room', () => {
    const maxInInterval = Number.MAX_SAFE_INTEGER;
    const limits = [{ name: 'bytes', interval: 1_000_000, maxInInterval }];
    const cost = { bytes: maxInInterval };
    const { limiter: refusing, time } = setUp({ limits });
    let allowed = 0;
    for (let i = 0; i < 5000; i++) {
      time.advance(0.1);
      if (refusing.attempt('a', { cost }).allowed) allowed += 1;
    }
    expect(allowed).toBe(1);

    const overdrawn = setUp({ limits, countBlocked: false, clock: time.clock }).limiter;
    const attempt = () => {
      time.advance(0.1);
      return overdrawn.attempt('a', { cost: { bytes: 1 } });
    };
    const decisions = Array.from({ length: 2049 }, attempt);
    for (const decision of decisions) expect(overdrawn.settle(decision, cost)).toBe(true);
    expect(attempt().allowed).toBe(false);
  });
});
