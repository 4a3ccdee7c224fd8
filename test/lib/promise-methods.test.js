// The methods of rolling-rate-limiter 0.4: promises of what an attempt comes to.
'use strict';

const { setUp } = require('../support/set-up');

const INFO_KEYS = [
  'blocked',
  'blockedDueToCount',
  'blockedDueToMinDifference',
  'millisecondsUntilAllowed',
  'actionsRemaining',
];

describe('limit and wouldLimit', () => {
  test('resolve to whether the action is blocked', async () => {
    const { limiter } = setUp();
    const answers = [await limiter.limit('a'), await limiter.limit('a'), await limiter.limit('a')];
    expect(answers).toEqual([false, false, true]);
    expect(limiter.limit('b')).toBeInstanceOf(Promise);
  });

  test('make the attempt before they return', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    const answer = limiter.limit('a');
    expect(limiter('a')).toBe(10);
    expect(await answer).toBe(false);
  });

  test('wouldLimit tells what limit would, without a trace', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    for (let i = 0; i < 3; i++) expect(await limiter.wouldLimit('a')).toBe(false);
    expect(limiter.stats()).toMatchObject({ keys: 0, allowed: 0, blocked: 0 });
    await limiter.limit('a');
    for (let i = 0; i < 3; i++) expect(await limiter.wouldLimit('a')).toBe(true);
    expect(limiter.stats()).toMatchObject({ keys: 1, allowed: 1, blocked: 0 });
  });

  test('serve the one bucket of callers without an id', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    expect([
      await limiter.limit(),
      await limiter.limit(null),
      await limiter.wouldLimit(''),
    ]).toEqual([false, true, true]);
  });
});

describe('limitWithInfo and wouldLimitWithInfo', () => {
  test('resolve to exactly the five facts of rolling-rate-limiter', async () => {
    const { limiter } = setUp();
    for (const method of ['limitWithInfo', 'wouldLimitWithInfo']) {
      const info = await limiter[method]('a');
      expect(Object.keys(info)).toEqual(INFO_KEYS);
      expect(Object.getPrototypeOf(info)).toBe(Object.prototype);
    }
  });

  test('count the current attempt: filling the window tells the wait for the next', async () => {
    const { limiter, time } = setUp();
    expect(await limiter.limitWithInfo('a')).toEqual({
      blocked: false,
      blockedDueToCount: false,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 0,
      actionsRemaining: 1,
    });
    time.advance(4);
    expect(await limiter.wouldLimitWithInfo('a')).toEqual({
      blocked: false,
      blockedDueToCount: false,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 6,
      actionsRemaining: 0,
    });
    await limiter.limit('a');
    expect(await limiter.limitWithInfo('a')).toEqual({
      blocked: true,
      blockedDueToCount: true,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 10,
      actionsRemaining: 0,
    });
  });

  test('tell both reasons and the whole minDifference', async () => {
    const { limiter, time } = setUp({ minDifference: 3 });
    expect(await limiter.limitWithInfo('a')).toMatchObject({ millisecondsUntilAllowed: 3 });
    time.advance(1);
    expect(await limiter.wouldLimitWithInfo('a')).toEqual({
      blocked: true,
      blockedDueToCount: false,
      blockedDueToMinDifference: true,
      millisecondsUntilAllowed: 9,
      actionsRemaining: 0,
    });
    await limiter.limitWithInfo('a');
    expect(await limiter.limitWithInfo('a')).toMatchObject({
      blocked: true,
      blockedDueToCount: true,
      blockedDueToMinDifference: true,
    });
  });

  test('with countBlocked: false a refusal is not part of the answer', async () => {
    const { limiter, time } = setUp({ maxInInterval: 5, minDifference: 3, countBlocked: false });
    await limiter.limit('a');
    time.advance(1);
    const refusal = {
      blocked: true,
      blockedDueToCount: false,
      blockedDueToMinDifference: true,
      millisecondsUntilAllowed: 2,
      actionsRemaining: 4,
    };
    expect(await limiter.limitWithInfo('a')).toEqual(refusal);
    expect(await limiter.wouldLimitWithInfo('a')).toEqual(refusal);
  });
});
