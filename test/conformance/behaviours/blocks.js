// Behaviours: blockFor, with one length and with several.
'use strict';

const SECOND = 1_000_000; // us
const ONE = { maxInInterval: 1 };

/** Moves to a second and attempts. */
const attemptAt = ({ at }, limiter, seconds) => {
  at(seconds * SECOND);
  return limiter.attempt('a');
};

module.exports = {
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

  async 'the wait is the longer of block and window'(suite) {
    const limiter = suite.make({ ...ONE, blockFor: 10_000 });
    await limiter('a');
    const timeLeft = Math.ceil(suite.fullFor(1) / 1000) - 1000;
    expect(await attemptAt(suite, limiter, 1)).toMatchObject({ blockedBy: 'count', timeLeft });
    expect(await attemptAt(suite, limiter, 6)).toMatchObject({
      blockedBy: 'block',
      timeLeft: timeLeft - 5000,
    });
  },

  async 'minDifference starts a block too'(suite) {
    const limiter = suite.make({ maxInInterval: 9, minDifference: 5, blockFor: 70_000 });
    await limiter('a');
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'minDifference',
      timeLeft: 70_000,
    });
    expect(await attemptAt(suite, limiter, 69)).toMatchObject({ blockedBy: 'block' });
    expect(await attemptAt(suite, limiter, 70)).toMatchObject({ allowed: true });
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

  async 'offences are forgotten after the last block and the longest window'({ make, at }) {
    const limits = [
      { interval: 1000, maxInInterval: 1 },
      { interval: 60_000, maxInInterval: 1000 },
    ];
    for (const [moment, length] of [
      [70_500_000 - 1, 1000],
      [70_500_000, 10],
    ]) {
      const limiter = make({ limits, blockFor: [10_000, 1_000_000] });
      at(0);
      await limiter('a');
      at(SECOND / 2);
      await limiter('a'); // blocked until 10.5 s
      at(moment);
      expect(await limiter('a')).toBe(0);
      expect(await limiter.attempt('a')).toMatchObject({
        blockedBy: 'count',
        timeLeft: length * 1000,
      });
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

  async 'a block answers with the windows as they are'({ make, at }) {
    const limiter = make({ maxInInterval: 4, blockFor: 500_000 });
    await limiter.attempt('a', { cost: 3 });
    await limiter.attempt('a', { cost: 2 });
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'block',
      actionsLeft: 1,
      limits: [{ used: 3, remaining: 1 }],
    });
    expect(await limiter.limitWithInfo('a')).toEqual({
      blocked: true,
      blockedDueToCount: false,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 500_000,
      actionsRemaining: 1,
    });
    at(300 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'block',
      timeLeft: 200_000,
      actionsLeft: 4,
      limits: [{ used: 0, remaining: 4, resetIn: 0 }],
    });
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

  async 'a refund leaves a block as it is'({ make, at }) {
    const limiter = make({ ...ONE, blockFor: 90_000 });
    const decision = await limiter.attempt('a');
    await limiter('a');
    at(SECOND);
    expect(await limiter.refund(decision)).toBe(true);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 89_000 });
    at(90 * SECOND);
    expect(await limiter('a')).toBe(0);
  },

  async 'a block outlives a clock that steps back'(suite) {
    const limiter = suite.make({ ...ONE, blockFor: 100_000 });
    await limiter('a');
    await attemptAt(suite, limiter, 1);
    expect(await attemptAt(suite, limiter, -1000)).toMatchObject({
      blockedBy: 'block',
      timeLeft: 1_101_000,
    });
    expect(await attemptAt(suite, limiter, 101)).toMatchObject({ allowed: true });
  },

  'where refusals can count': {
    async 'the refusal that starts a block counts if countBlocked is true'({ make, rule }) {
      for (const countBlocked of [true, false]) {
        const limiter = make({ maxInInterval: 5, countBlocked, blockFor: 1000 });
        await limiter.attempt('a', { cost: 3 });
        const { limits } = await limiter.attempt('a', { cost: 3 });
        expect(limits[0].used).toBe(countBlocked ? (rule.keepsMax ? 5 : 6) : 3);
      }
    },
  },
};
