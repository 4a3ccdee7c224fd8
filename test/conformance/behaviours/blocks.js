// Behaviours: blocks, by the option blockFor and by block(id, ms).
'use strict';

const SECOND = 1_000_000; // us

module.exports = {
  async 'each further offence takes the next length, and the last one stays'({ make, at }) {
    const limiter = make({ maxInInterval: 1, blockFor: [10_000, 100_000, 1_000_000] });
    // [second, allowed, length of the block], in a window of 60 s
    for (const [seconds, allowed, length] of [
      [0, true],
      [1, false, 10],
      [12, false, 100],
      [112, true],
      [113, false, 1000],
      [1113, true],
      [1114, false, 1000],
    ]) {
      at(seconds * SECOND);
      expect([seconds, (await limiter.attempt('a')).allowed]).toEqual([seconds, allowed]);
      if (allowed) continue;
      at((seconds + length) * SECOND - 1);
      expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'block' });
      at((seconds + length) * SECOND);
      expect((await limiter.peek('a')).blockedBy).not.toBe('block');
    }
  },

  async 'a number as blockFor is the length of every block'({ make, at }) {
    const limiter = make({ maxInInterval: 1, blockFor: 100_000 });
    for (const seconds of [0, 100]) {
      at(seconds * SECOND);
      expect(await limiter('a')).toBe(0);
      expect(await limiter('a')).toBe(100_000);
    }
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block' });
    expect(await limiter('b')).toBe(0);
  },

  // Kills: a block that is recorded only for known ids; an end that is off by one.
  async 'block() refuses an id for that long, known or not, and no other'({ make, at }) {
    for (const used of [0, 1]) {
      const limiter = make();
      at(0);
      for (let i = 0; i < used; i++) await limiter('a');
      expect(await limiter.block('a', 90_000)).toBe(undefined);
      expect(await limiter.attempt('a')).toMatchObject({
        ...{ allowed: false, blockedBy: 'block', timeLeft: 90_000, resetIn: 90_000 },
        actionsLeft: 2 - used,
      });
      expect(await limiter.attempt('b')).toMatchObject({ allowed: true });
      at(90 * SECOND - 1);
      expect(await limiter('a')).toBe(1);
      at(90 * SECOND);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true, blockedBy: null });
    }
  },

  async 'a block that was ended stays ended for a clock that steps back'({ make, at }) {
    // [its length in ms, the second in which it is ended, and that of the attempt]
    for (const [length, end, seconds] of [
      [100_000, 50, 40],
      [10_000, 20, 5],
    ]) {
      for (const blockFor of [undefined, 70_000]) {
        const limiter = make({ blockFor });
        at(0);
        await limiter.block('a', length);
        at(end * SECOND);
        await limiter.block('a', 0);
        at(seconds * SECOND);
        expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
      }
    }
  },

  // Kills: one end for both kinds of blocks; in shared memory, a peek by a block that has ended.
  async 'a block by hand keeps no offences alive, and ends none'({ make, at }) {
    // An offence until 70 s, in a window of 60 s, is forgotten at 130 s.
    for (const [from, length, next, timeLeft] of [
      [100, 100_000, 200, 70_000],
      [75, 10_000, 131, 70_000],
      [75, 10_000, 128, 900_000],
      [60, 69_000, 129, 900_000],
    ]) {
      const limiter = make({ maxInInterval: 1, blockFor: [70_000, 900_000] });
      at(0);
      for (let i = 0; i < 2; i++) await limiter('a');
      at(from * SECOND);
      await limiter.block('a', length);
      await limiter.block('another id', 900_000);
      expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: length });
      at(next * SECOND);
      expect(await limiter('a')).toBe(0);
      expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'count', timeLeft });
      expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft });
    }
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
};
