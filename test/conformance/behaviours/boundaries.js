// Behaviours: where a window ends, to the microsecond, and what timeLeft promises.
'use strict';

const { RULES } = require('../oracle');
const { MINUTE, SECOND, canCountBlocked, fullFor } = require('./support');

module.exports = {
  async 'lets maxInInterval actions pass and refuses the next'({ make, algorithm }) {
    const limiter = make({ maxInInterval: 3 });
    const seen = [];
    for (let i = 0; i < 4; i++) seen.push(await limiter.attempt('a'));
    expect(seen.map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
    expect(seen.map(({ actionsLeft }) => actionsLeft)).toEqual([2, 1, 0, 0]);
    expect(seen.map(({ blockedBy }) => blockedBy)).toEqual([null, null, null, 'count']);
    const timeLeft = Math.ceil(fullFor(algorithm, 3) / 1000);
    expect(seen.map((decision) => decision.timeLeft)).toEqual([0, 0, 0, timeLeft]);
    expect(seen[3].resetIn).toBe(timeLeft);
  },

  async 'refuses up to the last microsecond and lets pass exactly after it'({
    make,
    at,
    algorithm,
  }) {
    const limiter = make();
    await limiter.attempt('a', { cost: 2 });
    const end = fullFor(algorithm, 2);
    for (const micros of [0, 1, end - 1000, end - 2, end - 1]) {
      at(micros);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: false, blockedBy: 'count' });
    }
    at(end);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, timeLeft: 0 });
  },

  async 'timeLeft is in whole ms, rounded up, at least 1'({ make, at, algorithm }) {
    const limiter = make();
    await limiter.attempt('a', { cost: 2 });
    const end = fullFor(algorithm, 2);
    const waits = [];
    for (const left of [2001, 2000, 1001, 1000, 999, 1]) {
      at(end - left);
      waits.push(await limiter('a'));
    }
    expect(waits).toEqual([3, 2, 2, 1, 1, 1]);
    at(end);
    expect(await limiter('a')).toBe(0);
  },

  async 'an attempt is refused before timeLeft and allowed at it, whatever it costs'({ make, at }) {
    for (const cost of [1, 2, 3, 4, 5]) {
      const limiter = make({ maxInInterval: 5 });
      for (const micros of [0, 7 * SECOND, 11 * SECOND + 1, 30 * SECOND, 41 * SECOND]) {
        at(micros);
        await limiter.attempt('a');
      }
      const { allowed, timeLeft } = await limiter.attempt('a', { cost });
      if (allowed) continue; // gcra and its like have regained some
      at(41 * SECOND + (timeLeft - 1) * 1000);
      expect(await limiter.peek('a', { cost })).toMatchObject({ allowed: false, timeLeft: 1 });
      at(41 * SECOND + timeLeft * 1000);
      expect(await limiter.attempt('a', { cost })).toMatchObject({ allowed: true });
    }
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

  async 'the count is named where count and minDifference both refuse'({ make }) {
    const limiter = make({ maxInInterval: 1, minDifference: 1000 });
    await limiter('a');
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count' });
    expect(await limiter.wouldLimitWithInfo('a')).toMatchObject({
      blockedDueToCount: true,
      blockedDueToMinDifference: true,
    });
  },

  async 'the wait of a refusal is the longer of count and minDifference'({ make, algorithm }) {
    const limiter = make({ maxInInterval: 1, minDifference: 90_000 });
    await limiter('a');
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft: 90_000 });
    const short = make({ maxInInterval: 1, minDifference: 10 });
    await short('a');
    expect(await short('a')).toBe(Math.ceil(fullFor(algorithm, 1) / 1000));
  },

  async 'durations are taken to the microsecond'({ make, at, algorithm }) {
    const limiter = make({ interval: 0.25, maxInInterval: 1 });
    expect(await limiter('a')).toBe(0);
    const end = RULES[algorithm].fullFor(250, 1);
    at(end - 1);
    expect(await limiter('a')).toBe(1);
    at(end);
    expect(await limiter('a')).toBe(0);
  },

  async 'a window has its whole quota again after it was left alone'({ make, at }) {
    const limiter = make();
    await limiter.attempt('a', { cost: 2 });
    at(3 * MINUTE);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
    at(1000 * MINUTE);
    expect(await limiter.attempt('a', { cost: 2 })).toMatchObject({ allowed: true });
  },

  async 'the time may be before the epoch'({ make, time, algorithm }) {
    const limiter = make({ maxInInterval: 1 });
    time.set(-60_000);
    expect(await limiter('a')).toBe(0);
    time.set(-1);
    expect(await limiter('a')).toBe(fullFor(algorithm, 1) > MINUTE ? 2 : 1);
    time.set(0.001);
    expect(await limiter('a')).toBe(0);
  },

  async 'a refusal that counts lengthens the wait, its own included'({ make, at, algorithm }) {
    if (!canCountBlocked(algorithm)) return;
    const limiter = make({ maxInInterval: 1, countBlocked: true });
    await limiter('a');
    at(30 * SECOND);
    const { timeLeft } = await limiter.attempt('a');
    expect(timeLeft).toBe(Math.ceil(RULES[algorithm].fullForAfterRefusal(MINUTE) / 1000));
    at(30 * SECOND + timeLeft * 1000);
    expect(await limiter('a')).toBe(0);
  },

  async 'refusals count unless told otherwise, except in gcra'({ make, at, algorithm }) {
    const byDefault = make({ maxInInterval: 1, countBlocked: undefined });
    const told = make({ maxInInterval: 1, countBlocked: canCountBlocked(algorithm) });
    for (const seconds of [0, 20, 40, 61, 80, 130]) {
      at(seconds * SECOND);
      expect({ ...(await byDefault.attempt('a')) }).toEqual({ ...(await told.attempt('a')) });
    }
  },

  async 'a refusal that does not count changes no later answer'({ make, at }) {
    const alone = make({ countBlocked: false, maxInInterval: 3 });
    const hammered = make({ countBlocked: false, maxInInterval: 3 });
    for (const limiter of [alone, hammered]) await limiter.attempt('a', { cost: 3 });
    for (const seconds of [1, 5, 9, 13, 17, 19]) {
      at(seconds * SECOND);
      await hammered('a');
      await hammered.attempt('a', { cost: 3 });
    }
    for (const seconds of [19, 20, 40, 59, 60, 61, 100]) {
      at(seconds * SECOND);
      expect({ ...(await hammered.peek('a')) }).toEqual({ ...(await alone.peek('a')) });
    }
  },
};
