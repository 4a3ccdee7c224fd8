// setLimits and block: what is wrong with a call, what sees the new limits, what waiting calls do.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { catchError, setUp } = require('../support/set-up');
const { hasAddon, whereAddon } = require('../support/bindings');
const { redisAt } = require('../support/redis-clients');
const { newName } = require('../support/shared-regions');

const LIMIT = { interval: 1000, maxInInterval: 5 };
const REQUESTS = { name: 'requests', interval: 1000, maxInInterval: 5 };
const TOKENS = { name: 'tokens', interval: 10_000, maxInInterval: 100 };

const limits = (maxInInterval, others) => [{ interval: 10, maxInInterval, ...others }];

/** How many attempts in a row a limiter in memory allows. */
function admitted(limiter) {
  let n = 0;
  while (limiter.attempt('a').allowed) n += 1;
  return n;
}

describe('wrong limits', () => {
  const ARRAY = "option 'limits': expected a list of at least one limit, got";
  const ONE = "option 'limits': expected one limit, as the limiter has, got 2";

  // Kills: the single form of options; a check of the shape that is left out, or comes after the change.
  test.each([
    [undefined, TypeError, `${ARRAY} undefined`],
    [LIMIT, TypeError, `${ARRAY} an object`],
    [[], TypeError, `${ARRAY} an empty list`],
    [[LIMIT, LIMIT], TypeError, ONE],
    [[5], TypeError, "option 'limits[0]': expected an object, got 5"],
    [
      [TOKENS],
      TypeError,
      `option 'limits[0].name': expected no name, as the limiter has it, got "tokens" (string)`,
    ],
  ])('%p are an error, and nothing changes', (given, type, message) => {
    const { limiter } = setUp();
    const error = catchError(() => limiter.setLimits(given));
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
    expect(limiter.usage('a').limits).toMatchObject([{ interval: 10, maxInInterval: 2 }]);
    expect(admitted(limiter)).toBe(2);
  });

  test.each([
    [[REQUESTS], "option 'limits': expected 2 limits, as the limiter has, got 1"],
    [
      [TOKENS, REQUESTS],
      `option 'limits[0].name': expected "requests" (string), as the limiter has it, got "tokens" (string)`,
    ],
    [
      [REQUESTS, LIMIT],
      `option 'limits[1].name': expected "tokens" (string), as the limiter has it, got undefined`,
    ],
  ])('%p are an error of limits with names', (given, message) => {
    const limiter = RateLimiter({ limits: [REQUESTS, TOKENS] });
    const error = catchError(() => limiter.setLimits(given));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
  });

  whereAddon.test('are longer than a log in shared memory can be', () => {
    const limiter = RateLimiter({ ...LIMIT, shared: newName(), maxKeys: 10 });
    const error = catchError(() => limiter.setLimits(limits(2 ** 20)));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toMatch(/^option 'maxInInterval': expected an integer from 1 to 1048575/);
  });

  const STORES = {
    memory: {},
    ...(hasAddon && { 'shared memory': { shared: newName(), maxKeys: 10 } }),
    Redis: { redis: redisAt('redis://127.0.0.1:1'), namespace: 'a' },
    kv: { kv: createPlainKv(), namespace: 'a' },
  };
  test.each(Object.entries(STORES))('throw at once, also after close: %s', async (_, options) => {
    const limiter = RateLimiter({ ...LIMIT, ...options });
    expect(catchError(() => limiter.setLimits([]))).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    expect(limiter.setLimits([{ ...LIMIT, maxInInterval: 7 }])).toBe(undefined);
    await limiter.close();
    for (const given of [[LIMIT], []]) {
      const error = catchError(() => limiter.setLimits(given));
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
    }
  });
});

describe('new limits', () => {
  test('are copied', () => {
    const { limiter } = setUp();
    const given = limits(4);
    limiter.setLimits(given);
    given[0].maxInInterval = 9;
    given.push(LIMIT);
    expect(admitted(limiter)).toBe(4);
  });

  test('leave earlier Decisions as they are', () => {
    const { limiter } = setUp();
    const before = limiter.attempt('a');
    limiter.setLimits(limits(4));
    expect(before.limits).toMatchObject([{ maxInInterval: 2, remaining: 1 }]);
    expect(limiter.refund(before)).toBe(true);
  });

  test('can be set on a frozen limiter', () => {
    const { limiter } = setUp();
    Object.freeze(limiter);
    limiter.setLimits(limits(3));
    expect(admitted(limiter)).toBe(3);
  });
});

describe('calls that wait', () => {
  const codeOf = (promise) =>
    promise.then(
      () => 'allowed',
      ({ code }) => code,
    );

  // Kills: lines that are not asked; a call at the front that keeps the others for ever.
  test('are rejected if their cost can never pass, wherever they are in the line', async () => {
    const { limiter } = setUp({ maxInInterval: 4 });
    limiter.attempt('a', { cost: 4 });
    const codes = [4, 1, 3, 2].map((cost) => codeOf(limiter.wait('a', { cost })));
    const other = codeOf(limiter.wait('b', { cost: 4 }));
    limiter.setLimits(limits(2));
    await limiter.clear('a');
    expect(await codes[0]).toBe('ERR_ROLLGATE_COST');
    expect(await codes[1]).toBe('allowed');
    expect(await codes[2]).toBe('ERR_ROLLGATE_COST');
    await limiter.clear('a');
    expect([await codes[3], await other]).toEqual(['allowed', 'allowed']);
  });

  test('keep costs by name that fit', async () => {
    const { limiter } = setUp({ limits: [REQUESTS, TOKENS], countBlocked: false });
    limiter.attempt('a', { cost: { tokens: 100 } });
    const [large, small] = [90, 40].map((tokens) => limiter.wait('a', { cost: { tokens } }));
    limiter.setLimits([REQUESTS, { ...TOKENS, maxInInterval: 50 }]);
    await expect(large).rejects.toMatchObject({
      code: 'ERR_ROLLGATE_COST',
      message: expect.stringContaining('from 0 to 50, its maxInInterval, got 90'),
    });
    await limiter.clear('a');
    expect((await small).limits).toMatchObject([{ used: 1 }, { used: 40, maxInInterval: 50 }]);
  });

  // Kills: minDifference and windows of the time before in what a line knows.
  test('wait for the time that new limits say', async () => {
    for (const countBlocked of [true, false]) {
      const { limiter } = setUp({
        interval: 3_600_000,
        maxInInterval: 1,
        clock: undefined,
        countBlocked,
      });
      limiter.attempt('a');
      const waiting = limiter.wait('a');
      limiter.setLimits([{ interval: 20, maxInInterval: 1, minDifference: 5 }]);
      expect(await waiting).toMatchObject({ allowed: true, limits: [{ interval: 20 }] });
      expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
      await limiter.close();
    }
  });
});
