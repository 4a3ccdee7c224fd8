// Behaviours: when a window is full and for how long, minDifference, several windows, readings of the clock.
'use strict';

const SECOND = 1_000_000; // us
const MINUTE = 60 * SECOND;

const LIMITS = [
  { interval: 60_000, maxInInterval: 2 },
  { interval: 600_000, maxInInterval: 3 },
];

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

  async 'an attempt is refused before timeLeft and allowed at it, whatever it costs'({ make, at }) {
    for (const cost of [1, 2, 3, 4, 5]) {
      const limiter = make({ maxInInterval: 5 });
      for (const micros of [0, 7 * SECOND, 11 * SECOND + 1, 30 * SECOND, 41 * SECOND]) {
        at(micros);
        await limiter.attempt('a');
      }
      const { allowed, timeLeft } = await limiter.attempt('a', { cost });
      if (allowed) continue; // with gcra some have leaked
      at(41 * SECOND + (timeLeft - 1) * 1000);
      expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: false, timeLeft: 1 });
      at(41 * SECOND + timeLeft * 1000);
      expect(await limiter.attempt('a', { cost })).toMatchObject({ allowed: true });
    }
  },

  async 'durations and times are taken to the microsecond'({ make, time, rule }) {
    const limiter = make({ interval: 0.25, maxInInterval: 1 });
    const set = (micros) => time.set(1000 + micros / 1000);
    const end = rule.fullFor(250, 1);
    set(0.4);
    expect(await limiter('a')).toBe(0);
    set(end - 0.6);
    expect(await limiter('a')).toBe(1);
    set(end - 0.4);
    expect(await limiter('a')).toBe(0);
  },

  async 'a refusal that does not count changes neither the state nor a later answer'(suite) {
    const { make, at, stateOf } = suite;
    for (const minDifference of [0, 5]) {
      const limiters = [1, 2].map(() => make({ maxInInterval: 3, minDifference }));
      const [alone, hammered] = limiters;
      at(0);
      for (const limiter of limiters) await limiter.attempt('a', { cost: 3 });
      const [state, { bytes, keys }] = [await stateOf('a'), hammered.stats()];
      for (const seconds of [1, 5, 9, 13, 17, 19]) {
        at(seconds * SECOND);
        await hammered('a');
        await hammered.attempt('a', { cost: 3 });
      }
      expect(await stateOf('a')).toEqual(state);
      expect(hammered.stats()).toMatchObject({ bytes, keys });
      for (const seconds of [19, 20, 40, 59, 60, 61, 100]) {
        at(seconds * SECOND);
        expect({ ...(await hammered.peek('a')) }).toEqual({ ...(await alone.peek('a')) });
      }
    }
  },

  async 'refusals count by default, if they can'(suite) {
    const [byDefault, explicit] = [undefined, suite.countBlocked].map((countBlocked) =>
      suite.make({ maxInInterval: 1, countBlocked }),
    );
    await expectAlike(suite, [byDefault, explicit], [0, 20, 40, 61, 80, 130]);
  },

  async 'the gap minDifference itself is enough'({ make, at }) {
    const limiter = make({ maxInInterval: 100, minDifference: 10 });
    await limiter('a');
    at(9999);
    expect(await limiter.attempt('a')).toMatchObject({
      allowed: false,
      blockedBy: 'minDifference',
      timeLeft: 1,
    });
    at(10_000);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
    at(10_001);
    expect(await limiter('a')).toBe(10);
  },

  async 'minDifference is between attempts, whatever they cost'({ make, at }) {
    const limiter = make({ maxInInterval: 9, minDifference: 10 });
    expect(await limiter.attempt('a', { cost: 3 })).toMatchObject({ allowed: true });
    for (const cost of [1, 2, 6]) {
      at(9999);
      const refused = { allowed: false, blockedBy: 'minDifference', timeLeft: 1, actionsLeft: 6 };
      expect(await limiter.attempt('a', { cost })).toMatchObject(refused);
      at(10_000);
      expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: true });
    }
    expect(await limiter.attempt('a', { cost: 6 })).toMatchObject({ allowed: true });
  },

  async 'count and minDifference together: the count is named, the longer wait holds'(suite) {
    const { make, fullFor } = suite;
    const full = Math.ceil(fullFor(1) / 1000);
    for (const minDifference of [10, 90_000]) {
      const limiter = make({ maxInInterval: 1, minDifference });
      await limiter('a');
      expect(await limiter.wouldLimitWithInfo('a')).toMatchObject({
        blockedDueToCount: true,
        blockedDueToMinDifference: true,
      });
      const timeLeft = Math.max(minDifference, full);
      expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft });
    }
  },

  async 'several windows: allowed only if every window allows, and recorded in all or none'(suite) {
    const { make, at } = suite;
    const limiter = make({ interval: 5, maxInInterval: 50, minDifference: 1e6, limits: LIMITS });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false, blockedBy: 'count' });
    at(120 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    const { allowed, timeLeft, limits } = await limiter.attempt('a');
    expect({ allowed, limits }).toMatchObject({
      allowed: false,
      limits: [
        { ...LIMITS[0], used: 1, remaining: 1 },
        { ...LIMITS[1], used: 3, remaining: 0 },
      ],
    });
    at(120 * SECOND + (timeLeft - 1) * 1000);
    expect((await limiter.peek('a')).allowed).toBe(false);
    at(120 * SECOND + timeLeft * 1000);
    expect((await limiter.attempt('a')).allowed).toBe(true);
  },

  async 'resetIn of an allowed attempt is the longest of the windows with the least left'(suite) {
    const { make } = suite;
    for (const [maxima, place] of [
      [[2, 3, 3], 0],
      [[3, 3, 2], 2],
      [[4, 4, 4], 1],
    ]) {
      const intervals = [60_000, 600_000, 300_000];
      const limits = intervals.map((interval, i) => ({ interval, maxInInterval: maxima[i] }));
      const decision = await make({ limits }).attempt('a');
      const resets = decision.limits.map(({ resetIn }) => resetIn);
      expect(new Set(resets).size).toBe(3);
      expect(decision.resetIn).toBe(resets[place]);
    }
  },

  async 'the largest minDifference of all windows holds'({ make, at }) {
    const limits = [
      { interval: 60_000, maxInInterval: 9, minDifference: 5 },
      { interval: 600_000, maxInInterval: 9, minDifference: 20 },
    ];
    const limiter = make({ limits });
    await limiter('a');
    at(19_999);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'minDifference', timeLeft: 1 });
    at(20_000);
    expect(await limiter('a')).toBe(0);
  },

  async 'an array of one window is that window'(suite) {
    const one = { interval: 60_000, maxInInterval: 2, minDifference: 3 };
    const limiters = [suite.make(one), suite.make({ limits: [one] })];
    await expectAlike(suite, limiters, [0, 0.002, 0.003, 30, 60, 60.001, 90, 120.002]);
  },

  async 'a step back of the clock lets nothing more through'({ make, at, fullFor }) {
    const limiter = make();
    await limiter.attempt('a', { cost: 2 });
    for (const micros of [-1, -SECOND, -MINUTE, -2 * MINUTE, -1000 * MINUTE]) {
      at(micros);
      const timeLeft = Math.ceil((fullFor(2) - micros) / 1000);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: false, timeLeft });
    }
    at(fullFor(2) - 1);
    expect((await limiter.peek('a')).allowed).toBe(false);
    at(fullFor(2));
    expect((await limiter.peek('a')).allowed).toBe(true);
  },

  async 'after a step back, an action counts as made at the newest one; gcra refuses it'(suite) {
    const { make, at, rule } = suite;
    const limiter = make();
    await limiter('a');
    at(-10 * SECOND);
    expect(await limiter('a')).toBe(rule.clampsTime ? 0 : 10_000);
    at(55 * SECOND);
    expect((await limiter.peek('a')).allowed).toBe(!rule.clampsTime);
  },

  async 'with minDifference a step back waits for the newest action'({ make, at }) {
    const limiter = make({ maxInInterval: 9, minDifference: 1000 });
    await limiter('a');
    at(-5 * SECOND);
    const refused = { blockedBy: 'minDifference', timeLeft: 6000 };
    expect(await limiter.attempt('a')).toMatchObject(refused);
  },

  async 'the time may be before the epoch'({ make, time, fullFor }) {
    const limiter = make({ maxInInterval: 1 });
    time.set(-60_000);
    expect(await limiter('a')).toBe(0);
    time.set(-1);
    expect(await limiter('a')).toBe(fullFor(1) > MINUTE ? 2 : 1);
    time.set(0.001);
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

  'where refusals can count': {
    async 'a refusal that counts lengthens the wait, its own included'({ make, at, rule }) {
      const limiter = make({ maxInInterval: 1, countBlocked: true });
      await limiter('a');
      at(30 * SECOND);
      const { timeLeft } = await limiter.attempt('a');
      expect(timeLeft).toBe(Math.ceil(rule.fullForAfterRefusal(MINUTE) / 1000));
      at(30 * SECOND + timeLeft * 1000);
      expect(await limiter('a')).toBe(0);
    },
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
        const { allowed, limits } = await limiter.peek('a');
        used.push(limits[0].used - (allowed ? 1 : 0)); // without the peek itself
      }
      expect(used).toEqual([10, 9, 7, 5, 1, 0, 0]);
    },
  },

  gcra: {
    async 'tokens come back one by one'({ make, at }) {
      const limiter = make({ maxInInterval: 6 });
      await limiter.attempt('a', { cost: 6 });
      for (let i = 1; i <= 6; i++) {
        at((i * MINUTE) / 6 - 1);
        expect((await limiter.peek('a', { cost: i })).allowed).toBe(false);
        at((i * MINUTE) / 6);
        expect((await limiter.peek('a', { cost: i })).allowed).toBe(true);
      }
    },

    async 'up to 1000 actions no rounding adds up, though an emission is no whole microsecond'({
      make,
      at,
    }) {
      for (const max of [3, 7, 999]) {
        const limiter = make({ interval: 100_000, maxInInterval: max });
        at(0);
        await limiter.attempt('a', { cost: max });
        for (const tokens of [1, 2, max]) {
          const end = Math.ceil((tokens * 100 * SECOND) / max);
          at(end - 1);
          const early = { allowed: false, timeLeft: 1 };
          expect(await limiter.peek('a', { cost: tokens })).toMatchObject(early);
          at(end);
          expect((await limiter.peek('a', { cost: tokens })).allowed).toBe(true);
        }
      }
    },

    async 'above 1000 actions an emission is rounded up to a nanosecond'({ make, at }) {
      const limiter = make({ interval: 100_000, maxInInterval: 1500 });
      await limiter.attempt('a', { cost: 1500 });
      // 1500 times 66,666,667 ns are 0.5 us more than the interval.
      for (const [cost, end] of [
        [1, 66_667],
        [1500, 100 * SECOND + 1],
      ]) {
        at(end - 1);
        expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: false, timeLeft: 1 });
        at(end);
        expect((await limiter.peek('a', { cost })).allowed).toBe(true);
      }
    },
  },
};
