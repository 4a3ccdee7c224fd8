// Behaviours: what is allowed and for how long not: windows, minDifference, blocks, refunds, clear and clearAll.
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

const usedOf = async (limiter) => {
  const { limits, allowed } = await limiter.peek('a');
  return limits[0].used - (allowed ? 1 : 0); // without the peek itself
};

const ONE = { maxInInterval: 1 };

/** Moves to a second and attempts. */
const attemptAt = ({ at }, limiter, seconds) => {
  at(seconds * SECOND);
  return limiter.attempt('a');
};

module.exports = {
  async 'allows maxInInterval actions and refuses the next; a Decision has six facts'({
    make,
    fullFor,
  }) {
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

  async 'refuses up to the last microsecond; timeLeft is in whole ms, rounded up'({
    make,
    at,
    fullFor,
  }) {
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

  async 'a refusal that does not count changes neither the state nor a later answer'({
    make,
    at,
    stateOf,
  }) {
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

  async 'several windows: allowed only if every window allows, and recorded in all or none'({
    make,
    at,
  }) {
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

  async 'times, durations and counts may be as large as a number can be'({
    make,
    store,
    algorithm,
  }) {
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

  async 'a refund gives back what the attempt cost, once and in any order'({ make }) {
    const options = { maxInInterval: 5 };
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const limiter = make(options);
      const decisions = [
        await limiter.attempt('a', { cost: 3 }),
        await limiter.attempt('a', { cost: 2 }),
      ];
      expect(await limiter.peek('a')).toMatchObject({ allowed: false });
      expect(await limiter.refund(decisions[order[0]])).toBe(true);
      expect(await usedOf(limiter)).toBe(order[0] === 0 ? 2 : 3);
      expect(await limiter.refund(decisions[order[0]])).toBe(false);
      expect(await limiter.refund(decisions[order[1]])).toBe(true);
      expect(await usedOf(limiter)).toBe(0);
      expect(await limiter.attempt('a', { cost: 5 })).toMatchObject({ allowed: true });
      expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
    }
  },

  async 'decisions of attemptMany can be refunded, each on its own'({ make }) {
    const limiter = make({ maxInInterval: 3 });
    const many = await limiter.attemptMany(['a', 'b', 'a', 'a', 'a']);
    expect(await limiter.refund(many[0])).toBe(true);
    expect(await limiter.refund(many[2])).toBe(true);
    expect(await limiter.refund(many[0])).toBe(false);
    expect(await limiter.refund(many[4])).toBe(false); // a refusal
    const seen = await limiter.attemptMany(['a', 'a', 'a', 'b', 'b', 'b']);
    expect(seen.map(({ allowed }) => allowed)).toEqual([true, true, false, true, true, false]);
  },

  async 'a refund after clear takes nothing, not even within one microsecond'({ make }) {
    const limiter = make();
    for (const clear of [() => limiter.clear('a'), () => limiter.clearAll()]) {
      const decision = await limiter.attempt('a');
      await clear();
      await limiter.attempt('a', { cost: 2 });
      expect(await limiter.refund(decision)).toBe(false);
      expect(await limiter('a')).toBeGreaterThan(0);
      await limiter.clear('a');
    }
  },

  async "another limiter's decision is refused"({ make, codeOf }) {
    const [mine, other] = [make(), make()];
    const decision = await other.attempt('a');
    const codes = [];
    for (const wrong of [decision, { ...decision }, {}, null, undefined, 'a', true, 5]) {
      codes.push(await codeOf(() => mine.refund(wrong)));
    }
    expect(codes).toEqual(Array(8).fill('ERR_ROLLGATE_DECISION'));
    expect(await other.refund(decision)).toBe(true);
  },

  async 'clear forgets one id and no other'({ make, stateOf }) {
    const limiter = make({ maxInInterval: 1, minDifference: 5, blockFor: 1_000_000 });
    for (const id of ['a', 'b', 'a', 'b']) await limiter(id);
    await limiter.clear('a');
    expect(await stateOf('a')).toBeFalsy();
    expect(await limiter.peek('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter('a')).toBe(0);
    expect(await limiter.attempt('b')).toMatchObject({ blockedBy: 'block' });
    await limiter.clear('unknown');
    await limiter.clear();
  },

  async 'clearAll forgets all ids of this limiter and none of another'({ make }) {
    const [mine, other] = [make({ maxInInterval: 1 }), make({ maxInInterval: 1 })];
    const ids = ['a', 'b', '', '*', 'ü', '__proto__'];
    for (const id of ids) {
      await mine(id);
      await other(id);
    }
    await mine.clearAll();
    for (const id of ids) {
      expect(await mine(id)).toBe(0);
      expect(await other(id)).toBeGreaterThan(0);
    }
    await mine.clearAll();
    await mine.clearAll();
  },

  async 'a refusal refuses that id for that long'(suite) {
    for (const blockFor of [100_000, [100_000]]) {
      const limiter = suite.make({ ...ONE, blockFor });
      const attempt = (seconds) => attemptAt(suite, limiter, seconds);
      expect(await attempt(0)).toMatchObject({ allowed: true });
      expect(await attempt(1)).toMatchObject({
        allowed: false,
        blockedBy: 'count',
        timeLeft: 100_000,
        resetIn: 100_000,
      });
      expect(await attempt(51)).toMatchObject({
        allowed: false,
        blockedBy: 'block',
        timeLeft: 50_000,
      });
      expect(await limiter('b')).toBe(0);
      suite.at(101 * SECOND - 1);
      expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 1 });
      expect(await attempt(101)).toMatchObject({ allowed: true, blockedBy: null });
    }
  },

  async 'attempts during a block leave no trace'(suite) {
    const { make, at, stateOf } = suite;
    for (const countBlocked of suite.countBlocked ? [true, false] : [false]) {
      const options = { countBlocked, blockFor: [100_000, 300_000] };
      const [alone, hammered] = [make(options), make(options)];
      at(0);
      for (const limiter of [alone, hammered]) {
        for (let i = 0; i < 3; i++) await limiter('a');
      }
      const [state, { bytes, keys }] = [await stateOf('a'), hammered.stats()];
      for (let seconds = 1; seconds < 100; seconds += 7) {
        at(seconds * SECOND);
        expect(await hammered.attempt('a')).toMatchObject({ blockedBy: 'block' });
        await hammered.attempt('a', { cost: 2 });
      }
      expect(await stateOf('a')).toEqual(state);
      expect(hammered.stats()).toMatchObject({ bytes, keys });
      for (const seconds of [100, 100, 101, 102, 103, 400, 402, 403, 5000]) {
        const [a, b] = [
          await attemptAt(suite, hammered, seconds),
          await attemptAt(suite, alone, seconds),
        ];
        expect({ countBlocked, seconds, ...a }).toEqual({ countBlocked, seconds, ...b });
      }
    }
  },

  async 'a peek shows the block that an attempt would start, and starts none'({ make, at }) {
    const limiter = make({ ...ONE, blockFor: [200_000, 900_000] });
    await limiter('a');
    for (let i = 0; i < 3; i++) {
      expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'count', timeLeft: 200_000 });
    }
    at(61 * SECOND);
    expect(await limiter('a')).toBe(0);
    expect(await limiter('a')).toBe(200_000);
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

  'sliding-window-log': {
    async 'a refund frees a place when what refusals displaced has left the window'({ make, at }) {
      const limiter = make({ maxInInterval: 4, countBlocked: true });
      const attempt = (seconds) => {
        at(seconds * SECOND);
        return limiter('a');
      };
      for (const seconds of [0, 1, 2]) await attempt(seconds);
      at(3 * SECOND);
      const decision = await limiter.attempt('a');
      expect(await attempt(4)).toBeGreaterThan(0);
      expect(await attempt(61.5)).toBe(0);
      expect(await limiter.refund(decision)).toBe(true);
      expect(await attempt(61.5)).toBe(0);
      expect(await attempt(61.5)).toBeGreaterThan(0);
    },
  },

  gcra: {
    async 'a refund takes nothing from later attempts, however much those cost'({ make, at }) {
      // Stores count costs in 18 to 53 bits, so that four bursts later a number may occur again.
      for (const max of [2 ** 16, 2 ** 24, 2 ** 30, 2 ** 40]) {
        const limiter = make({ interval: max / 1000, maxInInterval: max }); // one leaks in 1 us
        const decisions = [];
        for (let burst = 0; burst <= 4; burst++) {
          at(burst * max);
          decisions.push(await limiter.attempt('a', { cost: max }));
        }
        expect(decisions.every(({ allowed }) => allowed)).toBe(true);
        for (const earlier of [0, 1, 2, 3]) {
          expect(await limiter.refund(decisions[earlier])).toBe(false);
        }
        expect(await usedOf(limiter)).toBe(max);
      }
    },
  },
};
