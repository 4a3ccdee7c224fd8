// Behaviours: options that every store reads alike.
'use strict';

const { MINUTE, START_MS, canCountBlocked, failureOf } = require('./support');

module.exports = {
  async 'countBlocked: true is refused where a refusal cannot count'({ make, algorithm }) {
    if (canCountBlocked(algorithm)) {
      make({ countBlocked: true });
      return;
    }
    const error = await failureOf(() => make({ countBlocked: true }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
    expect(error.message).toMatch(/countBlocked/);
  },

  async 'a wrong blockFor is refused at construction'({ make }) {
    for (const blockFor of ['5', null, true, {}, [], ['5'], [1, null]]) {
      expect(await failureOf(() => make({ blockFor }))).toBeInstanceOf(TypeError);
    }
    for (const blockFor of [0, -1, Number.NaN, Infinity, [0], [1, -1]]) {
      expect(await failureOf(() => make({ blockFor }))).toBeInstanceOf(RangeError);
    }
  },

  async 'aligned windows begin with the epoch, not with the first action'({ make, at, algorithm }) {
    if (algorithm !== 'fixed-window') return;
    const limiter = make();
    at(MINUTE - 1);
    await limiter.attempt('a', { cost: 2 });
    expect(await limiter('a')).toBe(1);
    at(MINUTE);
    expect(await limiter.attempt('a', { cost: 2 })).toMatchObject({ allowed: true });
    expect(START_MS % 600_000).toBe(0);
  },

  async 'the previous window fades as it leaves'({ make, at, algorithm }) {
    if (algorithm !== 'sliding-window-counter') return;
    const limiter = make({ maxInInterval: 10, countBlocked: false });
    await limiter.attempt('a', { cost: 10 });
    const used = [];
    for (const share of [0, 0.1, 0.25, 0.5, 0.9, 0.95, 1]) {
      at(MINUTE + share * MINUTE);
      used.push((await limiter.peek('a')).limits[0].used - 1);
    }
    // floor of what is left of ten; the peek itself is one of them, as far as it passes.
    expect(used).toEqual([9, 9, 7, 5, 1, 0, 0]);
  },

  async 'tokens come back one by one'({ make, at, algorithm }) {
    if (algorithm !== 'gcra') return;
    const limiter = make({ maxInInterval: 6 });
    await limiter.attempt('a', { cost: 6 });
    for (let i = 1; i <= 6; i++) {
      at((i * MINUTE) / 6 - 1);
      expect((await limiter.peek('a', { cost: i })).allowed).toBe(false);
      at((i * MINUTE) / 6);
      expect((await limiter.peek('a', { cost: i })).allowed).toBe(true);
    }
  },
};
