// What the scripts keep of an id: how many bytes, for how long, and what a refund takes of it.
'use strict';

const { ALGORITHMS } = require('../../lib/algorithms');
const { attemptOn } = require('../../lib/redis/script');
const SCRIPTS = require('../../lib/redis/scripts');
const {
  byEachClock,
  EACH_FORM,
  KEY,
  LOG,
  MINUTE,
  OF_FRAME,
  policyOf,
  START_US,
  window,
  scriptsOnRedis,
} = require('../support/scripts-on-redis');

/** How long a state matters that was just begun, in us. */
function lifetimeOf({ algorithm, limits, minDifference }) {
  const intervals = limits.map(({ interval }) => interval);
  if (algorithm === 'gcra') {
    const emissions = limits.map(({ interval, maxInInterval }) => interval / maxInInterval);
    return Math.max(minDifference, ...emissions);
  }
  const windows = algorithm === 'sliding-window-counter' ? 2 : 1;
  return Math.max(minDifference, windows * Math.max(...intervals));
}

describe('the state of an id', () => {
  const script = scriptsOnRedis();
  const { run, attempt, peek, refund, ttl } = script;

  /** A second longer, and a log up to three. */
  const expectTtlOf = async (lifetime, algorithm) => {
    const left = await ttl();
    const spare = algorithm === LOG ? 3000 : 1000;
    expect(left).toBeLessThanOrEqual(Math.ceil(lifetime / 1000) + spare);
    expect(left).toBeGreaterThan(lifetime / 1000);
  };

  const usageOf = async (text) => {
    await script.redis.set(KEY, text);
    const usage = await script.redis.memory('USAGE', KEY);
    await script.redis.del(KEY);
    return usage;
  };

  /** Allocators round up differently: 64 bytes for an integer, 80 for 12 with that of Redis itself. */
  test.each([
    ['gcra', 'by the clock of the server', '', '-1234567890123456789'],
    ['gcra', 'by a given one', START_US, 'x'.repeat(12)],
    ['fixed-window', 'by the clock of the server', '', '-1234567890123456789'],
    ['fixed-window', 'by a given one', START_US, 'x'.repeat(12)],
    ['sliding-window-counter', 'by the clock of the server', '', 'x'.repeat(12)],
    ['sliding-window-counter', 'by a given one', START_US, 'x'.repeat(12)],
  ])('of %s %s takes little of the server', async (algorithm, _by, now, text) => {
    const most = await usageOf(text);
    for (const [interval, max] of [
      [MINUTE, 5],
      [MINUTE, 7],
      [MINUTE, 999],
      [1_000_000, 1000],
      [86_400_000_000, 65_000],
    ]) {
      const policy = policyOf(algorithm, window(interval, max));
      // So much that little of it leaks while the test lasts.
      const cost = algorithm === 'gcra' ? Math.floor(max / 5) : 1;
      for (let i = 0; i < 3; i++) {
        await attempt(policy, now === '' ? now : now + i, cost);
        expect(await script.redis.strlen(KEY)).toBe(text.length);
      }
      await peek(policy, now);
      await refund(policy, await attempt(policy, now, cost), now, cost);
      expect(await script.redis.strlen(KEY)).toBe(text.length);
      expect(await script.redis.memory('USAGE', KEY)).toBe(most);
      await script.redis.flushall();
    }
  });

  test('of gcra takes more of it from where an older action is taken back until all has leaked', async () => {
    const policy = policyOf('gcra', window(MINUTE, 5));
    const first = await attempt(policy);
    await attempt(policy);
    expect(await script.redis.strlen(KEY)).toBe(20);
    expect(await refund(policy, first)).toBe(1);
    expect(await script.redis.strlen(KEY)).toBe(12);
    const last = await attempt(policy);
    expect([last[7], await script.redis.strlen(KEY)]).toEqual([2, 12]);
    expect(await refund(policy, last)).toBe(1);
    const bytes = await script.redis.getBuffer(KEY);
    bytes.writeIntLE(bytes.readIntLE(6, 6) - (2 * MINUTE) / 64, 6, 6);
    await script.redis.set(KEY, bytes);
    expect((await attempt(policy))[7]).toBe(1);
    expect(await script.redis.strlen(KEY)).toBe(20);
    expect(await refund(policy, last)).toBe(0);
  });

  test.each([2n ** 60n, -(2n ** 60n)])(
    'of sliding-window-counter at %s us is begun anew',
    async (moment) => {
      const bytes = Buffer.alloc(19);
      bytes.writeUInt8(0xb1);
      bytes.writeBigInt64LE(moment, 5);
      bytes.writeUInt8(3, 13); // actions
      await script.redis.set(KEY, bytes);
      const reply = await attempt(policyOf('sliding-window-counter'), START_US);
      expect([reply[0], reply[5], reply[7]]).toEqual([0, START_US, 1]);
    },
  );

  test('of sliding-window-counter has room for any generation', async () => {
    const bytes = Buffer.alloc(19);
    bytes.writeUInt8(0xb1);
    bytes.writeUInt32LE(2 ** 32 - 1, 1);
    bytes.writeBigInt64LE(BigInt(START_US), 5);
    bytes.writeUInt8(1, 13); // actions
    await script.redis.set(KEY, bytes);
    const policy = policyOf('sliding-window-counter');
    for (const used of [2, 3]) expect((await attempt(policy, START_US))[7]).toBe(used);
    expect(await script.redis.strlen(KEY)).toBe(12);
  });

  test('of fixed-window is an integer in the next window too', async () => {
    await script.redis.set(KEY, '-1700000000000000003');
    expect((await attempt(policyOf('fixed-window')))[7]).toBe(1);
    expect(await script.redis.strlen(KEY)).toBe(20);
  });

  test.each([
    ['fixed-window', 999, 12],
    ['sliding-window-counter', 1023, 19],
  ])('of %s takes more of it above %d actions', async (algorithm, most, length) => {
    const policy = policyOf(algorithm, window(40_000 * MINUTE, 2000));
    const first = await attempt(policy, '', most - 1);
    await attempt(policy);
    const before = await script.redis.strlen(KEY);
    expect(before).toBe(algorithm === 'fixed-window' ? 20 : 12);
    const next = await attempt(policy);
    expect(await script.redis.strlen(KEY)).toBe(length);
    expect(next[7]).toBe(most + 1);
    expect(await refund(policy, first, '', most - 1)).toBe(1);
    expect(await refund(policy, next)).toBe(1);
    expect((await peek(policy, '', 0))[7]).toBe(1);
  });

  test.each([
    ['fixed-window', '-1000000000000000001', 1e15],
    ['fixed-window', '-4499999999999999001', 45e14 - 1],
    ['gcra', '-5000000000000000000', 1e15 - 20_000_000],
    ['gcra', '-8499999999999999000', 45e14 - 1 - 20_000_000],
  ])('of %s as the integer %s is known', async (algorithm, integer, now) => {
    const policy = policyOf(algorithm, window(MINUTE, 3));
    await script.redis.set(KEY, integer);
    expect((await peek(policy, now, 0))[7]).toBe(1);
    expect((await attempt(policy, now))[7]).toBe(2);
    expect((await attempt(policy, now))[7]).toBe(3);
    expect((await attempt(policy, now))[0]).toBe(1);
    expect((await peek(policy, now, 0))[7]).toBe(3);
  });

  test.each(OF_FRAME)(
    'of %s is one by the clock of the server and by a given one',
    async (name) => {
      const policy = policyOf(name, window(40_000 * MINUTE, 4));
      const first = await attempt(policy);
      const now = first[5] + 1_000_000;
      const second = await attempt(policy, now);
      const third = await attempt(policy, now + 1);
      await attempt(policy);
      expect((await attempt(policy))[0]).toBe(1);
      expect((await attempt(policy, now))[0]).toBe(1);
      for (const each of [first, second, third]) expect(await refund(policy, each, now)).toBe(1);
      expect((await peek(policy, now, 0))[7]).toBe(1);
    },
  );

  test.each(EACH_FORM)('of %s with %s does not grow', async (_algorithm, _form, policy) => {
    for (let i = 0; i < 4; i++) await attempt(policy, START_US + i);
    const full = await script.redis.strlen(KEY);
    for (let i = 0; i < 50; i++) await attempt(policy, START_US + 4 + i);
    const grown = policy.algorithm === LOG && policy.limits.at(-1).maxInInterval > 4;
    if (!grown) expect(await script.redis.strlen(KEY)).toBe(full);
    expect(await script.redis.strlen(KEY)).toBeLessThan(300);
  });

  test.each(EACH_FORM)('of %s with %s lives as long as it matters', async (_a, _f, policy) => {
    await attempt(policy);
    await expectTtlOf(lifetimeOf(policy), policy.algorithm);
    await script.redis.pexpire(KEY, 1_000_000_000);
    const reply = await attempt(policy);
    if (reply[0] !== 0) return;
    const factor = policy.algorithm === 'gcra' ? 2 : 1;
    expect(await ttl()).toBeLessThanOrEqual((factor * lifetimeOf(policy)) / 1000 + 3001);
  });

  test.each(EACH_FORM)('of %s with %s gets a lost time to live back', async (_a, _f, policy) => {
    const reply = await attempt(policy, START_US);
    const most = Math.min(...policy.limits.map(({ maxInInterval }) => maxInInterval));
    for (let i = 0; i < 2; i++) {
      await script.redis.persist(KEY);
      expect((await attempt(policy, START_US, most))[0]).not.toBe(0);
      expect(await ttl()).toBeGreaterThan(0);
    }
    await script.redis.persist(KEY);
    expect(await refund(policy, reply, START_US)).toBe(1);
    if (await script.redis.exists(KEY)) expect(await ttl()).toBeGreaterThan(0);
  });

  test.each(ALGORITHMS)('of %s lives while its block and the memory of it matter', async (name) => {
    const policy = policyOf(name, { ...window(MINUTE, 1), blockFor: [3 * MINUTE, 100 * MINUTE] });
    const now = START_US;
    const first = await attempt(policy, now);
    const [blockedBy, timeLeft] = await attempt(policy, now);
    expect([blockedBy, timeLeft]).toEqual([1, 3 * MINUTE]);
    await expectTtlOf(4 * MINUTE, name);
    for (let i = 0; i < 3; i++) {
      await script.redis.persist(KEY);
      expect((await attempt(policy, now + MINUTE))[0]).toBe(4);
      // The server's clock has not moved: a log tells the end that it was given then.
      await expectTtlOf((name === LOG ? 4 : 3) * MINUTE, name);
    }
    expect(await refund(policy, first, now + MINUTE)).toBe(name === 'gcra' ? 0 : 1);
    expect((await peek(policy, now + 3 * MINUTE - 1)).slice(0, 2)).toEqual([4, 1]);
    // The second offence, as the first is remembered: up to a window after the block.
    const later = now + 4 * MINUTE - 1;
    expect((await attempt(policy, later))[0]).toBe(0);
    expect((await attempt(policy, later)).slice(0, 2)).toEqual([1, 100 * MINUTE]);
    await expectTtlOf(101 * MINUTE, name);
  });

  test.each(ALGORITHMS)('of %s lives while minDifference matters', async (name) => {
    await attempt(policyOf(name, { minDifference: 5 * MINUTE }));
    await expectTtlOf(5 * MINUTE, name);
  });

  test.each(ALGORITHMS)('of %s takes an offence that the policy knows no more', async (name) => {
    const lengths = (...blockFor) => policyOf(name, { ...window(MINUTE, 1), blockFor });
    const three = lengths(MINUTE, MINUTE, MINUTE);
    let now = START_US;
    await attempt(three, now);
    for (let i = 0; i < 3; i++) {
      expect((await attempt(three, now))[0]).toBe(1);
      now += MINUTE;
      expect((await attempt(three, now))[0]).toBe(0);
    }
    expect((await attempt(lengths(2 * MINUTE), now)).slice(0, 2)).toEqual([1, 2 * MINUTE]);
  });

  test.each(ALGORITHMS)('of %s forgets offences after the block and a window', async (name) => {
    const policy = policyOf(name, { ...window(MINUTE, 1), blockFor: [3 * MINUTE, 100 * MINUTE] });
    await attempt(policy, START_US);
    await attempt(policy, START_US);
    const later = START_US + 4 * MINUTE;
    expect((await attempt(policy, later))[0]).toBe(0);
    expect((await attempt(policy, later)).slice(0, 2)).toEqual([1, 3 * MINUTE]);
  });

  test.each(EACH_FORM)('of %s with %s is told briefly as in full', async (_a, _f, policy) => {
    for (let i = 0; i < 12; i++) {
      const [, timeLeft] = await peek(policy, START_US + i);
      expect(await run(policy, 'peek', 'brief', START_US + i, 1)).toEqual([timeLeft]);
      expect(await run(policy, 'attempt', 'brief', START_US + i, 1)).toEqual([timeLeft]);
    }
  });

  test.each(ALGORITHMS)('of %s is judged in order where a key occurs again', async (algorithm) => {
    const policy = policyOf(algorithm);
    const { sha1 } = SCRIPTS[algorithm];
    const keys = [KEY, 'other', KEY, KEY, KEY, 'other', KEY];
    const words = [attemptOn(keys), 'brief', START_US, 1, 0, 0, '', MINUTE, 3];
    const replies = await script.redis.evalsha(sha1, keys.length, ...keys, ...words);
    expect(replies.map((timeLeft) => timeLeft === 0)).toEqual([
      true,
      true,
      true,
      true,
      false,
      true,
      false,
    ]);
    expect((await peek(policy, START_US))[7]).toBe(3);
  });

  describe('refunds', () => {
    test.each(EACH_FORM)('%s with %s: not what was cleared', async (_a, _f, each) => {
      for (const [policy, now] of [...byEachClock(each), ...byEachClock(each)]) {
        const cleared = await attempt(policy, now);
        await script.redis.del(KEY);
        const again = await attempt(policy, now);
        expect(await refund(policy, cleared, now)).toBe(0);
        expect((await peek(policy, now, 0))[7]).toBe(1);
        expect(await refund(policy, again, now)).toBe(1);
        expect((await peek(policy, now, 0))[7]).toBe(0);
        await script.redis.del(KEY);
      }
    });

    test('gcra with blocks: time is no earlier than the newest attempt', async () => {
      const policy = policyOf('gcra', { blockFor: [MINUTE] });
      const emission = MINUTE / 3;
      const first = await attempt(policy, START_US - emission / 2);
      await attempt(policy, START_US);
      // The clock is back where more of the first had not leaked than when the second came.
      await attempt(policy, START_US - emission / 4);
      expect(await refund(policy, first, START_US - emission / 4)).toBe(1);
      expect((await peek(policy, START_US, 0)).slice(7)).toEqual([2, emission]);
    });

    test('gcra: not what has leaked, and only what has not', async () => {
      for (const changes of [{}, { blockFor: [MINUTE] }]) {
        const policy = policyOf('gcra', { ...window(MINUTE, 2), ...changes });
        const first = await attempt(policy, START_US);
        const second = await attempt(policy, START_US + MINUTE / 2);
        expect(await refund(policy, first, START_US + MINUTE / 2)).toBe(0);
        const quarter = START_US + (3 * MINUTE) / 4;
        expect(await refund(policy, second, quarter)).toBe(1);
        expect((await peek(policy, quarter, 0)).slice(7)).toEqual([0, 0]);
        await script.redis.del(KEY);
      }
    });
  });

  describe('at huge numbers', () => {
    const HUGE = 2 ** 53;
    test.each(ALGORITHMS)(
      '%s answers with integers, and refuses what is too much',
      async (name) => {
        for (const interval of [1, 2 ** 52, HUGE - 1, HUGE]) {
          for (const now of [-HUGE, -1, 0, 2 ** 52 - 1, HUGE - 1]) {
            const policy = policyOf(name, window(interval, 2));
            const replies = [];
            for (let i = 0; i < 3; i++) replies.push(await attempt(policy, now));
            expect(replies.map(([blockedBy]) => blockedBy)).toEqual([0, 0, 1]);
            for (const number of replies.flat()) expect(Number.isInteger(number)).toBe(true);
            expect(replies[2][1]).toBeGreaterThan(0);
            expect(await ttl()).toBeGreaterThan(0);
            await script.redis.flushall();
          }
        }
      },
    );

    test.each(OF_FRAME)('%s counts costs up to 2^53', async (name) => {
      const policy = policyOf(name, window(MINUTE, HUGE - 1));
      const half = 2 ** 52;
      const [, , left] = await attempt(policy, START_US, half);
      expect(left).toBe(half - 1);
      expect((await attempt(policy, START_US, half))[0]).toBe(1);
      expect((await attempt(policy, START_US, half - 1)).slice(0, 3)).toEqual([0, 0, 0]);
      const [, timeLeft] = await attempt(policy, START_US, 1);
      expect(timeLeft).toBeGreaterThan(0);
      expect((await peek(policy, START_US + timeLeft - 1))[0]).toBe(1);
      expect((await peek(policy, START_US + timeLeft))[0]).toBe(0);
    });
  });
});
