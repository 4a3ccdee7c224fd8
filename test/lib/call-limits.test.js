// Limits that come with a call: what is no limit, costs above one, a limit of 0, attemptAll, wait.
'use strict';

const RateLimiter = require('../..');
const { errorOf, expectEqual } = require('../support/outcome');
const { catchError, setUp } = require('../support/set-up');

const NAMED = [
  { name: 'requests', interval: 1000, maxInInterval: 5 },
  { name: 'tokens', interval: 10_000, maxInInterval: 100 },
];

describe('what is no limit', () => {
  const NUMBER = 'limits: expected an integer >= 0, got';
  const NAMES = 'limits: expected integers >= 0 by name of a limit (requests, tokens), got';
  const TOKENS = 'limits of "tokens": expected an integer >= 0, got';

  const ROWS = [
    [undefined, 1.5, RangeError, `${NUMBER} 1.5`],
    [undefined, [5], TypeError, `${NUMBER} an array`],
    [NAMED, 0, RangeError, `${NAMES} 0`],
    [NAMED, {}, TypeError, `${NAMES} an empty object`],
    [NAMED, { token: 5 }, TypeError, `${NAMES} "token" (string); did you mean 'tokens'?`],
    [NAMED, { tokens: 5, toString: 5 }, TypeError, expect.stringContaining('"toString"')],
    [NAMED, { tokens: Infinity }, RangeError, `${TOKENS} Infinity`],
    [NAMED, { tokens: '5' }, TypeError, `${TOKENS} "5" (string)`],
    [NAMED.map(({ name: _, ...limit }) => limit), 5, RangeError, expect.stringContaining('a name')],
  ];

  // Which calls fail, and that nothing is counted then, is tested on every store.
  test.each(ROWS)('%j: %p', (limits, given, Class, message) => {
    const error = catchError(() => setUp({ limits }).limiter.attempt('a', { limits: given }));
    expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_LIMIT', message });
  });
});

describe('limits of a call', () => {
  // Kills: one object of terms for other limits after many.
  test('are told apart however many there were', () => {
    const { limiter } = setUp({ limits: NAMED });
    for (let round = 0; round < 2; round++) {
      for (let requests = 0; requests < 40; requests++) {
        for (let tokens = 0; tokens < 40; tokens++) {
          const { limits } = limiter.peek('a', { limits: { requests, tokens } });
          const maxima = limits.map(({ maxInInterval }) => maxInInterval);
          expectEqual(maxima, [requests, tokens], { round });
        }
      }
    }
  });
});

describe('a limit of 0', () => {
  const until = (timeLeft) => ({ allowed: false, timeLeft, resetIn: timeLeft, blockedBy: 'count' });

  // Kills: Infinity; the window of the limit in place of the longest; a block that is shorter; a trace of the refusal.
  test.each([
    [{ limits: NAMED, blockFor: [20_000.5, 5] }, { requests: 1, tokens: -0 }, 20_001],
    [{ interval: 10.5, maxInInterval: 2 }, 0, 11],
  ])('of %j refuses at %j for %p ms', (options, limits, timeLeft) => {
    const { limiter, time } = setUp(options);
    limiter.attempt('a');
    time.advance(3);
    const usage = limiter.usage('a');
    expect(limiter.attempt('a', { limits })).toMatchObject(until(timeLeft));
    expect(limiter.usage('a', { limits })).toMatchObject({ allowed: false, timeLeft });
    expect(limiter.usage('a')).toEqual(usage);
  });
});

describe('wait', () => {
  const settledWithin = async (promise) => {
    let state = 'waits';
    promise.then(
      () => (state = 'allowed'),
      (error) => (state = error.code),
    );
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
    return state;
  };

  /** A line on a clock that stands still: what is refused waits for a long time. */
  function full() {
    const limits = [{ name: 'n', interval: 60_000, maxInInterval: 1 }];
    const { limiter } = setUp({ limits, countBlocked: false });
    limiter.attempt('a');
    return limiter;
  }

  // Kills: a refusal of a small limit that is taken as one of a larger limit, which passes.
  test('is not decided by what was refused under a smaller limit', async () => {
    const limiter = full();
    const first = limiter.wait('a', { limits: { n: 1 }, signal: AbortSignal.timeout(1) });
    const second = limiter.wait('a', { limits: { n: 2 } });
    const states = await Promise.all([first.catch(() => 'left'), second]);
    expect(states).toMatchObject(['left', { allowed: true }]);
    expect(limiter.usage('a').used).toBe(2);
  });

  // Kills: a refusal under one limit that decides a larger one's deadline.
  test('does not miss a deadline because of a smaller limit', async () => {
    const limiter = full();
    const controller = new AbortController();
    const first = limiter.wait('a', { signal: controller.signal });
    const second = limiter.wait('a', { limits: { n: 2 }, deadline: 1000 });
    expect(await settledWithin(second)).toBe('waits');
    controller.abort();
    await first.catch(() => {});
    expect(await second).toMatchObject({ allowed: true });
  });

  // Kills: limits of a waiting call that keep the limiter's own maximum of before.
  test('follows setLimits in the windows that it does not name', async () => {
    const limits = (max) => [
      { name: 'n', interval: 60_000, maxInInterval: max },
      { name: 'm', interval: 60_000, maxInInterval: 1 },
    ];
    const { limiter } = setUp({ limits: limits(1), countBlocked: false });
    limiter.attempt('a');
    const given = { m: 5 };
    const waiting = limiter.wait('a', { limits: given });
    given.m = 0; // the user's object is not looked at again
    expect(await settledWithin(waiting)).toBe('waits');
    limiter.setLimits(limits(2));
    expect(await waiting).toMatchObject({ limits: [{ maxInInterval: 2 }, { maxInInterval: 5 }] });

    const tooMuch = limiter.wait('a', { cost: { n: 2 }, limits: given, deadline: 60_000 });
    expect(await errorOf(tooMuch)).toMatchObject({ code: 'ERR_ROLLGATE_COST' });
    const low = limiter.wait('a', { cost: { n: 2 }, limits: { m: 5 } });
    limiter.setLimits(limits(1));
    expect(await errorOf(low)).toMatchObject({ code: 'ERR_ROLLGATE_COST' });
  });
});

// Kills: a suspended customer who passes, because options are ignored.
test.each(['limit', 'wouldLimit', 'limitWithInfo', 'wouldLimitWithInfo'])(
  '%s rejects options, and counts nothing',
  async (method) => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 2, clock: () => 0 });
    await expect(limiter[method]('a', { limits: 0 })).rejects.toMatchObject({
      code: 'ERR_ROLLGATE_OPTION',
      message: `${method}: expected no options, which attempt and peek take, got an object`,
    });
    expect(limiter.usage('a').used).toBe(0);
    await limiter[method]('a', undefined);
  },
);

// Kills: a name with undefined as a limit, or as an unknown one.
test('a name with undefined keeps its own limit', () => {
  const { limiter } = setUp({ limits: NAMED });
  const decision = limiter.attempt('a', { limits: { requests: 9, tokens: undefined } });
  expect(decision.limits).toMatchObject([{ maxInInterval: 9 }, { maxInInterval: 100 }]);
});
