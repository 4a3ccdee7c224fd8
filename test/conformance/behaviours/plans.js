// Behaviours: limits for one call, such as those of a customer's plan.
'use strict';

const RateLimiter = require('../../..');

const SECOND = 1_000_000; // us
const MINUTE_MS = 60_000;

const NAMED = {
  limits: [
    { name: 'requests', interval: MINUTE_MS, maxInInterval: 3 },
    { name: 'tokens', interval: 600_000, maxInInterval: 100 },
  ],
};

const usedOf = async (limiter, id = 'a') => {
  const { limits } = await limiter.usage(id);
  return limits.map(({ used }) => used);
};

/** How many attempts in a row are allowed under these limits, at most `most`. */
async function admitted(limiter, limits, most = 20) {
  for (let n = 0; n < most; n++) {
    const { allowed } = await limiter.attempt('a', { limits });
    if (!allowed) return n;
  }
  return most;
}

module.exports = {
  // Kills: a maximum of the limiter in a decision, its limits, a peek or a usage; limits that stay for the next call.
  async 'limits of a call decide it, and nothing else'({ make }) {
    const limiter = make({ maxInInterval: 2 });
    const shown = { interval: MINUTE_MS, maxInInterval: 5 };
    expect(await limiter.attempt('a', { limits: 5, cost: 4 })).toMatchObject({
      allowed: true,
      actionsLeft: 1,
      limits: [{ ...shown, used: 4, remaining: 1 }],
    });
    expect(await limiter.peek('a', { limits: 5 })).toMatchObject({
      allowed: true,
      limits: [{ ...shown, remaining: 0 }],
    });
    expect(await limiter.usage('a', { limits: 5 })).toMatchObject({
      ...{ allowed: true, used: 4, remaining: 1 },
      limits: [{ ...shown, used: 4, remaining: 1 }],
    });
    expect(await limiter.usage('a')).toMatchObject({
      ...{ allowed: false, used: 4, remaining: 0 },
      limits: [{ maxInInterval: 2, used: 4 }],
    });
    expect(await limiter.attempt('a')).toMatchObject({
      ...{ allowed: false, blockedBy: 'count', actionsLeft: 0 },
      limits: [{ maxInInterval: 2 }],
    });
    expect(await limiter.attempt('a', { limits: 5 })).toMatchObject({ allowed: true });
    expect(await limiter.attempt('b', { limits: 1 })).toMatchObject({ allowed: true });
    expect(await limiter('b')).toBe(0);
  },

  // Kills: counts that are cut to a lower limit; a limiter of its own for each limit.
  async 'what was counted stays, whatever limits later calls bring'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 4 });
    expect(await admitted(limiter, 3)).toBe(3);
    expect(await limiter.attempt('a', { limits: 1 })).toMatchObject({ allowed: false });
    expect(await limiter.peek('a', { limits: 0 })).toMatchObject({ allowed: false });
    expect(await admitted(limiter, 9)).toBe(6);
    expect(await admitted(limiter, 2)).toBe(0);
    expect(await admitted(limiter, 12)).toBe(3);
    expect(await admitted(limiter, undefined)).toBe(0);
    expect(await usedOf(limiter)).toEqual([12]);
  },

  async 'refused until timeLeft and allowed exactly at it, under the limits of the call'(suite) {
    const { make, time } = suite;
    const limiter = make({ maxInInterval: 2 });
    for (const cost of [2, 3, 1]) {
      await limiter.attempt('a', { cost, limits: 9 });
      time.advance(5000);
    }
    for (const limits of [3, 5, 1, 6]) {
      const { allowed, timeLeft } = await limiter.attempt('a', { limits });
      if (allowed) continue;
      const now = time.clock();
      time.set(now + timeLeft - 1);
      expect(await limiter.peek('a', { limits })).toMatchObject({ allowed: false, timeLeft: 1 });
      time.set(now + timeLeft);
      expect(await limiter.peek('a', { limits })).toMatchObject({ allowed: true });
      time.set(now);
    }
  },

  async 'limits by name leave the other windows theirs'({ make }) {
    const limiter = make(NAMED);
    const shown = async (limits) => (await limiter.peek('a', { limits })).limits;
    expect(await shown({ tokens: 500 })).toMatchObject([
      { name: 'requests', maxInInterval: 3 },
      { name: 'tokens', maxInInterval: 500 },
    ]);
    expect(await shown({ requests: 7, tokens: 5 })).toMatchObject([
      { name: 'requests', maxInInterval: 7 },
      { name: 'tokens', maxInInterval: 5 },
    ]);
    const attempt = (tokens, limits) => limiter.attempt('a', { cost: { tokens }, limits });
    expect(await attempt(450, { tokens: 500 })).toMatchObject({ allowed: true });
    expect(await attempt(51, { tokens: 500 })).toMatchObject({ allowed: false });
    expect(await attempt(0, { tokens: 5 })).toMatchObject({ allowed: true });
    expect(await attempt(50, { tokens: 500 })).toMatchObject({ allowed: true });
    expect(await attempt(0, { tokens: 500 })).toMatchObject({ allowed: false });
    expect(await attempt(0, { requests: 4 })).toMatchObject({ allowed: true });
    expect(await usedOf(limiter)).toEqual([4, 500]);
  },

  async 'the only window takes a number, with a name as well'({ make }) {
    const [requests] = NAMED.limits;
    const limiter = make({ limits: [requests] });
    expect(await limiter.peek('a', { limits: 7 })).toMatchObject({ actionsLeft: 6 });
    expect(await limiter.peek('a', { limits: { requests: 8 } })).toMatchObject({ actionsLeft: 7 });
  },

  async 'limits may be far above those of the limiter'({ make, at, store, algorithm }) {
    at(0);
    const limits = Math.min(store.largestLimit(algorithm), 3000);
    const limiter = make({ maxInInterval: 1 });
    const half = Math.floor(limits / 2);
    expect(await limiter.attempt('a', { limits, cost: half })).toMatchObject({
      allowed: true,
      actionsLeft: limits - half,
    });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
    expect(await limiter.attempt('a', { limits, cost: limits - half })).toMatchObject({
      ...{ allowed: true, actionsLeft: 0 },
      limits: [{ used: limits }],
    });
    expect(await limiter.peek('a', { limits })).toMatchObject({ allowed: false });
    expect(await usedOf(limiter)).toEqual([limits]);
  },

  async 'a refund gives back what that attempt took, under whatever limits'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 4 });
    const decisions = [];
    for (const limits of [10, 5, undefined, 20]) {
      decisions.push(await limiter.attempt('a', { limits }));
    }
    expect(await usedOf(limiter)).toEqual([4]);
    expect(await limiter.refund(decisions[0])).toBe(true);
    expect(await usedOf(limiter)).toEqual([3]);
    expect(await limiter.settle(decisions[3], 0)).toBe(true);
    expect(await admitted(limiter, 7)).toBe(5);
  },

  async 'minDifference and blocks are those of the limiter'({ make, time }) {
    const limiter = make({ maxInInterval: 9, minDifference: 1000 });
    await limiter.attempt('a', { limits: 100 });
    expect(await limiter.attempt('a', { limits: 100 })).toMatchObject({
      blockedBy: 'minDifference',
      timeLeft: 1000,
    });
    time.advance(1000);
    expect(await limiter.attempt('a', { limits: 2 })).toMatchObject({ allowed: true });
  },

  async 'limits of a call and setLimits count together'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 2 });
    expect(await admitted(limiter, 5)).toBe(5);
    limiter.setLimits([{ interval: MINUTE_MS, maxInInterval: 7 }]);
    expect(await admitted(limiter)).toBe(2);
    limiter.setLimits([{ interval: MINUTE_MS, maxInInterval: 1 }]);
    expect(await admitted(limiter, 9)).toBe(2);
    expect(await usedOf(limiter)).toEqual([9]);
  },

  // Kills: a state that is read in the units of the reader's limit.
  async 'limiters that count together agree on what is used, whatever their limits'(suite) {
    const { makeTogether, at } = suite;
    at(0);
    const [small, large] = makeTogether({ maxInInterval: 4 }, { maxInInterval: 20 });
    if (small === undefined) return;
    await small.attempt('a', { cost: 3 });
    const decision = await large.attempt('a', { cost: 5 });
    expect(decision).toMatchObject({ allowed: true, actionsLeft: 12 });
    expect(await small.attempt('a')).toMatchObject({ allowed: false });
    expect([await usedOf(small), await usedOf(large)]).toEqual([[8], [8]]);
    expect(await small.attempt('a', { limits: 10, cost: 2 })).toMatchObject({ allowed: true });
    expect(await large.attempt('a', { limits: 10 })).toMatchObject({ allowed: false });
    expect(await large.refund(decision)).toBe(true);
    expect([await usedOf(small), await usedOf(large)]).toEqual([[5], [5]]);
  },

  async 'a call waits under its own limits'({ make, codeOf, at }) {
    at(0);
    const limiter = make({ maxInInterval: 1 });
    await limiter.attempt('a');
    expect(await limiter.wait('a', { limits: 2 })).toMatchObject({
      ...{ allowed: true, actionsLeft: 0 },
      limits: [{ maxInInterval: 2 }],
    });
    for (const options of [{ limits: 0 }, { limits: 2, cost: 3 }]) {
      expect(await codeOf(() => limiter.wait('a', options))).toBe('ERR_ROLLGATE_COST');
    }
    const waiting = limiter.wait('a', { limits: 2 });
    await limiter.clear('a');
    expect(await waiting).toMatchObject({ allowed: true, actionsLeft: 1 });
  },

  // Kills: limits of one entry that apply to another, or to a refund of the attempt.
  async 'entries of attemptAll may have limits'({ make }) {
    const user = make({ maxInInterval: 1 });
    const organisation = make({ maxInInterval: 2 });
    const attempt = (limits, cost) =>
      RateLimiter.attemptAll([
        { limiter: user, id: 'ada', limits, cost },
        { limiter: organisation, id: 'acme', limits: 4 },
      ]);
    expect(await attempt(3)).toMatchObject({ allowed: true, refusedBy: null });
    expect(await attempt(3)).toMatchObject({ allowed: true, refusedBy: null });
    expect(await attempt(undefined)).toMatchObject({ allowed: false, refusedBy: 0 });
    const { decisions } = await attempt(3);
    expect(decisions).toMatchObject([
      { actionsLeft: 0, limits: [{ maxInInterval: 3 }] },
      { actionsLeft: 1, limits: [{ maxInInterval: 4 }] },
    ]);
    expect(await attempt(0)).toMatchObject({ allowed: false, refusedBy: 0 });
    expect([await usedOf(user, 'ada'), await usedOf(organisation, 'acme')]).toEqual([[3], [3]]);
  },

  'where refusals can count': {
    async 'a refusal under a limit of the call counts'({ make, at, algorithm }) {
      at(0);
      const limiter = make({ maxInInterval: 2, countBlocked: true });
      expect(await admitted(limiter, 1)).toBe(1);
      expect(await admitted(limiter, 3)).toBe(1);
      // A log has no place for the refusal under 3.
      const used = algorithm === 'sliding-window-log' ? 4 : 5;
      expect(await limiter.attempt('a', { limits: 5 })).toMatchObject({
        ...{ allowed: true, actionsLeft: 5 - used },
        limits: [{ used }],
      });
      await limiter.attempt('a', { limits: 0 });
      await limiter.attempt('a', { limits: 2, cost: 3 });
      expect(await limiter.usage('a', { limits: 9 })).toMatchObject({ used });
    },
  },

  'sliding-window-log': {
    // Kills: a settlement that pushes out what a larger plan counts.
    async 'an attempt under a larger plan may come to more than it reserved'({ make, at }) {
      const limiter = make({ maxInInterval: 4, countBlocked: false });
      at(0);
      for (let i = 0; i < 3; i++) await limiter.attempt('a', { limits: 20 });
      const decision = await limiter.attempt('a', { limits: 20 });
      for (let i = 0; i < 4; i++) await limiter.attempt('a', { limits: 20 });
      expect(await limiter.settle(decision, 9)).toBe(true);
      expect(await limiter.usage('a', { limits: 20 })).toMatchObject({ used: 16, remaining: 4 });
      expect(await admitted(limiter, 20)).toBe(4);
    },

    // Kills: a log that is cut to the limiter's own maximum by the next call.
    async 'a log that counts refusals keeps what the largest limit needed'({ make, at }) {
      const limiter = make({ maxInInterval: 2, countBlocked: true });
      at(0);
      expect(await admitted(limiter, 10)).toBe(10);
      at(30 * SECOND);
      for (let i = 0; i < 3; i++) {
        expect(await limiter.attempt('a')).toMatchObject({ allowed: false, limits: [{ used: 2 }] });
      }
      expect(await limiter.peek('a', { limits: 10 })).toMatchObject({ allowed: false });
      expect(await limiter.usage('a', { limits: 100 })).toMatchObject({ used: 10 });
      at(60 * SECOND);
      expect(await limiter.usage('a', { limits: 100 })).toMatchObject({ used: 3 });
    },
  },

  gcra: {
    // Kills: an arrival time that another limit reads in its own units.
    async 'the count stays, and leaks at the rate of the limit that reads it'({ make, at }) {
      const limiter = make({ maxInInterval: 10 });
      at(0);
      await limiter.attempt('a', { cost: 8 });
      const usedUnder = async (limits) => (await limiter.usage('a', { limits })).used;
      expect([await usedUnder(10), await usedUnder(20), await usedUnder(2)]).toEqual([8, 8, 8]);
      at(12 * SECOND);
      expect([await usedUnder(10), await usedUnder(20), await usedUnder(2)]).toEqual([6, 4, 8]);
      at(30 * SECOND);
      expect([await usedUnder(10), await usedUnder(20), await usedUnder(2)]).toEqual([3, 0, 7]);
    },

    // Kills: a state that keeps the limit of its first attempt, or takes that of a peek.
    async 'between two recorded attempts an id leaks at the rate of the later one'({ make, at }) {
      const limiter = make({ maxInInterval: 10 });
      at(0);
      await limiter.attempt('a', { cost: 8 });
      at(12 * SECOND);
      await limiter.peek('a', { limits: 1 });
      await limiter.attempt('a', { limits: 1 });
      await limiter.usage('a', { limits: 1 });
      await limiter.attempt('a', { limits: 20 }); // 4 have leaked
      expect(await usedOf(limiter)).toEqual([5]);
      at(24 * SECOND);
      expect(await usedOf(limiter)).toEqual([3]);
    },

    async 'fractions of an action round up'({ make, at }) {
      const limiter = make({ maxInInterval: 7 });
      at(0);
      await limiter.attempt('a', { cost: 5 });
      at(1);
      expect(await usedOf(limiter)).toEqual([5]);
      expect(await limiter.attempt('a', { limits: 1000, cost: 995 })).toMatchObject({
        allowed: true,
        actionsLeft: 0,
      });
    },
  },
};
