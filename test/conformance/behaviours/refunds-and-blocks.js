// Behaviours: what takes effect later: blockFor, refund, clear and clearAll.
'use strict';

const SECOND = 1_000_000; // us
const MINUTE = 60 * SECOND;

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

  async 'each further offence takes the next length, and the last one stays'(suite) {
    const limiter = suite.make({ ...ONE, blockFor: [10_000, 100_000, 1_000_000] });
    // [second, allowed, length of the block], in a window of 60 s
    const story = [
      [0, true],
      [1, false, 10],
      [12, false, 100],
      [112, true],
      [113, false, 1000],
      [1113, true],
      [1114, false, 1000],
    ];
    for (const [seconds, allowed, length] of story) {
      const decision = await attemptAt(suite, limiter, seconds);
      expect({ seconds, allowed: decision.allowed }).toEqual({ seconds, allowed });
      if (allowed) continue;
      suite.at((seconds + length) * SECOND - 1);
      expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'block' });
      suite.at((seconds + length) * SECOND);
      expect((await limiter.peek('a')).blockedBy).not.toBe('block');
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

  async 'clear and clearAll lift a block and forget its offences'({ make }) {
    const limiter = make({ ...ONE, blockFor: [100_000, 900_000] });
    for (const clear of [() => limiter.clear('a'), () => limiter.clearAll()]) {
      await limiter('a');
      expect(await limiter('a')).toBe(100_000);
      await clear();
      expect(await limiter('a')).toBe(0);
      expect(await limiter('a')).toBe(100_000);
      await clear();
    }
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

  'fixed-window': {
    async 'a refund goes to the window of its attempt'({ make, at }) {
      const limiter = make({ maxInInterval: 9 });
      const first = await limiter.attempt('a', { cost: 5 });
      at(MINUTE);
      const second = await limiter.attempt('a', { cost: 3 });
      expect(await limiter.refund(first)).toBe(false);
      expect(await usedOf(limiter)).toBe(3);
      expect(await limiter.refund(second)).toBe(true);
      expect(await usedOf(limiter)).toBe(0);
    },
  },

  'sliding-window-counter': {
    async 'a refund goes to the window of its attempt'({ make, at }) {
      for (const [refunded, left] of [
        [0, 3], // what is left is the second attempt
        [1, 2], // half of the first one, rounded down
      ]) {
        const limiter = make({ maxInInterval: 9 });
        at(0);
        const decisions = [await limiter.attempt('a', { cost: 5 })];
        at(1.5 * MINUTE);
        decisions.push(await limiter.attempt('a', { cost: 3 }));
        expect(await usedOf(limiter)).toBe(5);
        expect(await limiter.refund(decisions[refunded])).toBe(true);
        expect(await usedOf(limiter)).toBe(left);
      }
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
