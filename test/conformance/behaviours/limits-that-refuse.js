// Behaviours: limits for one call that refuse whatever is used: of 0, below the cost, or none at all.
'use strict';

const RateLimiter = require('../../..');

const SECOND = 1_000_000; // us
const MINUTE_MS = 60_000;

const NAMED = {
  limits: [
    { name: 'requests', interval: MINUTE_MS, maxInInterval: 3 },
    { name: 'tokens', interval: 600_000, maxInInterval: 100 },
  ],
};

const usedOf = async (limiter, id = 'a') => {
  const { limits } = await limiter.usage(id);
  return limits.map(({ used }) => used);
};

const NO_LIMITS = [
  ...[-1, 1.5, Number.NaN, Infinity, -Infinity].map((limit) => [limit, RangeError]),
  ...['5', 5n, null, true, [5], {}, { max: 5 }].map((limit) => [limit, TypeError]),
];

const NO_NAMED_LIMITS = [
  ...[-1, 1.5, Number.NaN, Infinity].map((limit) => [{ requests: limit }, RangeError]),
  ...['5', null, undefined, 5n].map((limit) => [{ requests: limit }, TypeError]),
  [{ request: 5 }, TypeError],
  [{ requests: 5, other: 5 }, TypeError],
  [{}, TypeError],
];

module.exports = {
  // Kills: a wait of 0 or for ever; a trace; a block; an error.
  async 'a limit of 0 refuses with the longest window, and leaves no trace'(suite) {
    const { make, at, stateOf } = suite;
    at(0);
    const limiter = make({ maxInInterval: 4 });
    const closed = { allowed: false, blockedBy: 'count', timeLeft: MINUTE_MS, resetIn: MINUTE_MS };
    expect(await limiter.attempt('a', { limits: 0 })).toMatchObject({
      ...{ ...closed, actionsLeft: 0 },
      limits: [{ maxInInterval: 0, used: 0, remaining: 0 }],
    });
    expect(await stateOf('a')).toBe(undefined);
    await limiter.attempt('a', { cost: 2 });
    const state = await stateOf('a');
    at(SECOND);
    for (const call of ['attempt', 'peek']) {
      expect(await limiter[call]('a', { limits: 0, cost: 3 })).toMatchObject({
        ...closed,
        limits: [{ maxInInterval: 0, remaining: 0 }],
      });
    }
    expect(await limiter.usage('a', { limits: 0 })).toMatchObject({
      ...{ allowed: false, remaining: 0, timeLeft: MINUTE_MS },
      limits: [{ maxInInterval: 0, remaining: 0 }],
    });
    expect(await stateOf('a')).toEqual(state);
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 2 });
  },

  async 'a limit of 0 in one of several windows'({ make, at }) {
    at(0);
    const limiter = make(NAMED);
    const attempt = (limits, cost) => limiter.attempt('a', { limits, cost });
    expect(await attempt({ requests: 0 })).toMatchObject({ allowed: false, timeLeft: 600_000 });
    expect(await attempt({ tokens: 0 })).toMatchObject({ allowed: false, timeLeft: 600_000 });
    expect(await usedOf(limiter)).toEqual([0, 0]);
    // Nothing is asked of it.
    expect(await attempt({ tokens: 0 }, { tokens: 0 })).toMatchObject({ allowed: true });
    expect(await usedOf(limiter)).toEqual([1, 0]);
    expect(await attempt({ tokens: -0 }, { tokens: 1 })).toMatchObject({ allowed: false });
  },

  async 'neither a limit of 0 nor one below the cost starts a block'({ make, at }) {
    at(0);
    for (const [blockFor, timeLeft] of [
      [[100_000, 7], 100_000],
      [50, MINUTE_MS],
    ]) {
      const limiter = make({ maxInInterval: 4, blockFor });
      expect(await limiter.attempt('a', { limits: 0 })).toMatchObject({
        blockedBy: 'count',
        timeLeft,
      });
      expect(await limiter.attempt('a', { limits: 2, cost: 3 })).toMatchObject({ allowed: false });
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
      await limiter.block('a', 1000);
      expect(await limiter.attempt('a', { limits: 9 })).toMatchObject({ blockedBy: 'block' });
    }
  },

  async 'a cost above a limit of the call is refused for ever, and is no error'({ make }) {
    const limiter = make({ maxInInterval: 4 });
    const never = { allowed: false, blockedBy: 'count', timeLeft: Infinity };
    for (const call of ['attempt', 'peek']) {
      expect(await limiter[call]('a', { limits: 2, cost: 3 })).toMatchObject(never);
      expect(await limiter[call]('a', { limits: 2, cost: 2 ** 40 })).toMatchObject(never);
    }
    expect(await usedOf(limiter)).toEqual([0]);
    expect(await limiter.attempt('a', { limits: 6, cost: 6 })).toMatchObject({ allowed: true });
    const named = make(NAMED);
    const cost = { tokens: 101 };
    expect(await named.attempt('a', { limits: { tokens: 100 }, cost })).toMatchObject(never);
    expect(await named.attempt('a', { limits: { tokens: 101 }, cost })).toMatchObject({
      allowed: true,
    });
    expect(await named.attempt('b', { limits: { tokens: 7, requests: 0 }, cost })).toMatchObject(
      never,
    );
  },

  async 'a cost above a limit of the limiter is an error where the call brings none'(suite) {
    const { make, codeOf } = suite;
    const limiter = make(NAMED);
    const tooMuch = { limits: { requests: 9 }, cost: { tokens: 101 } };
    expect(await codeOf(() => limiter.attempt('a', tooMuch))).toBe('ERR_ROLLGATE_COST');
    expect(await usedOf(limiter)).toEqual([0, 0]);
  },

  async 'what is no limit is an error, and nothing changes'({ make, failureOf }) {
    const limiter = make({ maxInInterval: 2 });
    const named = make(NAMED);
    for (const [one, wrong] of [
      [limiter, NO_LIMITS],
      [named, [...NO_NAMED_LIMITS, [5, RangeError], ['5', TypeError]]],
    ]) {
      for (const [limits, type] of wrong) {
        for (const call of ['attempt', 'peek', 'usage', 'wait']) {
          const error = await failureOf(() => one[call]('a', { limits }));
          expect([limits, error.code]).toEqual([limits, 'ERR_ROLLGATE_LIMIT']);
          expect(error).toBeInstanceOf(type);
          expect(error.message).toContain('limits');
        }
        const entries = [{ limiter: one, id: 'a', limits }];
        expect(await failureOf(() => RateLimiter.attemptAll(entries))).toMatchObject({
          code: 'ERR_ROLLGATE_LIMIT',
        });
      }
    }
    expect([await usedOf(limiter), await usedOf(named)]).toEqual([[0], [0, 0]]);
    expect(await failureOf(() => limiter.attemptMany(['a'], { limits: 5 }))).toMatchObject({
      code: 'ERR_ROLLGATE_OPTION',
    });
    expect(await limiter.attempt('a', { limits: undefined })).toMatchObject({ actionsLeft: 1 });
  },
};
