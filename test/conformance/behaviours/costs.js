// Behaviours: costs for each window by the names of limits, and settled attempts.
'use strict';

const { ATTEMPT_OR_REFUSE } = require('../../../lib/base/internal-methods');
const { NAMED, usedOf } = require('../usage');

module.exports = {
  async 'each window counts its own cost, and all decide together'(suite) {
    const { make, expectExactWait } = suite;
    const limiter = make(NAMED);
    const attempt = (cost) => limiter.attempt('a', { cost });
    expect((await attempt({ tokens: 2000 })).limits).toMatchObject([
      { name: 'requests', used: 1, remaining: 4 },
      { name: 'tokens', used: 2000, remaining: 1000 },
    ]);
    expect(await attempt({ requests: 4, tokens: 1001 })).toMatchObject({ blockedBy: 'count' });
    await attempt({ requests: 3, tokens: 900 });
    await attempt(1);
    expect(await usedOf(limiter)).toEqual([5, 2901]);
    expect(await usedOf(limiter, 'b')).toEqual([0, 0]);
    await expectExactWait(() => limiter.peek('a', { cost: { tokens: 0 } }));
    await expectExactWait(() => limiter.peek('a', { cost: { tokens: 3000 } }));
  },

  // Kills: a count, or a block, of what never passes; a time to wait for it.
  async 'an attempt that can never pass is refused for ever'({ make, time }) {
    const never = { allowed: false, timeLeft: Number.POSITIVE_INFINITY, blockedBy: 'count' };
    for (const [policy, small, large] of [
      [NAMED, { requests: 2, tokens: 0 }, { requests: 0, tokens: 3001 }],
      [{ interval: 60_000, maxInInterval: 5, minDifference: 10 }, 2, 6],
    ]) {
      const limiter = make({ ...policy, blockFor: 5000 });
      const attempt = (cost) => limiter[ATTEMPT_OR_REFUSE]('a', { cost });
      expect(await attempt(large)).toMatchObject({ ...never, actionsLeft: 5, resetIn: 0 });
      expect(await attempt(small)).toMatchObject({ allowed: true });
      const { resetIn } = await limiter.usage('a');
      expect(await attempt(large)).toMatchObject({ ...never, actionsLeft: 3, resetIn });
      await limiter.block('a', 1000);
      expect(await attempt(large)).toMatchObject(never);
      time.advance(1000);
      expect(await attempt(small)).toMatchObject({ allowed: true });
    }
  },

  async 'a settled attempt has the cost that it came to, once; at 0 it is refunded'({ make }) {
    const limiter = make(NAMED);
    const decisions = [];
    for (const tokens of [1000, 900, 800]) {
      decisions.push(await limiter.attempt('a', { cost: { tokens } }));
    }
    expect(await limiter.settle(decisions[1], { tokens: 200 })).toBe(true);
    expect(await usedOf(limiter)).toEqual([3, 2000]);
    expect(await limiter.settle(decisions[1], { tokens: 5 })).toBe(false);
    expect(await limiter.refund(decisions[1])).toBe(false);
    expect(await limiter.settle(decisions[0], 0)).toBe(true);
    expect(await usedOf(limiter)).toEqual([2, 1000]);
    expect(await limiter.settle(decisions[2], { tokens: 2500, requests: 2 })).toBe(true);
    expect(await usedOf(limiter)).toEqual([3, 2700]);
    for (const decision of [
      await limiter.attempt('a', { cost: { tokens: 301 } }),
      await limiter.peek('a', { cost: { tokens: 1 } }),
    ]) {
      expect(await limiter.settle(decision, { tokens: 1 })).toBe(false);
    }
    await limiter.clear('a');
    await limiter.attempt('a');
    expect(await limiter.settle(decisions[2], { tokens: 50 })).toBe(false);
  },

  async 'more than was reserved overdraws a window until enough has left'(suite) {
    const { make, time, expectExactWait } = suite;
    const limiter = make(NAMED);
    const decision = await limiter.attempt('a', { cost: { tokens: 3000 } });
    time.advance(1000);
    expect(await limiter.settle(decision, { tokens: 5000 })).toBe(true);
    const [, tokens] = (await limiter.usage('a')).limits;
    expect([tokens.remaining, tokens.used >= 3000]).toEqual([0, true]);
    // Who asks nothing of it is let in.
    expect(await limiter.attempt('a', { cost: { tokens: 0 } })).toMatchObject({ allowed: true });
    await expectExactWait(() => limiter.peek('a', { cost: { tokens: 2 } }));
  },

  'sliding-window-log': {
    async 'an overdraft without names takes the places of what is older'(suite) {
      const { make, time, expectExactWait } = suite;
      const limiter = make({ maxInInterval: 4 });
      await limiter.attempt('a');
      time.advance(100);
      expect(await limiter.settle(await limiter.attempt('a'), 6)).toBe(true);
      expect((await limiter.peek('a')).timeLeft).toBe(60_000);
      await expectExactWait(() => limiter.peek('a'));
    },

    async 'a refund gives no room that an overdraft needs'(suite) {
      const { make, time, store, expectExactWait } = suite;
      // Below 1024, a log has room for more than its limit.
      for (const maxInInterval of [4, Math.min(1024, store.longestLog ?? 1024)]) {
        const limiter = make({ maxInInterval });
        const decisions = [];
        for (const cost of [1, maxInInterval - 3, 2]) {
          decisions.push(await limiter.attempt('a', { cost }));
          time.advance(1);
        }
        expect(await limiter.settle(decisions[1], 3 * maxInInterval)).toBe(true);
        expect(await limiter.refund(decisions[2])).toBe(true);
        await expectExactWait(() => limiter.peek('a'));
        time.advance(60_000);
      }
    },
  },

  gcra: {
    async 'what has leaked can be settled while its window lasts'({ make, at }) {
      const window = { interval: 84_000, maxInInterval: 100 };
      for (const requests of [{ ...window, maxInInterval: 1 }, window]) {
        const limits = [
          { ...requests, name: 'requests' },
          { ...window, name: 'tokens' },
        ];
        const limiter = make({ limits });
        at(0);
        const decision = await limiter.attempt('a', { cost: { tokens: 1 } });
        at(1_000_000); // the one token has leaked
        for (let i = 0; i < 200; i++) await limiter.attempt(`other ${i}`);
        at(6_800_000);
        expect(await limiter.settle(decision, { tokens: 284 })).toBe(true);
        // As if it had cost 284 from the beginning: 284 + 13 - 100 have to leak, each in 840 ms.
        at(25_718_000);
        expect(await limiter.attempt('a', { cost: { tokens: 13 } })).toMatchObject({
          ...{ allowed: false, timeLeft: 139_762 },
        });
      }
    },

    async 'nothing is settled once its window has passed'({ make, at }) {
      const limiter = make({ limits: [{ name: 'tokens', interval: 84_000, maxInInterval: 3000 }] });
      const attempt = (tokens) => limiter.attempt('a', { cost: { tokens } });
      at(0);
      const decisions = [await attempt(1), await attempt(1)];
      at(83_999_999);
      expect(await limiter.settle(decisions[0], { tokens: 3 })).toBe(true);
      await attempt(5);
      at(84_000_000);
      expect(await limiter.settle(decisions[1], { tokens: 3 })).toBe(false);
      expect(await usedOf(limiter)).toEqual([5]);
    },
  },

  'where refusals can count': {
    // Kills: a use that is cut to the maximum because refusals count.
    async 'an overdraft shows in what is used'({ make, algorithm }) {
      const limiter = make({ ...NAMED, countBlocked: true });
      const decision = await limiter.attempt('a', { cost: { tokens: 3000 } });
      await limiter.settle(decision, { tokens: 5000 });
      expect(await usedOf(limiter)).toEqual([1, 5000]);
      if (algorithm === 'sliding-window-log') return; // it has no more places than its limit
      const unnamed = make({ maxInInterval: 10, countBlocked: true });
      await unnamed.settle(await unnamed.attempt('a', { cost: 10 }), 100);
      expect((await unnamed.attempt('a')).limits).toMatchObject([{ used: 101, remaining: 0 }]);
    },
  },
};
