// Behaviours: several windows at once, decided and recorded as one.
'use strict';

const { SECOND } = require('./support');

const LIMITS = [
  { interval: 60_000, maxInInterval: 2 },
  { interval: 600_000, maxInInterval: 3 },
];

module.exports = {
  async 'an action passes only if every window lets it pass'({ make, at }) {
    const limiter = make({ limits: LIMITS, countBlocked: false });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false, blockedBy: 'count' });
    at(120 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false, blockedBy: 'count' });
  },

  async 'what one window refuses, the other does not record'({ make, at }) {
    const limiter = make({ limits: LIMITS, countBlocked: false });
    await limiter.attempt('a', { cost: 2 });
    await limiter.attempt('a');
    at(120 * SECOND);
    await limiter.attempt('a');
    const { limits } = await limiter.attempt('a');
    expect(limits.map(({ used }) => used)).toEqual([1, 3]);
    expect(limits.map(({ remaining }) => remaining)).toEqual([1, 0]);
    expect(limits).toMatchObject(LIMITS);
  },

  async 'resetIn of an allowed attempt is that of the window with the least left'({ make }) {
    for (const [first, second] of [
      [2, 3],
      [3, 2],
    ]) {
      const limits = [
        { interval: 60_000, maxInInterval: first },
        { interval: 600_000, maxInInterval: second },
      ];
      const decision = await make({ limits }).attempt('a');
      const tightest = first < second ? 0 : 1;
      expect(decision.resetIn).toBe(decision.limits[tightest].resetIn);
      expect(decision.resetIn).not.toBe(decision.limits[1 - tightest].resetIn);
    }
  },

  async 'where equally little is left, resetIn is the longer one'({ make }) {
    const limits = [600_000, 60_000, 300_000].map((interval) => ({ interval, maxInInterval: 4 }));
    const decision = await make({ limits }).attempt('a');
    expect(decision.resetIn).toBe(decision.limits[0].resetIn);
    expect(decision.resetIn).toBeGreaterThan(decision.limits[2].resetIn);
  },

  async 'timeLeft waits for every window'({ make, at }) {
    const limiter = make({ limits: LIMITS, countBlocked: false });
    await limiter.attempt('a', { cost: 2 });
    at(120 * SECOND);
    await limiter.attempt('a');
    const { timeLeft } = await limiter.attempt('a', { cost: 2 });
    at(120 * SECOND + (timeLeft - 1) * 1000);
    expect((await limiter.peek('a', { cost: 2 })).allowed).toBe(false);
    at(120 * SECOND + timeLeft * 1000);
    expect((await limiter.attempt('a', { cost: 2 })).allowed).toBe(true);
  },

  async 'the largest minDifference of all windows holds'({ make, at }) {
    const limits = [
      { interval: 60_000, maxInInterval: 9, minDifference: 5 },
      { interval: 600_000, maxInInterval: 9, minDifference: 20 },
    ];
    const limiter = make({ limits, countBlocked: false });
    await limiter('a');
    at(19_999);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'minDifference', timeLeft: 1 });
    at(20_000);
    expect(await limiter('a')).toBe(0);
  },

  async 'replaces the single limit where both are given'({ make }) {
    const limiter = make({ interval: 5, maxInInterval: 50, minDifference: 1e6, limits: LIMITS });
    expect((await limiter.attempt('a', { cost: 2 })).limits).toMatchObject(LIMITS);
  },

  async 'one window in a list is that window'({ make, at }) {
    const one = { interval: 60_000, maxInInterval: 2, minDifference: 3 };
    const [plain, listed] = [make(one), make({ limits: [one] })];
    for (const ms of [0, 2, 3, 5, 30_000, 60_000, 60_001, 90_000, 120_002]) {
      at(ms * 1000);
      expect({ ...(await listed.attempt('a')) }).toEqual({ ...(await plain.attempt('a')) });
    }
  },
};
