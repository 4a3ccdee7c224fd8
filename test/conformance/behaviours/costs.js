// Behaviours: costs for each window by the names of limits, and settled attempts.
'use strict';

const RateLimiter = require('../../..');
const { ATTEMPT_OR_REFUSE } = require('../../../lib/base/internal-methods');

const REQUESTS = { name: 'requests', interval: 60_000, maxInInterval: 5 };
const TOKENS = { name: 'tokens', interval: 600_000, maxInInterval: 3000 };
const NAMED = { limits: [REQUESTS, TOKENS] };

const usedOf = async (limiter, id = 'a') => {
  const { limits } = await limiter.usage(id);
  return limits.map(({ used }) => used);
};

/** The attempt is refused until its timeLeft, and allowed exactly then. */
async function expectExactWait(limiter, time, cost) {
  const { allowed, timeLeft } = await limiter.peek('a', { cost });
  expect(allowed).toBe(false);
  time.advance(timeLeft - 1);
  expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: false, timeLeft: 1 });
  time.advance(1);
  expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: true });
}

module.exports = {
  async 'each window counts its own cost, and all decide together'({ make, time }) {
    const limiter = make(NAMED);
    const first = await limiter.attempt('a', { cost: { tokens: 2000 } });
    expect(first).toMatchObject({ allowed: true, actionsLeft: 4 });
    expect(first.limits).toMatchObject([
      { name: 'requests', used: 1, remaining: 4 },
      { name: 'tokens', used: 2000, remaining: 1000 },
    ]);
    const refusal = await limiter.attempt('a', { cost: { requests: 4, tokens: 1001 } });
    expect(refusal).toMatchObject({ allowed: false, blockedBy: 'count' });
    expect(await usedOf(limiter)).toEqual([1, 2000]);
    await limiter.attempt('a', { cost: { requests: 3, tokens: 900 } });
    await limiter.attempt('a');
    expect(await usedOf(limiter)).toEqual([5, 2901]);
    expect(await usedOf(limiter, 'b')).toEqual([0, 0]);
    await expectExactWait(limiter, time, { tokens: 0 });
    await expectExactWait(limiter, time, { tokens: 3000 });
  },

  async 'a window in which an attempt costs nothing is not asked, full or overdrawn'({ make }) {
    const limiter = make(NAMED);
    const decision = await limiter.attempt('a', { cost: { tokens: 3000 } });
    expect(await limiter.attempt('a', { cost: { tokens: 0 } })).toMatchObject({ allowed: true });
    await limiter.settle(decision, { tokens: 4000 });
    expect(await limiter.attempt('a', { cost: { tokens: 0 } })).toMatchObject({ allowed: true });
    expect(await limiter.attempt('a', { cost: { requests: 0 } })).toMatchObject({ allowed: false });
    const [requests, tokens] = await usedOf(limiter);
    expect([requests, tokens >= 3000]).toEqual([3, true]);
  },

  // Kills: a count, or a block, of what never passes; a time to wait for it.
  async 'an attempt that can never pass is refused for ever, and leaves no trace'({ make, time }) {
    const never = { allowed: false, timeLeft: Number.POSITIVE_INFINITY, blockedBy: 'count' };
    for (const [policy, small, large] of [
      [NAMED, { requests: 2, tokens: 0 }, { requests: 0, tokens: 3001 }],
      [{ interval: 60_000, maxInInterval: 5, minDifference: 10 }, 2, 6],
    ]) {
      const limiter = make({ ...policy, blockFor: 5000 });
      const attempt = (cost) => limiter[ATTEMPT_OR_REFUSE]('a', { cost });
      expect(await attempt(large)).toMatchObject({ ...never, actionsLeft: 5, resetIn: 0 });
      expect(await attempt(small)).toMatchObject({ allowed: true });
      const { resetIn, ...usage } = await limiter.usage('a');
      expect(await attempt(large)).toMatchObject({ ...never, actionsLeft: 3, resetIn });
      expect(await limiter.usage('a')).toEqual({ ...usage, resetIn });
      await limiter.block('a', 1000);
      expect(await attempt(large)).toMatchObject(never);
      expect(await attempt(small)).toMatchObject({ blockedBy: 'block' });
      time.advance(1000);
      expect(await attempt(small)).toMatchObject({ allowed: true });
    }
  },

  async 'a settled attempt has the cost that it came to, once'({ make }) {
    const limiter = make(NAMED);
    const decisions = [];
    for (const tokens of [1000, 900, 800]) {
      decisions.push(await limiter.attempt('a', { cost: { tokens } }));
    }
    expect(await limiter.settle(decisions[1], { tokens: 200 })).toBe(true);
    expect(await usedOf(limiter)).toEqual([3, 2000]);
    expect(await limiter.settle(decisions[1], { tokens: 5 })).toBe(false);
    expect(await limiter.refund(decisions[1])).toBe(false);
    expect(await limiter.refund(decisions[0])).toBe(true);
    expect(await usedOf(limiter)).toEqual([2, 1000]);
    expect(await limiter.settle(decisions[2], { tokens: 2500, requests: 2 })).toBe(true);
    expect(await usedOf(limiter)).toEqual([3, 2700]);
    const refusal = await limiter.attempt('a', { cost: { tokens: 301 } });
    expect(await limiter.settle(refusal, { tokens: 1 })).toBe(false);
    expect(await limiter.attempt('a', { cost: { tokens: 300 } })).toMatchObject({ allowed: true });
  },

  async 'to settle at 0 is to refund, also where costs had names'({ make }) {
    const limiter = make(NAMED);
    const decision = await limiter.attempt('a', { cost: { tokens: 1000 } });
    expect(await limiter.settle(decision, 0)).toBe(true);
    expect(await usedOf(limiter)).toEqual([0, 0]);
    expect(await limiter.settle(decision, 0)).toBe(false);
  },

  async 'more than was reserved overdraws a window until enough has left'({ make, time }) {
    const limiter = make(NAMED);
    const decision = await limiter.attempt('a', { cost: { tokens: 3000 } });
    time.advance(1000);
    expect(await limiter.settle(decision, { tokens: 5000 })).toBe(true);
    const { allowed, limits } = await limiter.usage('a');
    expect([allowed, limits[1].remaining]).toEqual([false, 0]);
    expect(limits[1].used).toBeGreaterThanOrEqual(3000);
    await expectExactWait(limiter, time, { tokens: 2 });
  },

  async 'a settled attempt of a cleared or unknown id is not found'({ make }) {
    const limiter = make(NAMED);
    const decision = await limiter.attempt('a', { cost: { tokens: 100 } });
    await limiter.clear('a');
    expect(await limiter.settle(decision, { tokens: 50 })).toBe(false);
    await limiter.attempt('a', { cost: { tokens: 100 } });
    expect(await limiter.settle(decision, { tokens: 50 })).toBe(false);
    expect(await usedOf(limiter)).toEqual([1, 100]);
    const peeked = await limiter.peek('a', { cost: { tokens: 100 } });
    expect(await limiter.settle(peeked, { tokens: 50 })).toBe(false);
  },

  async 'without names a number settles, and what is left can be used'({ make }) {
    const limiter = make({ maxInInterval: 10 });
    const decision = await limiter.attempt('a', { cost: 8 });
    expect(await limiter.settle(decision, 3)).toBe(true);
    expect(await usedOf(limiter)).toEqual([3]);
    const more = await limiter.attempt('a', { cost: 2 });
    expect(await limiter.settle(more, 6)).toBe(true);
    expect(await usedOf(limiter)).toEqual([9]);
    expect(await limiter.attempt('a', { cost: 2 })).toMatchObject({ allowed: false });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
  },

  async 'a wrong cost by name, or a wrong end, is an error, and nothing changes'({ make, codeOf }) {
    const limiter = make(NAMED);
    const decision = await limiter.attempt('a', { cost: { tokens: 100 } });
    for (const cost of [
      { token: 1 },
      { tokens: -1 },
      { tokens: 3001 },
      { requests: 0, tokens: 0 },
    ]) {
      for (const call of ['attempt', 'peek', 'wait']) {
        expect(await codeOf(() => limiter[call]('a', { cost }))).toBe('ERR_ROLLGATE_COST');
      }
    }
    for (const actual of [5, { token: 1 }, { tokens: -1 }, { tokens: 2 ** 53 }]) {
      expect(await codeOf(() => limiter.settle(decision, actual))).toBe('ERR_ROLLGATE_COST');
    }
    expect(await usedOf(limiter)).toEqual([1, 100]);
    const other = await make(NAMED).attempt('a');
    expect(await codeOf(() => limiter.settle(other, {}))).toBe('ERR_ROLLGATE_DECISION');
    expect(await limiter.settle(decision, { tokens: 7 })).toBe(true);
    expect(await usedOf(limiter)).toEqual([1, 7]);
  },

  async 'attemptAll counts costs by name on all limiters or on none'({ make }) {
    const user = make(NAMED);
    const organisation = make({ limits: [{ ...TOKENS, maxInInterval: 4000 }] });
    const attempt = (id, tokens) =>
      RateLimiter.attemptAll([
        { limiter: user, id, cost: { tokens } },
        { limiter: organisation, id: 'acme', cost: { tokens } },
      ]);
    const first = await attempt('ada', 2500);
    expect(first.allowed).toBe(true);
    expect((await attempt('bob', 2000)).refusedBy).toBe(1);
    expect(await usedOf(user, 'bob')).toEqual([0, 0]);
    await organisation.settle(first.decisions[1], { tokens: 1500 });
    expect((await attempt('bob', 2000)).allowed).toBe(true);
    expect(await usedOf(organisation, 'acme')).toEqual([3500]);
  },

  'sliding-window-log': {
    async 'an overdraft without names takes the places of what is older'({ make, time }) {
      const limiter = make({ maxInInterval: 4, countBlocked: false });
      await limiter.attempt('a');
      time.advance(100);
      const overdrawn = await limiter.attempt('a');
      expect(await limiter.settle(overdrawn, 6)).toBe(true);
      const { timeLeft } = await limiter.peek('a');
      await expectExactWait(limiter, time, 1);
      expect(timeLeft).toBe((await make({ maxInInterval: 4 }).attempt('b')).resetIn);
    },

    async 'a refund gives no room that an overdraft needs'({ make, time }) {
      const limiter = make({ maxInInterval: 4, countBlocked: false });
      const first = await limiter.attempt('a');
      const overdrawn = await limiter.attempt('a');
      expect(await limiter.settle(overdrawn, 6)).toBe(true);
      time.advance(1);
      expect(await limiter.refund(first)).toBe(true);
      expect(await limiter.peek('a')).toMatchObject({ allowed: false });
      await expectExactWait(limiter, time, 1);
    },
  },

  gcra: {
    async 'what has leaked can be settled while its window lasts'({ make, at }) {
      const window = { interval: 84_000, maxInInterval: 100 };
      for (const requests of [{ ...window, maxInInterval: 1 }, window]) {
        const limiter = make({
          limits: [
            { ...requests, name: 'requests' },
            { ...window, name: 'tokens' },
          ],
        });
        at(0);
        const decision = await limiter.attempt('a', { cost: { tokens: 1 } });
        at(1_000_000); // the one token has leaked
        for (let i = 0; i < 200; i++) await limiter.attempt(`other ${i}`);
        at(6_800_000);
        expect(await limiter.settle(decision, { tokens: 284 })).toBe(true);
        // As if it had cost 284 from the beginning: 284 + 13 - 100 have to leak, each in 840 ms.
        at(25_718_000);
        expect(await limiter.attempt('a', { cost: { tokens: 13 } })).toMatchObject({
          allowed: false,
          timeLeft: 139_762,
        });
      }
    },

    async 'nothing is settled once its window has passed'({ make, at }) {
      const limiter = make({ limits: [{ ...TOKENS, interval: 84_000 }] });
      at(0);
      const attempt = (tokens) => limiter.attempt('a', { cost: { tokens } });
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
    async 'a refusal counts with its costs'({ make }) {
      const limiter = make({ ...NAMED, countBlocked: true });
      await limiter.attempt('a', { cost: { tokens: 2000 } });
      const refusal = await limiter.attempt('a', { cost: { requests: 2, tokens: 2000 } });
      expect(refusal.allowed).toBe(false);
      expect(await usedOf(limiter)).toEqual([3, 4000]);
      expect(await limiter.settle(refusal, { tokens: 0 })).toBe(false);
    },

    // Kills: a use that is cut to the maximum because refusals count.
    async 'an overdraft shows in what is used'({ make, algorithm }) {
      const limiter = make({ ...NAMED, countBlocked: true });
      const decision = await limiter.attempt('a', { cost: { tokens: 3000 } });
      await limiter.settle(decision, { tokens: 5000 });
      expect(await usedOf(limiter)).toEqual([1, 5000]);
      if (algorithm === 'sliding-window-log') return; // it has no more places than its limit
      const unnamed = make({ maxInInterval: 10, countBlocked: true });
      await unnamed.settle(await unnamed.attempt('a', { cost: 10 }), 100);
      const { used, remaining } = await unnamed.usage('a');
      expect([used, remaining]).toEqual([100, 0]);
      expect((await unnamed.attempt('a')).limits).toMatchObject([{ used: 101, remaining: 0 }]);
    },
  },
};
