// What the scripts keep of an id: how many bytes, for how long, under other limits; and what they leave alone.
'use strict';

const { ALGORITHMS } = require('../../lib/options/algorithms');
const SCRIPTS = require('../../lib/stores/redis/scripts');
const {
  argumentsOf,
  byEachClock,
  EACH_FORM,
  inMovedTime,
  KEY,
  LOG,
  MINUTE,
  OF_FRAME,
  policyOf,
  scriptsOnRedis,
  START_US,
  window,
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

/** Moments after START_US. */
const momentsOf = (count, us) => Array.from({ length: count }, (_, i) => START_US + us * i);

describe('the state of an id', () => {
  const script = scriptsOnRedis();
  const { run, runOn, attempt, peek, refund, ttl } = script;
  const bytesOf = () => script.redis.getBuffer(KEY);
  const lengthOf = () => script.redis.strlen(KEY);
  const usedOf = async (policy, now) => (await peek(policy, now, 0))[7];

  /** A second longer, and a log up to three. */
  const expectTtlOf = async (lifetime, algorithm) => {
    const left = await ttl();
    const spare = algorithm === LOG ? 3000 : 1000;
    expect(left).toBeLessThanOrEqual(Math.ceil(lifetime / 1000) + spare);
    expect(left).toBeGreaterThan(lifetime / 1000);
  };

  const usageOf = async (text) => {
    // Some servers store the end with the key, and not every one stores an integer of a script as such.
    await script.redis.eval("redis.call('SET', KEYS[1], ARGV[1], 'PX', 3600000)", 1, KEY, text);
    return script.redis.memory('USAGE', KEY);
  };

  /** Allocators round up differently: with that of Redis itself 64 bytes for an integer, 88 up to 20. */
  test.each([
    ['gcra', 'by the clock of the server', '', 'x'.repeat(40)],
    ['gcra', 'by a given one', START_US, 'x'.repeat(40)],
    ['fixed-window', 'by the clock of the server', '', '-1234567890123456789'],
    ['fixed-window', 'by a given one', START_US, 'x'.repeat(20)],
    ['sliding-window-counter', 'by the clock of the server', '', 'x'.repeat(19)],
    ['sliding-window-counter', 'by a given one', START_US, 'x'.repeat(19)],
  ])('of %s %s takes little of the server', async (algorithm, _by, now, text) => {
    const most = await usageOf(text);
    for (const [interval, max] of [
      [MINUTE, 5],
      [MINUTE, 7],
      [10 * MINUTE, 999],
      [86_400_000_000, 65_000],
    ]) {
      await script.redis.flushall();
      const policy = policyOf(algorithm, window(interval, max));
      // So much that little of it leaks while the test lasts.
      const cost = algorithm === 'gcra' ? Math.floor(max / 5) : 1;
      for (let i = 0; i < 3; i++) {
        await attempt(policy, now === '' ? now : now + i, cost);
        expect(await lengthOf()).toBe(text.length);
      }
      await refund(policy, await attempt(policy, now, cost), now, cost);
      expect(await lengthOf()).toBe(text.length);
      expect(await script.redis.memory('USAGE', KEY)).toBe(most);
    }
  });

  test('of fixed-window is an integer in the next window too, and bytes above 999 actions', async () => {
    await script.redis.set(KEY, '-1700000000000000003');
    expect([(await attempt(policyOf('fixed-window')))[7], await lengthOf()]).toEqual([1, 20]);
    const policy = policyOf('fixed-window', window(40_000 * MINUTE, 2000));
    await script.redis.del(KEY);
    const first = await attempt(policy, '', 999);
    expect(await lengthOf()).toBe(20);
    expect([(await attempt(policy))[7], await lengthOf()]).toEqual([1000, 20]);
    expect(await refund(policy, first, '', 999)).toBe(1);
    expect(await usedOf(policy, '')).toBe(1);
  });

  test.each([
    ['fixed-window', '-1000000000000000001', 1e15],
    ['fixed-window', '-2799999999999999001', 28e14 - 1],
    ['gcra', '-2800000000000000000', 17e14 - 20_000_000],
    ['gcra', '-8999999999999990000', 232e13 - 1 - 20_000_000],
  ])('of %s as the integer %s is known', async (algorithm, integer, now) => {
    const policy = policyOf(algorithm, window(MINUTE, 3));
    await script.redis.set(KEY, integer);
    expect(await usedOf(policy, now)).toBe(1);
    expect((await attempt(policy, now))[7]).toBe(2);
    expect((await attempt(policy, now))[7]).toBe(3);
    expect((await attempt(policy, now))[0]).toBe(1);
    expect(await usedOf(policy, now)).toBe(3);
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
      expect(await usedOf(policy, now + 1)).toBe(1);
    },
  );

  describe.each(EACH_FORM)('of %s with %s', (algorithm, _form, policy) => {
    test('lives as long as it matters', async () => {
      await attempt(policy);
      await expectTtlOf(lifetimeOf(policy), algorithm);
      await script.redis.pexpire(KEY, 1_000_000_000);
      const reply = await attempt(policy);
      if (reply[0] !== 0) return;
      const factor = algorithm === 'gcra' ? 2 : 1;
      expect(await ttl()).toBeLessThanOrEqual((factor * lifetimeOf(policy)) / 1000 + 3001);
    });

    test('gets a lost time to live back', async () => {
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

    const others = ALGORITHMS.filter((name) => name !== algorithm);
    test.each(others)('is none for %s, which begins anew', async (to) => {
      for (const [next, now] of byEachClock({ ...policy, algorithm: to })) {
        for (let i = 0; i < 2; i++) await attempt({ ...next, algorithm }, now);
        const asked = await peek(next, now);
        expect(asked.slice(0, 2)).toEqual([0, 0]);
        const before = await bytesOf();
        expect(await refund(next, [0, 0, 0, 0, 0, START_US, 0], now)).toBe(0);
        expect(await bytesOf()).toEqual(before);
        const [blockedBy, , , , , at] = await attempt(next, now);
        expect(blockedBy).toBe(0);
        expect(at).toBeGreaterThanOrEqual(asked[5]);
        expect(at).toBeLessThan(asked[5] + MINUTE);
        expect(await usedOf(next, now)).toBe(1);
        await script.redis.del(KEY);
      }
    });

    test('is not taken for one if it is cut, longer or of no moment, and neither is any string', async () => {
      await attempt(policy, START_US);
      const state = await bytesOf();
      const noMoment = Buffer.from(state).fill(0x7f, 5, 13);
      const more = Buffer.concat([state, Buffer.alloc(1)]);
      const near = [state.subarray(0, -1), state.subarray(0, 13 - 1), more, noMoment];
      const foreign = [
        ...['', 'x', '12', '-1', '1795338785335952999', '-0999999999999999999'],
        ...['-9000000000000000000', '-9223372036854775808', '12345678901234567890'],
        ...['-1.79533878533595e18', '-50000000000000000e2', '-0x01000000000000001'],
        ...['-179533878533595299x', '-17953387853359 2999', '- 795338785335952999'],
        ...['nan(abcdefghijklmno)', 'Dangerous goods, really!!', '{"count":1,"reset":17000000}'],
        ...[0x7f, 0xb0, 0xff].map((form) => Buffer.alloc(40, form)),
      ];
      // A log cannot tell an empty string from no key before it writes.
      const strings = [...near, ...foreign.slice(algorithm === LOG ? 1 : 0)];
      const makers = [
        ...strings.map((value) => () => script.redis.set(KEY, value)),
        () => script.redis.rpush(KEY, 'a'),
        () => script.redis.hset(KEY, 'a', 'b'),
      ];
      for (const make of makers) {
        await script.redis.del(KEY);
        await make();
        const before = await script.redis.dumpBuffer(KEY);
        const replies = [
          await run(policy, 'attempt', 'brief', '', 1),
          await run(policy, 'attempt', 'full', START_US, 1),
          await run(policy, 'peek', 'brief', '', 1),
          await run(policy, 'refund', [5, 5], '', 1),
          await run(policy, 'block', [5], '', 0),
        ];
        expect([before, ...replies.map(([first]) => first)]).toEqual([
          before,
          ...Array(5).fill(-1),
        ]);
        expect([await script.redis.dumpBuffer(KEY), await ttl()]).toEqual([before, -1]);
      }
    });

    test('is judged beside keys that hold something else', async () => {
      const keys = [KEY, 'other', KEY, 'other'];
      for (const [detail, length] of [
        ['brief', 1],
        ['full', 7 + 2 * policy.limits.length],
      ]) {
        await script.redis.rpush(KEY, 'a');
        const reply = await runOn(keys, policy, 'attempt', detail, START_US, 1);
        expect(reply).toHaveLength(keys.length * length);
        const firsts = keys.map((_, i) => reply[i * length]);
        expect(firsts).toEqual([-1, 0, -1, policy.minDifference > 0 ? expect.any(Number) : 0]);
        expect(await script.redis.lrange(KEY, 0, -1)).toEqual(['a']);
        await script.redis.flushall();
      }
    });
  });

  test.each(OF_FRAME)('of %s that may not be read is an error', async (name) => {
    await script.redis.call('ACL', 'SETUSER', 'unread', 'on', 'nopass', '~*', '+@all', '-get');
    const other = script.redis.duplicate({ username: 'unread', password: 'any' });
    try {
      for (const operation of ['attempt', 'peek']) {
        const call = argumentsOf(policyOf(name), [KEY], operation, 'brief', START_US, 1);
        await expect(other.evalsha(...call)).rejects.toThrow(/permissions|can't run/);
      }
    } finally {
      other.disconnect();
    }
  });

  test.each(ALGORITHMS)('of %s lives while its block and the memory of it matter', async (name) => {
    const policy = policyOf(name, { ...window(MINUTE, 1), blockFor: [3 * MINUTE, 100 * MINUTE] });
    const now = START_US;
    for (const blockedBy of [0, 1]) expect((await attempt(policy, now))[0]).toBe(blockedBy);
    await expectTtlOf(4 * MINUTE, name);
    for (let i = 0; i < 3; i++) {
      await script.redis.persist(KEY);
      expect((await attempt(policy, now + MINUTE))[0]).toBe(4);
      // The server's clock has not moved: a log keeps the end that it was given then.
      await expectTtlOf((name === LOG ? 4 : 3) * MINUTE, name);
    }
  });

  test.each(ALGORITHMS)('of %s lives while minDifference matters', async (name) => {
    await attempt(policyOf(name, { minDifference: 5 * MINUTE }));
    await expectTtlOf(5 * MINUTE, name);
  });

  const attemptInMovedTime = async (policy, keys, now, cost = 1) => {
    await script.setTime(now);
    const sha1 = await script.load(inMovedTime(SCRIPTS[policy.algorithm].source));
    return runOn(keys, { ...policy, sha1 }, 'attempt', 'brief', '', cost);
  };

  test('of fixed-window lives to the end of its window in every call of a batch, and of a longer one', async () => {
    const keys = Array.from({ length: 8 }, (_, i) => `key${i}`);
    for (const [now, interval] of [
      ...Array.from({ length: 30 }, (_, i) => [2e15 + i * 4_371_000, MINUTE]),
      ...Array.from({ length: 5 }, (_, i) => [2e15 + 130e6 + i, 1000 * MINUTE]),
    ]) {
      const policy = policyOf('fixed-window', window(interval, 1_000_000));
      await attemptInMovedTime(policy, keys, now, 1000);
      for (const key of keys) {
        const end = await script.redis.pexpiretime(key);
        expect(end).toBeGreaterThan((Math.floor(now / interval) + 1) * (interval / 1000));
        expect(end).toBeLessThanOrEqual((now + interval) / 1000 + 1000);
      }
    }
  });

  describe('of a log', () => {
    const attemptAll = async (policy, times) => {
      for (const now of times) await run(policy, 'attempt', 'brief', now, 1);
    };

    test('shrinks from a ring when little of it is inside', async () => {
      const policy = policyOf(LOG, window(MINUTE, 1000));
      await attemptAll(policy, momentsOf(600, 1));
      expect(await lengthOf()).toBeGreaterThan(4 * 599);
      // Some at a time leave the window, so it is never empty.
      for (const [i, now] of momentsOf(9, 20_000_000).entries()) {
        await run(policy, 'attempt', 'brief', now, 1);
        if (i > 3) expect(await usedOf(policy, now)).toBe(3);
      }
      // The newest one's two, and one that the one before needed.
      expect(await lengthOf()).toBe(17 + 4 * 3);
    });

    test.each([
      ['41 minutes', 41 * 60e6, 4],
      ['a day', 86_400e6, 5],
      ['a month', 30 * 86_400e6, 6],
      ['a century', 100 * 366 * 86_400e6, 7],
    ])('of %s has stamps as short as that allows, and is exact', async (_, interval, bytes) => {
      const policy = policyOf(LOG, window(interval, 3));
      const at = async (now) => (await run(policy, 'attempt', 'brief', now, 1))[0];
      const times = [START_US, START_US + Math.floor(interval / 2), START_US + interval - 1];
      for (const time of times) expect(await at(time)).toBe(0);
      expect(await at(times[2])).toBe(1);
      expect(await lengthOf()).toBe(17 + 2 * bytes);
      const full = await attempt(policy, times[0] + interval);
      expect(full.slice(0, 4)).toEqual([0, 0, 0, times[1] - times[0]]);
      expect(await at(times[1] + interval - 1)).toBe(1);
      expect(await at(times[1] + interval)).toBe(0);
    });

    test('of a large cost is written at once', async () => {
      const policy = policyOf(LOG, window(MINUTE, 2_000_000));
      expect(await run(policy, 'attempt', 'brief', START_US, 2_000_000)).toEqual([0]);
      expect(await run(policy, 'attempt', 'brief', START_US, 1)).toEqual([MINUTE]);
      expect(await lengthOf()).toBe(47 + 2 * 8);
    });

    test.each([
      ['a single window', {}],
      ['minDifference', { minDifference: 1 }],
    ])('lives until its end matters no more, in every call of a batch: %s', async (_, changes) => {
      const policy = policyOf(LOG, { ...window(MINUTE, 100), ...changes });
      const keys = Array.from({ length: 8 }, (__, i) => `key${i}`);
      for (let now = 2e15; now < 2e15 + 7e6; now += 437_000) {
        await attemptInMovedTime(policy, keys, now);
        for (const key of keys) {
          const left = (await script.redis.pexpiretime(key)) - now / 1000;
          expect(left).toBeGreaterThanOrEqual(MINUTE / 1000);
          expect(left).toBeLessThanOrEqual(MINUTE / 1000 + 3000);
        }
      }
    });

    test.each([
      ['a single window', {}],
      ['blocks', { blockFor: [1] }],
    ])('lives until its actions leave if the clock steps back: %s', async (_, how) => {
      for (const now of [2e15, 2e15 - 30e6])
        await attemptInMovedTime(policyOf(LOG, how), [KEY], now);
      expect(await script.redis.pexpiretime(KEY)).toBeGreaterThanOrEqual((2e15 + MINUTE) / 1000);
    });

    test('has no stamp so old that it could be taken for a later one', async () => {
      const policy = policyOf(LOG, window(4_000_000_000, 1000)); // stamps repeat after 4295 s
      await attemptAll(policy, [...momentsOf(600, 1000), ...momentsOf(4, 3_900_000_000).slice(1)]);
      expect(await usedOf(policy, START_US + 3 * 3_900_000_000)).toBe(2);
    });

    // Kills: a ring that is written only in part, where the key is read from one copy for all of the call.
    test('that is a ring admits no more than fit, if its key repeats under a lower limit', async () => {
      const larger = policyOf(LOG, window(MINUTE, 1000));
      await attemptAll(larger, momentsOf(400, 1));
      const lower = policyOf(LOG, window(MINUTE, 257));
      const start = START_US + MINUTE + 250; // 149 are inside
      const reply = await runOn(Array(150).fill(KEY), lower, 'attempt', 'brief', start, 1);
      expect(reply.filter((timeLeft) => timeLeft === 0)).toHaveLength(257 - 149);
      expect(await usedOf(lower, start)).toBe(257);
    });

    test('that refusals have cut still says so where it grows again', async () => {
      const policy = policyOf(LOG, { countBlocked: true });
      await attemptAll(policy, momentsOf(5, 1));
      const larger = { ...policy, ...window(MINUTE, 5) };
      expect(await run(larger, 'attempt', 'brief', START_US + 5, 1)).toEqual([0]);
      expect([await lengthOf(), (await bytesOf())[0]]).toEqual([17 + 3 * 4, 0x80 + 4]);
    });
  });
});
