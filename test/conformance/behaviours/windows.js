// Behaviours: when a window is full and for how long, and what is special about each algorithm.
'use strict';

const SECOND = 1_000_000; // us
const MINUTE = 60 * SECOND;

/** The same attempts on two limiters get the same answers. */
async function expectAlike({ at }, limiters, seconds) {
  for (const second of seconds) {
    at(second * SECOND);
    const [a, b] = await Promise.all(limiters.map((limiter) => limiter.attempt('a')));
    expect({ second, ...a }).toEqual({ second, ...b });
  }
}

module.exports = {
  async 'allows maxInInterval actions and refuses the next; a Decision has six facts'(suite) {
    const { make, fullFor } = suite;
    const limiter = make({ maxInInterval: 3 });
    for (let i = 0; i < 4; i++) {
      const allowed = i < 3;
      const timeLeft = allowed ? 0 : Math.ceil(fullFor(3) / 1000);
      const used = Math.min(i + 1, 3);
      const remaining = 3 - used;
      const resetIn = expect.any(Number);
      expect({ ...(await limiter.attempt('a')) }).toEqual({
        allowed,
        timeLeft,
        actionsLeft: remaining,
        resetIn: allowed ? resetIn : timeLeft,
        blockedBy: allowed ? null : 'count',
        limits: [{ interval: 60_000, maxInInterval: 3, used, remaining, resetIn }],
      });
    }
  },

  async 'refuses up to the last microsecond; timeLeft is in whole ms, rounded up'(suite) {
    const { make, at, fullFor } = suite;
    const limiter = make();
    await limiter.attempt('a', { cost: 2 });
    const end = fullFor(2);
    const seen = [];
    for (const left of [2001, 2000, 1001, 1000, 999, 1, 0]) {
      at(end - left);
      const { allowed, blockedBy, timeLeft } = await limiter.attempt('a');
      expect(blockedBy).toBe(allowed ? null : 'count');
      seen.push(timeLeft);
    }
    expect(seen).toEqual([3, 2, 2, 1, 1, 1, 0]);
  },

  async 'refusals count by default, if they can'(suite) {
    const [byDefault, explicit] = [undefined, suite.countBlocked].map((countBlocked) =>
      suite.make({ maxInInterval: 1, countBlocked }),
    );
    await expectAlike(suite, [byDefault, explicit], [0, 20, 40, 61, 80, 130]);
  },

  async 'an array of one window is that window'(suite) {
    const one = { interval: 60_000, maxInInterval: 2, minDifference: 3 };
    const limiters = [suite.make(one), suite.make({ limits: [one] })];
    await expectAlike(suite, limiters, [0, 0.002, 0.003, 30, 60, 60.001, 90, 120.002]);
  },

  async 'the largest minDifference of all windows holds, between attempts of any cost'(suite) {
    const { make, at } = suite;
    const limiter = make({
      minDifference: 1e6, // as all of a window, it gives way to `limits`
      limits: [5, 20].map((minDifference, i) => {
        return { interval: 60_000 * (1 + i), maxInInterval: 9, minDifference };
      }),
    });
    await limiter.attempt('a', { cost: 3 });
    at(19_999);
    expect(await limiter.attempt('a', { cost: 2 })).toMatchObject({
      ...{ allowed: false, blockedBy: 'minDifference', timeLeft: 1, actionsLeft: 6 },
    });
    at(20_000);
    expect(await limiter('a')).toBe(0);
  },

  async 'times, durations and counts may be as large as a number can be'(suite) {
    const { make, store, algorithm } = suite;
    for (const reading of [1e300, -1e300, Number.MAX_SAFE_INTEGER, 0, -0, Number.MIN_VALUE]) {
      const limiter = make({ maxInInterval: 1, clock: () => reading });
      expect(await limiter('a')).toBe(0);
      expect(await limiter('a')).toBeGreaterThan(0);
      await limiter.clear('a');
    }
    const isLog = algorithm === 'sliding-window-log';
    const limiter = make({
      interval: Number.MAX_VALUE,
      maxInInterval: (isLog && store.longestLog) || Number.MAX_SAFE_INTEGER,
      minDifference: 1e300,
      blockFor: Number.MAX_VALUE,
    });
    expect(await limiter('a')).toBe(0);
    expect(await limiter('a')).toBeGreaterThan(1e11);
  },

  'fixed-window': {
    async 'windows begin with the epoch, not with the first action'({ make, at, startMs }) {
      expect(startMs % 600_000).toBe(0);
      const limiter = make();
      at(MINUTE - 1);
      await limiter.attempt('a', { cost: 2 });
      expect(await limiter('a')).toBe(1);
      at(MINUTE);
      expect(await limiter.attempt('a', { cost: 2 })).toMatchObject({ allowed: true });
    },
  },

  'sliding-window-counter': {
    async 'the previous window fades as it leaves, rounded down'({ make, at }) {
      const limiter = make({ maxInInterval: 10 });
      await limiter.attempt('a', { cost: 10 });
      const used = [];
      for (const share of [0, 0.1, 0.25, 0.5, 0.9, 0.95, 1]) {
        at(MINUTE + share * MINUTE);
        used.push((await limiter.usage('a')).used);
      }
      expect(used).toEqual([10, 9, 7, 5, 1, 0, 0]);
    },
  },

  gcra: {
    async 'actions leak one by one, at a rate that is rounded only above 1000 actions'(suite) {
      const { make, at } = suite;
      // [the maximum in 100 s, actions, after how many us so many have leaked]
      for (const [maxInInterval, cost, end] of [
        [6, 1, 16_666_667],
        [6, 2, 33_333_334],
        [6, 6, 100 * SECOND],
        [999, 2, 200_201],
        [1500, 1, 66_667],
        [1500, 1500, 100 * SECOND + 1], // 1500 times 66,666,667 ns
      ]) {
        const limiter = make({ interval: 100_000, maxInInterval });
        at(0);
        await limiter.attempt('a', { cost: maxInInterval });
        at(end - 1);
        expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: false, timeLeft: 1 });
        at(end);
        expect((await limiter.peek('a', { cost })).allowed).toBe(true);
      }
    },
  },
};
