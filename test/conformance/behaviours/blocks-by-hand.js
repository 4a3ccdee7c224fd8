// Behaviours: block(id, ms), with which an application refuses an id.
'use strict';

const SECOND = 1_000_000; // us

module.exports = {
  // Kills: a block that is recorded only for known ids; an end that is off by one.
  async 'an id is refused for that long, known or not, and no other'({ make, at }) {
    for (const isKnown of [false, true]) {
      const limiter = make();
      at(0);
      if (isKnown) await limiter.attempt('a');
      expect(await limiter.block('a', 90_000)).toBe(undefined);
      expect(await limiter.attempt('a')).toMatchObject({
        allowed: false,
        blockedBy: 'block',
        timeLeft: 90_000,
        resetIn: 90_000,
        actionsLeft: isKnown ? 1 : 2,
      });
      expect(await limiter.attempt('b')).toMatchObject({ allowed: true });
      expect(await limiter('a')).toBe(90_000);
      at(90 * SECOND - 1);
      expect(await limiter.limitWithInfo('a')).toMatchObject({
        blocked: true,
        blockedDueToCount: false,
        blockedDueToMinDifference: false,
        millisecondsUntilAllowed: 1,
      });
      at(90 * SECOND);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true, blockedBy: null });
    }
  },

  async 'a block takes fractions of a millisecond'({ make, at }) {
    const limiter = make();
    at(0);
    await limiter.block('a', 0.25);
    at(249);
    expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'block', timeLeft: 1 });
    at(250);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true });
  },

  async 'of two blocks the later end counts'({ make, at }) {
    const limiter = make();
    at(0);
    await limiter.block('a', 100_000);
    at(10 * SECOND);
    await limiter.block('a', 50_000);
    expect(await limiter('a')).toBe(90_000);
    await limiter.block('a', 200_000);
    expect(await limiter('a')).toBe(200_000);
  },

  async '0 ends a block, and what was counted stays'({ make, at }) {
    const limiter = make();
    at(0);
    await limiter.attempt('a');
    await limiter.block('a', 100_000);
    expect(await limiter.block('a', 0)).toBe(undefined);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count' });
    expect(await limiter.block('unknown', 0)).toBe(undefined);
    expect(await limiter.attempt('unknown')).toMatchObject({ allowed: true, actionsLeft: 1 });
  },

  async 'clear and clearAll end a block'({ make }) {
    const limiter = make();
    for (const clear of [() => limiter.clear('a'), () => limiter.clearAll()]) {
      await limiter.block('a', 100_000);
      expect(await limiter('a')).toBe(100_000);
      await clear();
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
      await clear();
    }
  },

  async 'usage and peeks show a block'({ make, at }) {
    const limiter = make();
    at(0);
    await limiter.attempt('a');
    await limiter.block('a', 300_000);
    expect(await limiter.usage('a')).toMatchObject({
      allowed: false,
      timeLeft: 300_000,
      used: 1,
      remaining: 1,
    });
    expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'block', timeLeft: 300_000 });
    expect(await limiter.wouldLimit('a')).toBe(true);
    const [many, other] = await limiter.attemptMany(['a', 'b']);
    expect(many).toMatchObject({ blockedBy: 'block', timeLeft: 300_000 });
    expect(other).toMatchObject({ allowed: true });
  },

  async 'the wait is the longer of block and window'(suite) {
    const { make, at, fullFor } = suite;
    const limiter = make({ maxInInterval: 1 });
    at(0);
    await limiter.attempt('a');
    await limiter.block('a', 1000);
    const timeLeft = Math.ceil(fullFor(1) / 1000);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false, timeLeft });
    at(SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count' });
  },

  async 'attempts during a block leave no trace'(suite) {
    const { make, at, stateOf } = suite;
    for (const countBlocked of suite.countBlocked ? [true, false] : [false]) {
      const limiter = make({ countBlocked, maxInInterval: 4 });
      at(0);
      await limiter.attempt('a');
      await limiter.block('a', 10_000);
      const state = await stateOf('a');
      for (let i = 0; i < 5; i++) {
        at((i + 1) * SECOND);
        await limiter.attempt('a', { cost: 2 });
      }
      expect(await stateOf('a')).toEqual(state);
      expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 5 });
      await limiter.block('a', 0);
      at(6 * SECOND);
      expect(await limiter.attempt('a', { cost: 3 })).toMatchObject({ allowed: true });
    }
  },

  async 'beside blockFor the later end counts'({ make, at }) {
    const limiter = make({ maxInInterval: 1, blockFor: 100_000 });
    at(0);
    await limiter.attempt('a');
    await limiter.attempt('a');
    await limiter.block('a', 50_000);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 100_000 });
    await limiter.block('a', 200_000);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 200_000 });
  },

  async '0 ends a block of blockFor as well, whose offences stay'({ make, at }) {
    const limiter = make({ maxInInterval: 1, blockFor: [70_000, 900_000] });
    at(0);
    await limiter.attempt('a');
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft: 70_000 });
    at(SECOND);
    await limiter.block('a', 0);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft: 900_000 });
  },

  async 'a block is no offence, and refusals in it are none'({ make, at }) {
    const limiter = make({ maxInInterval: 1, blockFor: [70_000, 900_000] });
    at(0);
    await limiter.block('a', 1000);
    await limiter.attempt('a');
    at(SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft: 70_000 });
  },

  // Kills: one end for both kinds of blocks; in shared memory, a peek by a block that has ended.
  async 'a block keeps no offences alive, and ends none'({ make, at }) {
    const blockFor = [70_000, 900_000];
    // An offence until 70 s, in a window of 60 s, is forgotten at 130 s.
    for (const [from, length, next, timeLeft] of [
      [100, 100_000, 200, 70_000],
      [75, 10_000, 131, 70_000],
      [75, 10_000, 128, 900_000],
      [60, 69_000, 129, 900_000],
    ]) {
      const limiter = make({ maxInInterval: 1, blockFor });
      at(0);
      await limiter.attempt('a');
      await limiter.attempt('a');
      at(from * SECOND);
      await limiter.block('a', length);
      await limiter.block('another id', 900_000);
      expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: length });
      at(next * SECOND);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
      expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'count', timeLeft });
      expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft });
    }
  },

  async 'a block that was ended stays ended for a clock that steps back'({ make, at }) {
    for (const blockFor of [undefined, 70_000]) {
      const limiter = make({ blockFor });
      at(0);
      await limiter.block('a', 100_000);
      at(50 * SECOND);
      await limiter.block('a', 0);
      at(40 * SECOND);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
    }
  },

  // Kills: an end from the clock's time, at which the id's own time already is.
  async 'a clock behind the newest attempt does not shorten a block'({ make, at, rule }) {
    if (!rule.clampsTime) return;
    const limiter = make({ maxInInterval: 9 });
    at(90 * SECOND);
    await limiter.attempt('a');
    at(60 * SECOND);
    await limiter.block('a', 10_000);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 40_000 });
    at(100 * SECOND - 1);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block' });
    at(100 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
  },

  async 'a refund leaves a block as it is'({ make, at }) {
    const limiter = make();
    at(0);
    const decision = await limiter.attempt('a');
    await limiter.block('a', 90_000);
    expect(await limiter.refund(decision)).toBe(true);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', actionsLeft: 2 });
    at(90 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
  },

  async 'a block refuses attempts at costs by name'({ make, at }) {
    at(0);
    const limits = [
      { name: 'requests', interval: 60_000, maxInInterval: 3 },
      { name: 'tokens', interval: 60_000, maxInInterval: 100 },
    ];
    const limiter = make({ limits });
    await limiter.attempt('a', { cost: { tokens: 40 } });
    await limiter.block('a', 30_000);
    expect(await limiter.attempt('a', { cost: { requests: 0, tokens: 1 } })).toMatchObject({
      blockedBy: 'block',
      timeLeft: 30_000,
      limits: [{ used: 1 }, { used: 40 }],
    });
  },

  async 'a block outlives the window'({ make, at }) {
    const limiter = make();
    at(0);
    await limiter.attempt('a');
    await limiter.block('a', 500_000);
    at(400 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'block',
      timeLeft: 100_000,
      actionsLeft: 2,
    });
  },

  async 'a waiting call waits for the end of a block, and goes on when it is ended'({ make }) {
    const limiter = make();
    await limiter.block('a', 3_600_000);
    const waiting = limiter.wait('a');
    await limiter.peek('another id');
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0 });
    await limiter.block('a', 0);
    expect(await waiting).toMatchObject({ allowed: true });
  },

  async 'ids are those of all calls'({ make }) {
    const limiter = make();
    await limiter.block(1, 90_000);
    await limiter.block(null, 90_000);
    expect(await limiter('1')).toBe(90_000);
    expect(await limiter()).toBe(90_000);
    expect(await limiter('2')).toBe(0);
  },

  async 'a wrong call is an error, and blocks nobody'({ make, failureOf }) {
    const limiter = make();
    for (const ms of [undefined, null, '5', 5n, {}, -1, Number.NaN, Infinity]) {
      const error = await failureOf(() => limiter.block('a', ms));
      expect(error).toBeInstanceOf(typeof ms === 'number' ? RangeError : TypeError);
      expect(error.code).toBe('ERR_ROLLGATE_OPTION');
      expect(error.message).toMatch(/^option 'block': expected a finite number of ms >= 0, got /);
    }
    for (const id of [true, {}, Number.NaN]) {
      expect(await failureOf(() => limiter.block(id, 5))).toMatchObject({
        code: 'ERR_ROLLGATE_ID',
      });
    }
    expect(await limiter('a')).toBe(0);
    await limiter.close();
    expect(await failureOf(() => limiter.block('a', 5))).toMatchObject({
      code: 'ERR_ROLLGATE_CLOSED',
    });
  },
};
