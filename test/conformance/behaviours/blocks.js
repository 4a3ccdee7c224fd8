// Behaviours: blockFor, with one length and with a list.
'use strict';

const { SECOND, canCountBlocked, fullFor } = require('./support');

const ONE = { maxInInterval: 1, countBlocked: false };

/** Moves to a second and attempts. */
const attemptAt = ({ at }, limiter, seconds) => {
  at(seconds * SECOND);
  return limiter.attempt('a');
};

module.exports = {
  async 'a refusal refuses the id for that long'(suite) {
    const { make, at } = suite;
    const limiter = make({ ...ONE, blockFor: 100_000 });
    expect(await limiter('a')).toBe(0);
    expect(await attemptAt(suite, limiter, 1)).toMatchObject({
      allowed: false,
      blockedBy: 'count',
      timeLeft: 100_000,
      resetIn: 100_000,
    });
    expect(await attemptAt(suite, limiter, 51)).toMatchObject({
      allowed: false,
      blockedBy: 'block',
      timeLeft: 50_000,
    });
    at(101 * SECOND - 1);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 1 });
    at(101 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, blockedBy: null });
  },

  async 'a list of one length is that length'(suite) {
    const limiters = [{ blockFor: 100_000 }, { blockFor: [100_000] }].map((options) =>
      suite.make({ ...ONE, ...options }),
    );
    for (const seconds of [0, 1, 51, 101, 102, 150, 202, 203, 1000]) {
      const [a, b] = await Promise.all(limiters.map((one) => attemptAt(suite, one, seconds)));
      expect({ ...a }).toEqual({ ...b });
    }
  },

  async 'the wait is the longer of block and window'(suite) {
    const { make, algorithm } = suite;
    const limiter = make({ ...ONE, blockFor: 10_000 });
    await limiter('a');
    const timeLeft = Math.ceil(fullFor(algorithm, 1) / 1000) - 1000;
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
    // [second, allowed, what the block comes to], in a window of 60 s
    const story = [
      [0, true],
      [1, false, 10],
      [12, false, 100],
      [112, true],
      [113, false, 1000],
      [1113, true],
      [1114, false, 1000],
      [2114, true],
      [2115, false, 1000],
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
    for (const [moment, length] of [
      [71 * SECOND - 1, 1000],
      [71 * SECOND, 10],
    ]) {
      const limiter = make({ ...ONE, blockFor: [10_000, 1_000_000] });
      at(0);
      await limiter('a');
      at(SECOND);
      await limiter('a'); // blocked until second 11
      at(moment);
      expect(await limiter('a')).toBe(0);
      expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count' });
      at(moment + length * SECOND - 1);
      expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'block' });
      at(moment + length * SECOND);
      expect((await limiter.peek('a')).blockedBy).not.toBe('block');
    }
  },

  async 'the longest of several windows tells how long offences are remembered'({ make, at }) {
    const limits = [
      { interval: 1000, maxInInterval: 1 },
      { interval: 600_000, maxInInterval: 1000 },
    ];
    const limiter = make({ limits, countBlocked: false, blockFor: [10_000, 1_000_000] });
    await limiter('a');
    expect(await limiter('a')).toBe(10_000);
    at(609 * SECOND);
    await limiter('a');
    expect(await limiter('a')).toBe(1_000_000);
    at(609 * SECOND + 1000 * SECOND + 600 * SECOND);
    await limiter('a');
    expect(await limiter('a')).toBe(10_000);
  },

  async 'attempts during a block leave no trace and do not lengthen it'(suite) {
    const { make, algorithm, at } = suite;
    for (const countBlocked of canCountBlocked(algorithm) ? [true, false] : [false]) {
      const options = { maxInInterval: 2, countBlocked, blockFor: [100_000, 300_000] };
      const [hammered, alone] = [make(options), make(options)];
      at(0);
      for (const limiter of [hammered, alone]) {
        for (let i = 0; i < 3; i++) await limiter('a');
      }
      for (let seconds = 1; seconds < 100; seconds += 7) {
        at(seconds * SECOND);
        expect(await hammered.attempt('a')).toMatchObject({ blockedBy: 'block' });
        await hammered.attempt('a', { cost: 2 });
      }
      for (const seconds of [100, 100, 101, 102, 103, 400, 402, 403, 5000]) {
        const [a, b] = [
          await attemptAt(suite, hammered, seconds),
          await attemptAt(suite, alone, seconds),
        ];
        expect({ countBlocked, seconds, ...a }).toEqual({ countBlocked, seconds, ...b });
      }
    }
  },

  async 'the refusal that starts a block is counted as countBlocked says'({ make, algorithm }) {
    if (!canCountBlocked(algorithm)) return;
    for (const countBlocked of [true, false]) {
      const limiter = make({ maxInInterval: 5, countBlocked, blockFor: 1000 });
      await limiter.attempt('a', { cost: 3 });
      const { limits } = await limiter.attempt('a', { cost: 3 });
      expect(limits[0].used).toBe(countBlocked ? 5 : 3);
    }
  },

  async 'a block tells of the windows as they are'({ make, at, algorithm }) {
    const limiter = make({ maxInInterval: 4, countBlocked: false, blockFor: 500_000 });
    await limiter.attempt('a', { cost: 3 });
    await limiter.attempt('a', { cost: 2 });
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'block',
      actionsLeft: 1,
      limits: [{ used: 3, remaining: 1 }],
    });
    at(300 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'block',
      timeLeft: 200_000,
      actionsLeft: 4,
      limits: [{ used: 0, remaining: 4, resetIn: 0 }],
    });
    expect(algorithm).toBeDefined();
  },

  async 'a block is that of one id'({ make }) {
    const limiter = make({ ...ONE, blockFor: 100_000 });
    for (const id of ['a', 'a']) await limiter(id);
    expect(await limiter('b')).toBe(0);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block' });
  },

  async 'a peek tells of the block that an attempt would start, and starts none'({ make, at }) {
    const limiter = make({ ...ONE, blockFor: [200_000, 900_000] });
    await limiter('a');
    for (let i = 0; i < 3; i++) {
      expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'count', timeLeft: 200_000 });
    }
    at(61 * SECOND);
    expect(await limiter('a')).toBe(0);
    expect(await limiter('a')).toBe(200_000);
  },

  async 'clear lifts a block and forgets its offences'({ make }) {
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

  async 'in a block limitWithInfo names neither count nor minDifference'({ make }) {
    const limiter = make({ ...ONE, blockFor: 100_000 });
    await limiter('a');
    await limiter('a');
    expect(await limiter.limitWithInfo('a')).toEqual({
      blocked: true,
      blockedDueToCount: false,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 100_000,
      actionsRemaining: 0,
    });
  },

  async 'a block outlives a clock that steps back'({ make, at }) {
    const limiter = make({ ...ONE, blockFor: 100_000 });
    await limiter('a');
    at(SECOND);
    await limiter('a');
    at(-1000 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 1_101_000 });
    at(101 * SECOND);
    expect(await limiter('a')).toBe(0);
  },
};
