// setLimits and block: what is wrong with a call, what sees the new limits, what waiting calls do.
'use strict';

const RateLimiter = require('../..');
const { admitted } = require('../conformance/usage');
const { catchError, setUp } = require('../support/set-up');
const { whereAddon } = require('../support/bindings');
const { newName } = require('../support/shared-regions');

const LIMIT = { interval: 1000, maxInInterval: 5 };
const REQUESTS = { name: 'requests', interval: 1000, maxInInterval: 5 };
const TOKENS = { name: 'tokens', interval: 10_000, maxInInterval: 100 };
const NAMED = [REQUESTS, TOKENS];

const limits = (maxInInterval) => [{ interval: 10, maxInInterval }];

describe('wrong limits', () => {
  const ARRAY = "option 'limits': expected a list of at least one limit, got";
  const nameOf = (i, expected, got) =>
    `option 'limits[${i}].name': expected ${expected}, as the limiter has it, got ${got}`;

  // Which calls fail, and that nothing changes then, is tested on every store.
  test.each([
    [[LIMIT], LIMIT, `${ARRAY} an object`],
    [[LIMIT], [], `${ARRAY} an empty list`],
    [[LIMIT], [LIMIT, LIMIT], "option 'limits': expected one limit, as the limiter has, got 2"],
    [[LIMIT], [5], "option 'limits[0]': expected an object, got 5"],
    [[LIMIT], [TOKENS], nameOf(0, 'no name', '"tokens" (string)')],
    [NAMED, [REQUESTS], "option 'limits': expected 2 limits, as the limiter has, got 1"],
    [NAMED, [TOKENS, REQUESTS], nameOf(0, '"requests" (string)', '"tokens" (string)')],
    [NAMED, [REQUESTS, LIMIT], nameOf(1, '"tokens" (string)', 'undefined')],
  ])('of %j, %j are an error', (given, wrong, message) => {
    const error = catchError(() => RateLimiter({ limits: given }).setLimits(wrong));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
  });

  whereAddon.test('are longer than a log in shared memory can be', () => {
    const limiter = RateLimiter({ ...LIMIT, shared: newName(), maxKeys: 10 });
    const error = catchError(() => limiter.setLimits(limits(2 ** 20)));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toMatch(/^option 'maxInInterval': expected an integer from 1 to 1048575/);
  });
});

test('new limits are copied, also by a frozen limiter, and earlier Decisions keep theirs', async () => {
  const { limiter } = setUp();
  Object.freeze(limiter);
  const before = limiter.attempt('a');
  const given = limits(4);
  limiter.setLimits(given);
  given[0].maxInInterval = 9;
  given.push(LIMIT);
  expect(before.limits).toMatchObject([{ maxInInterval: 2, remaining: 1 }]);
  expect(await admitted(limiter)).toBe(3);
});

describe('calls that wait', () => {
  // Kills: a look at the first of a line only.
  test('keep costs by name that fit', async () => {
    const { limiter } = setUp({ limits: NAMED, countBlocked: false });
    limiter.attempt('a', { cost: { tokens: 100 } });
    const [small, large] = [40, 90].map((tokens) => limiter.wait('a', { cost: { tokens } }));
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
