// Ids that are blocked by hand and limits that change, on Redis: states, times to live, outages.
'use strict';

const { ALGORITHMS } = require('../../lib/options/algorithms');
const { clientAt, nativeLimiter } = require('../support/redis-clients');
const { redisForTests, startRedis } = require('../support/redis-server');
const {
  EACH_FORM,
  KEY,
  LOG,
  MINUTE,
  policyOf,
  scriptsOnRedis,
  START_US,
  window,
} = require('../support/scripts-on-redis');
const { handClock } = require('../support/set-up');

const BLOCK = 4; // why an attempt is refused
const now = START_US;

describe('a block in the state of an id', () => {
  const script = scriptsOnRedis();
  const { attempt, block, peek, refund, run, ttl } = script;

  test.each(EACH_FORM)('of %s with %s lives with its key until its end', async (...row) => {
    const [algorithm, form, policy] = row;
    const length = 2e12;
    expect(await block(policy, 0, now)).toBe(1); // begins none
    expect(await script.redis.exists(KEY)).toBe(0);
    await attempt(policy, now);
    const before = await script.redis.strlen(KEY);
    await block(policy, length, now + 1);
    expect(await ttl()).toBeGreaterThan(length / 1000);
    // Else its attempts could be settled for longer.
    if (algorithm !== 'gcra' || form !== 'wide counts') {
      const most = policy.blockFor.length > 0 ? 1e9 : 0;
      expect(await ttl()).toBeLessThanOrEqual(length / 1000 + 3000 + most);
    }
    expect((await attempt(policy, now + length))[0]).toBe(BLOCK);
    expect((await attempt(policy, now + 1 + length))[0]).toBe(0);
    if (policy.blockFor.length === 0) expect(await script.redis.strlen(KEY)).toBe(before);
  });

  test.each(ALGORITHMS)('by the clock of the server, %s', async (algorithm) => {
    const policy = policyOf(algorithm, window(1000 * MINUTE, 3));
    const first = await attempt(policy);
    await block(policy, 60 * MINUTE);
    const [reason, left] = await attempt(policy);
    expect(reason).toBe(BLOCK);
    expect(left).toBeGreaterThan(59 * MINUTE);
    expect(await refund(policy, first)).toBe(1);
    await block(policy, 0);
    for (const expected of [0, 0, 0, 1]) expect((await attempt(policy))[0]).toBe(expected);
  });

  // Kills: a ring of which only the beginning is written, in a form that has no place for a block.
  test('of a long log keeps all actions', async () => {
    const policy = policyOf(LOG, window(MINUTE, 1000));
    for (let i = 0; i < 400; i++) await run(policy, 'attempt', 'brief', now + i, 1);
    await block(policy, MINUTE / 2, now + 400);
    const later = now + 400 + MINUTE / 2;
    for (let i = 0; i < 10; i++) expect((await attempt(policy, later + i))[0]).toBe(0);
    expect((await peek(policy, later + 10, 0))[7]).toBe(410);
    await block(policy, 0, later + 11);
    expect((await peek(policy, later + 11, 0))[7]).toBe(410);
  });

  // Kills: a write that records nothing, and cuts the log to the lower limit.
  test('of a long log under lower limits keeps the actions that a higher limit needs', async () => {
    const high = policyOf(LOG, window(MINUTE, 400));
    const low = policyOf(LOG, { ...window(MINUTE, 2), blockFor: [1] });
    const attempts = [];
    for (let i = 0; i < 400; i++) attempts.push(await attempt(high, now + i));
    const at = now + 400;
    expect((await attempt(low, at))[0]).toBe(1); // starts a block
    await block(low, 2, at + 1);
    expect(await refund(low, attempts[0], at + 3)).toBe(1);
    expect((await peek(high, at + 4, 0))[7]).toBe(399);
  });
});

describe('limiters', () => {
  const server = redisForTests();

  const HOUR = 3_600_000;
  const hour = (maxInInterval) => [{ interval: HOUR, maxInInterval }];
  const own = { interval: undefined, maxInInterval: undefined, countBlocked: false };
  const make = (redis, options) => nativeLimiter(redis, { ...own, ...options });

  test.each([
    ['natively', () => server.url],
    ['through ioredis', () => ({ client: clientAt(server.url) })],
  ])('send calls with the limits when they are made, %s', async (_, redisOf) => {
    for (const algorithm of ['sliding-window-log', 'sliding-window-counter', 'fixed-window']) {
      const { clock } = handClock(1_700_000_400_000);
      const limiter = make(redisOf(), { limits: hour(2), algorithm, clock });
      const attempts = (count) => Array.from({ length: count }, () => limiter.attempt('a'));
      const calls = attempts(3);
      limiter.setLimits(hour(5));
      calls.push(...attempts(4));
      limiter.setLimits(hour(1000));
      calls.push(...attempts(2));
      limiter.setLimits(hour(4));
      calls.push(...attempts(1));
      const allowed = (await Promise.all(calls)).map((decision) => decision.allowed);
      const expected = [true, true, false, true, true, true, false, true, true, false];
      expect({ algorithm, allowed }).toEqual({ algorithm, allowed: expected });
    }
  });

  test.each([
    ['allow', { allowed: true, actionsLeft: 6 }],
    ['block', { allowed: false, blockedBy: 'block', actionsLeft: 0 }],
  ])("have their new limits in decisions of onError: '%s'", async (onError, expected) => {
    const limiter = make('redis://127.0.0.1:1', { limits: hour(1), onError });
    await limiter.attempt('a');
    limiter.setLimits(hour(7));
    const decision = await limiter.attempt('a');
    expect(decision).toMatchObject(expected);
    const used = 7 - expected.actionsLeft;
    expect(decision.limits).toMatchObject([{ maxInInterval: 7, used }]);
  });

  test("block and set limits for onError: 'memory', too, before an outage and in one", async () => {
    const redis = await startRedis();
    const limiter = make(redis.url, { limits: hour(1), onError: 'memory' });
    await limiter.block('a', HOUR);
    limiter.setLimits(hour(3));
    await redis.stop();
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block' });
    expect(await limiter.attempt('b')).toMatchObject({ allowed: true, actionsLeft: 2 });
    limiter.setLimits(hour(4));
    expect(await limiter.attempt('b')).toMatchObject({ allowed: true, actionsLeft: 2 });
    await expect(limiter.block('b', HOUR)).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_ROLLGATE_REDIS_/),
    });
    expect(await limiter.attempt('b')).toMatchObject({ blockedBy: 'block' });
  });
});
