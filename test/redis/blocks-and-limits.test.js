// Ids that are blocked by hand and limits that change, on Redis: states, times to live, and each client.
'use strict';

const Redis = require('ioredis');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { scriptRuns } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
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

const [BLOCK, NEVER] = [4, 9]; // why an attempt is refused
const now = START_US;

describe('a block in the state of an id', () => {
  const script = scriptsOnRedis();
  const { attempt, block, peek, refund, run, ttl } = script;
  const bytesOf = () => script.redis.getBuffer(KEY);

  describe.each(EACH_FORM)('of %s with %s', (algorithm, form, policy) => {
    const leaksAtOnce = algorithm === 'gcra' && form === 'wide counts';

    test('refuses until its end, and is dropped by the first write after it', async () => {
      const first = await attempt(policy, now);
      const before = await script.redis.strlen(KEY);
      expect(await block(policy, MINUTE, now + 1)).toBe(1);
      const end = now + 1 + MINUTE;
      const state = await bytesOf();
      for (const [at, left] of [
        [now + 2, MINUTE - 1],
        [end - 1, 1],
      ]) {
        const refusal = await attempt(policy, at);
        expect(refusal[0]).toBe(BLOCK);
        expect(refusal[1]).toBeGreaterThanOrEqual(left);
        expect((await run(policy, 'attempt', 'brief', at, 1))[0]).toBe(refusal[1]);
        expect((await peek(policy, at, 0))[0]).toBe(BLOCK);
      }
      expect(await bytesOf()).toEqual(state);
      expect(await refund(policy, first, now + 2)).toBe(leaksAtOnce ? 0 : 1);
      expect((await peek(policy, now + 3))[0]).toBe(BLOCK);
      expect((await attempt(policy, end))[0]).toBe(0);
      if (policy.blockFor.length === 0) expect(await script.redis.strlen(KEY)).toBe(before);
    });

    test('of an id without actions has none, and clear ends it', async () => {
      expect(await block(policy, MINUTE, now)).toBe(1);
      const usage = await peek(policy, now, 0);
      expect(usage.slice(0, 2)).toEqual([BLOCK, MINUTE]);
      expect(policy.limits.map((_, w) => usage[7 + 2 * w])).toEqual(policy.limits.map(() => 0));
      await script.redis.unlink(KEY);
      expect((await attempt(policy, now))[0]).toBe(0);
      await script.redis.unlink(KEY);
      expect(await block(policy, 0, now)).toBe(1);
      expect(await script.redis.exists(KEY)).toBe(0);
    });

    test('holds as long as the later end, and 0 ends it without a loss', async () => {
      const first = await attempt(policy, now);
      for (const us of [50 * MINUTE, MINUTE, 0]) {
        await block(policy, us, now);
        const expected = us === 0 ? 0 : BLOCK;
        const later = now + policy.minDifference;
        expect((await peek(policy, later))[0]).toBe(expected);
        if (us > 0) expect((await peek(policy, now + 49 * MINUTE))[0]).toBe(BLOCK);
      }
      expect((await peek(policy, now, 0))[7]).toBe(1);
      expect(await refund(policy, first, now)).toBe(1);
      expect((await peek(policy, now, 0))[7]).toBe(0);
    });

    test('makes its key live as long', async () => {
      await attempt(policy, now);
      await block(policy, 2e12, now);
      expect(await ttl()).toBeGreaterThan(2e9);
      if (leaksAtOnce) return; // with names, its attempts could be settled for longer
      const most = policy.blockFor.length > 0 ? 1e9 : 0;
      expect(await ttl()).toBeLessThanOrEqual(2e9 + 3000 + most);
    });
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

  test('of a log with blockFor is no offence, and ends with the memory of offences', async () => {
    const policy = policyOf(LOG, { ...window(MINUTE, 1), blockFor: [5 * MINUTE, 50 * MINUTE] });
    await block(policy, MINUTE, now);
    await attempt(policy, now + MINUTE);
    expect((await attempt(policy, now + MINUTE)).slice(0, 2)).toEqual([1, 5 * MINUTE]);
  });

  // Kills: a ring of which only the beginning is written, in a form that has no place for a block.
  test('of a long log keeps all actions', async () => {
    const policy = policyOf(LOG, window(MINUTE, 1000));
    for (let i = 0; i < 400; i++) await run(policy, 'attempt', 'brief', now + i, 1);
    await block(policy, MINUTE / 2, now + 400);
    expect((await attempt(policy, now + 401))[0]).toBe(BLOCK);
    const later = now + 400 + MINUTE / 2;
    for (let i = 0; i < 10; i++) expect((await attempt(policy, later + i))[0]).toBe(0);
    expect((await peek(policy, later + 10, 0))[7]).toBe(410);
    await block(policy, 0, later + 11);
    expect((await peek(policy, later + 11, 0))[7]).toBe(410);
  });

  test('is not written where something else is', async () => {
    await script.redis.set(KEY, 'foreign');
    for (const algorithm of ALGORITHMS) {
      expect(await block(policyOf(algorithm), MINUTE, now)).toBe(-1);
    }
    expect(await script.redis.get(KEY)).toBe('foreign');
  });
});

describe('a log under lower limits', () => {
  const script = scriptsOnRedis();
  const { attempt, block, peek, refund, run } = script;

  // Kills: a write that records nothing, and cuts the log to the lower limit.
  test.each([10, 400])('keeps %d actions that a higher limit needs', async (count) => {
    const high = policyOf(LOG, window(MINUTE, count));
    const low = policyOf(LOG, { ...window(MINUTE, 2), blockFor: [1] });
    const attempts = [];
    for (let i = 0; i < count; i++) attempts.push(await attempt(high, now + i));
    const at = now + count;
    expect((await attempt(low, at))[0]).toBe(1); // starts a block
    await block(low, 2, at + 1);
    expect(await refund(low, attempts[0], at + 3)).toBe(1);
    expect((await peek(low, at + 4))[0]).toBe(1);
    expect((await peek(high, at + 4, 0))[7]).toBe(count - 1);
    expect(await run(high, 'attempt', 'brief', at + 4, 1)).toEqual([0]);
    expect((await run(high, 'attempt', 'brief', at + 5, 1))[0]).toBeGreaterThan(0);
  });
});

describe('a cost above a limit that was lowered', () => {
  const script = scriptsOnRedis();
  const costly = EACH_FORM.filter(([, form]) => form !== 'wide counts');

  // Kills: a wait that is divided by a count of 0; a stamp that is read behind the newest.
  test.each(costly)('is refused by %s with %s', async (_algorithm, _form, policy) => {
    for (const attempts of [0, 1]) {
      for (let i = 0; i < attempts; i++) await script.attempt(policy, now);
      for (const cost of [4, 9]) {
        const at = now + 10_000_000;
        const [reason, timeLeft] = await script.peek(policy, at, cost);
        expect([reason, timeLeft >= MINUTE]).toEqual([NEVER, true]);
        const [again] = await script.attempt(policy, at, cost);
        expect(again).toBe(NEVER);
      }
    }
    expect((await script.peek(policy, now + 10_000_000, 0))[7]).toBeLessThanOrEqual(1);
  });
});

describe('limiters', () => {
  let server;
  let client;
  const opened = [];
  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.url).on('error', () => {});
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((limiter) => limiter.close()));
    await client.flushall();
  });
  afterAll(() => client.disconnect());

  const CLIENTS = [
    ['natively', () => server.url],
    ['through ioredis', () => client],
  ];
  const HOUR = 3_600_000;
  const hour = (maxInInterval) => [{ interval: HOUR, maxInInterval }];
  const make = (redis, options) => {
    const limiter = RateLimiter({ redis, namespace: 'ns', countBlocked: false, ...options });
    opened.push(limiter);
    return limiter;
  };

  test.each(CLIENTS)('send calls with the limits when they are made, %s', async (_, redisOf) => {
    for (const algorithm of ['sliding-window-log', 'sliding-window-counter', 'fixed-window']) {
      await client.flushall();
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

  // Kills: costs of a limit above 1,024 that are not in one group; long logs that are read together.
  test.each(CLIENTS)('take limits much larger than before, %s', async (_, redisOf) => {
    const limiter = make(redisOf(), { limits: hour(5) });
    await limiter.attempt('a', { cost: 5 });
    limiter.setLimits(hour(100_000));
    const costs = [1000, 20_000, 1, 3];
    const runs = await scriptRuns(server);
    const all = await Promise.all(costs.map((cost) => limiter.attempt('a', { cost })));
    expect(all.every(({ allowed }) => allowed)).toBe(true);
    expect((await limiter.usage('a')).used).toBe(21_009);
    expect(await client.strlen('ns{a}')).toBeLessThan(1000);
    expect(await scriptRuns(server)).toBeGreaterThan(runs);
    expect(await limiter.settle(all[1], 7)).toBe(true);
    expect((await limiter.usage('a')).used).toBe(1016);
  });

  test.each(ALGORITHMS)('never admit more than the larger limit: %s', async (algorithm) => {
    const time = handClock(1_700_000_400_000);
    const [low, high] = [3, 20];
    const limiters = CLIENTS.map(([, redisOf]) =>
      make(redisOf(), { limits: hour(high), algorithm, clock: time.clock }),
    );
    const admitted = [];
    for (let step = 0; step < 150; step++) {
      const limiter = limiters[step % 2];
      limiter.setLimits(hour(step % 7 < 3 ? low : high));
      const decision = await limiter.attempt('a');
      if (decision.allowed) admitted.push(time.clock());
      time.advance((step * 7919) % 400_000);
    }
    // Of gcra and the counter, as many again may fit into an interval.
    const most = algorithm === LOG ? high : 2 * high;
    const inIntervalBefore = (end) => admitted.filter((at) => at > end - HOUR && at <= end).length;
    expect(Math.max(...admitted.map(inIntervalBefore))).toBeLessThanOrEqual(most);
    expect(admitted.length).toBeGreaterThan(high);
  });

  test.each(CLIENTS)('gcra keeps how many actions are in its bucket, %s', async (_, redisOf) => {
    const { clock } = handClock(1_700_000_400_000);
    const limiter = make(redisOf(), { limits: hour(4), algorithm: 'gcra', clock });
    await limiter.attempt('a', { cost: 2 });
    for (const max of [8, 2, 4]) {
      limiter.setLimits(hour(max));
      expect(await limiter.usage('a')).toMatchObject({ used: 2, remaining: max - 2 });
    }
  });

  test.each(CLIENTS)(
    'forget remembered refusals with a block and new limits, %s',
    async (_, redisOf) => {
      const limiter = make(redisOf(), { limits: hour(1), localRefusals: true });
      await limiter.block('a', HOUR);
      for (let i = 0; i < 2; i++) {
        expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', actionsLeft: 1 });
      }
      expect(limiter.stats().localRefusals).toBe(1);
      await limiter.block('a', 0);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
      for (let i = 0; i < 2; i++) {
        expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count' });
      }
      limiter.setLimits(hour(2));
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
      expect(limiter.stats().localRefusals).toBe(2);
    },
  );

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
    const own = await startRedis();
    const limiter = make(own.url, { limits: hour(1), onError: 'memory' });
    await limiter.block('a', HOUR);
    limiter.setLimits(hour(3));
    await own.stop();
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block' });
    expect(await limiter.attempt('b')).toMatchObject({ allowed: true, actionsLeft: 2 });
    limiter.setLimits(hour(4));
    expect(await limiter.attempt('b')).toMatchObject({ allowed: true, actionsLeft: 2 });
    const errors = limiter.stats().errors;
    await expect(limiter.block('b', HOUR)).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_ROLLGATE_REDIS_/),
    });
    expect(limiter.stats().errors).toBeGreaterThan(errors);
    expect(await limiter.attempt('b')).toMatchObject({ blockedBy: 'block' });
  });
});
