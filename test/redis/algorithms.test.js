// The algorithms and blocks through every way to connect, which understand each other's states.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/algorithms');
const SCRIPTS = require('../../lib/redis/scripts');
const { Oracle } = require('../conformance/oracle');
const { decisionOf } = require('../conformance/oracle/public-answers');
const { handClock } = require('../support/hand-clock');
const { EACH_CLIENT, REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');

const START_MS = 1_700_000_000_000;
const POLICIES = [
  { limits: [{ interval: 10_000, maxInInterval: 3 }], minDifference: 0, blockFor: [] },
  {
    limits: [
      { interval: 10_000, maxInInterval: 3 },
      { interval: 60_000, maxInInterval: 7 },
    ],
    minDifference: 1000,
    blockFor: [5000, 20_000],
  },
];
const CASES = ALGORITHMS.flatMap((algorithm) => POLICIES.map((policy) => [algorithm, policy]));

let server;
let namespaces = 0;

const inMs = ({ limits, minDifference, blockFor }) => ({
  limits: limits.map(({ interval, maxInInterval }) => {
    return { interval: interval / 1000, maxInInterval, minDifference: minDifference / 1000 };
  }),
  ...(blockFor.length > 0 && { blockFor: blockFor.map((length) => length / 1000) }),
});

/** One walk through a policy; `limiterFor()` may give another limiter each time. */
async function walk(limiterFor, algorithm, policy, time) {
  const oracle = new Oracle({ ...policy, algorithm, countBlocked: false });
  for (let step = 0; step < 60; step++) {
    const decision = await limiterFor().attempt('a');
    const expected = decisionOf(oracle.attempt(time.us), policy);
    expect({ step, ...decision }).toEqual({ step, ...expected });
    time.us += [0, 700, 1000, 2500, 9000][step % 5];
  }
}

beforeAll(async () => {
  server = await startRedis();
});

describe('algorithms', () => {
  const { using, closeAll } = openings();
  const connections = {};

  beforeAll(() => {
    for (const [name, open] of EACH_CLIENT) connections[name] = using(open(server.url));
  });
  afterAll(closeAll);

  const limiterOver = (name, options) => {
    return RateLimiter({ redis: { ...connections[name], commandTimeout: 10_000 }, ...options });
  };

  function optionsOf(algorithm, policy, time) {
    namespaces += 1;
    return {
      ...inMs(policy),
      algorithm,
      countBlocked: false,
      namespace: `algorithms-${namespaces}`,
      clock: () => time.us / 1000,
    };
  }

  const startTime = () => ({ us: START_MS * 1000 });

  describe.each(EACH_CLIENT)('through %s', (name) => {
    test.each(CASES)('%s decides as defined: %j', async (algorithm, policy) => {
      const time = startTime();
      const limiter = limiterOver(name, optionsOf(algorithm, policy, time));
      await walk(() => limiter, algorithm, policy, time);
    });

    test.each(ALGORITHMS)('%s: a script that is not known is sent once', async (algorithm) => {
      const time = startTime();
      const limiter = limiterOver(name, optionsOf(algorithm, POLICIES[0], time));
      await server.command('SCRIPT', 'FLUSH');
      expect(await Promise.all([limiter('a'), limiter('b'), limiter('a')])).toEqual([0, 0, 0]);
      const known = await server.command('SCRIPT', 'EXISTS', SCRIPTS[algorithm].sha1);
      expect(known).toEqual([1]);
    });

    test.each(ALGORITHMS)('%s gives back', async (algorithm) => {
      const time = startTime();
      const limiter = limiterOver(name, optionsOf(algorithm, POLICIES[0], time));
      const decisions = await limiter.attemptMany(['a', 'a', 'a', 'a']);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
      expect(await limiter.refund(decisions[0])).toBe(true);
      expect(await limiter.refund(decisions[0])).toBe(false);
      expect((await limiter.peek('a')).actionsLeft).toBe(0);
      expect(await limiter('a')).toBe(0);
      expect((await limiter.attempt('a')).allowed).toBe(false);
      await limiter.clear('a');
      await limiter('a');
      expect(await limiter.refund(decisions[1])).toBe(false);
      expect(await limiter.refund(decisions[3])).toBe(false);
    });

    test("counts by the server's clock, blocks too", async () => {
      for (const algorithm of ALGORITHMS) {
        const { clock: _, ...options } = optionsOf(algorithm, POLICIES[0], startTime());
        const limits = [{ interval: 86_400_000 * 365, maxInInterval: 1 }];
        const limiter = limiterOver(name, { ...options, limits, blockFor: 86_400_000 * 1000 });
        const first = await limiter.attempt('a');
        expect(first.allowed).toBe(true);
        expect((await limiter.attempt('a')).blockedBy).toBe('count');
        expect((await limiter.attempt('a')).blockedBy).toBe('block');
        expect(await limiter('a')).toBeGreaterThan(86_400_000 * 999);
        expect(await limiter.refund(first)).toBe(true);
        expect((await limiter.peek('a')).blockedBy).toBe('block');
      }
    });
  });

  test.each(CASES)(
    '%s: every way to connect understands the others: %j',
    async (algorithm, policy) => {
      const time = startTime();
      const options = optionsOf(algorithm, policy, time);
      const names = Object.keys(REDIS_CLIENTS);
      const limiters = names.map((name) => limiterOver(name, options));
      let turn = 0;
      await walk(() => limiters[turn++ % limiters.length], algorithm, policy, time);
    },
  );

  test.each(ALGORITHMS)('%s: a refund whose clock fails takes nothing', async (algorithm) => {
    const time = handClock(START_MS);
    const options = optionsOf(algorithm, POLICIES[0], startTime());
    const limiter = limiterOver('ioredis', { ...options, clock: time.clock });
    const decision = await limiter.attempt('a');
    time.set(Number.NaN);
    await expect(limiter.refund(decision)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_CLOCK' });
    time.set(START_MS);
    expect((await limiter.peek('a', { cost: 3 })).allowed).toBe(false);
  });
});
