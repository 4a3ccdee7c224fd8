// What the scripts keep of an id: how many bytes, for how long, under other limits, and what a refund takes of it.
'use strict';

const { ALGORITHMS } = require('../../lib/algorithms');
const { attemptOn } = require('../../lib/redis/script');
const SCRIPTS = require('../../lib/redis/scripts');
const {
  argumentsOf,
  byEachClock,
  EACH_FORM,
  FORMS,
  inMovedTime,
  KEY,
  LOG,
  MINUTE,
  OF_FRAME,
  policyOf,
  scriptsOnRedis,
  setTime,
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

  /** Allocators round up differently: with that of Redis itself 64 bytes for an integer, 88 up to 20. */
  test.each([
    ['gcra', 'by the clock of the server', '', '-1234567890123456789'],
    ['gcra', 'by a given one', START_US, 'x'.repeat(18)],
    ['fixed-window', 'by the clock of the server', '', '-1234567890123456789'],
    ['fixed-window', 'by a given one', START_US, 'x'.repeat(16)],
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
    expect(await script.redis.strlen(KEY)).toBe(18);
    const last = await attempt(policy);
    expect([last[7], await script.redis.strlen(KEY)]).toEqual([2, 18]);
    expect(await refund(policy, last)).toBe(1);
    const bytes = await script.redis.getBuffer(KEY);
    bytes.writeBigInt64LE(bytes.readBigInt64LE(5) - BigInt(2 * MINUTE), 5);
    await script.redis.set(KEY, bytes);
    expect((await attempt(policy))[7]).toBe(1);
    expect(await script.redis.strlen(KEY)).toBe(20);
    expect(await refund(policy, last)).toBe(0);
  });

  test('of fixed-window is an integer in the next window too', async () => {
    await script.redis.set(KEY, '-1700000000000000003');
    expect((await attempt(policyOf('fixed-window')))[7]).toBe(1);
    expect(await script.redis.strlen(KEY)).toBe(20);
  });

  test('of fixed-window takes more of it above 999 actions', async () => {
    const policy = policyOf('fixed-window', window(40_000 * MINUTE, 2000));
    const first = await attempt(policy, '', 998);
    await attempt(policy);
    expect(await script.redis.strlen(KEY)).toBe(20);
    const next = await attempt(policy);
    expect([next[7], await script.redis.strlen(KEY)]).toEqual([1000, 16]);
    expect(await refund(policy, first, '', 998)).toBe(1);
    expect(await refund(policy, next)).toBe(1);
    expect((await peek(policy, '', 0))[7]).toBe(1);
  });

  test.each([
    ['fixed-window', '-1000000000000000001', 1e15],
    ['fixed-window', '-2799999999999999001', 28e14 - 1],
    ['gcra', '-2800000000000000000', 17e14 - 20_000_000],
    ['gcra', '-8999999999999990000', 232e13 - 1 - 20_000_000],
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

  describe('of a log', () => {
    const attemptAll = async (policy, times) => {
      for (const now of times) await run(policy, 'attempt', 'brief', now, 1);
    };

    test('holds what is inside the longest window', async () => {
      const policy = policyOf(LOG, window(MINUTE, 1000));
      const times = Array.from({ length: 2000 }, (_, i) => START_US + (i * MINUTE) / 4);
      await attemptAll(policy, times);
      expect((await peek(policy, times.at(-1), 0))[7]).toBe(4);
      expect(await script.redis.memory('USAGE', KEY)).toBeLessThanOrEqual(130);
    });

    test('shrinks from a ring when little of it is inside', async () => {
      const policy = policyOf(LOG, window(MINUTE, 1000));
      await attemptAll(
        policy,
        Array.from({ length: 600 }, (_, i) => START_US + i),
      );
      const large = await script.redis.strlen(KEY);
      expect(large).toBeGreaterThan(4 * 599);
      // Some at a time leave the window, so it is never empty.
      await attemptAll(
        policy,
        Array.from({ length: 90 }, (_, i) => START_US + (1 + i) * 20_000_000),
      );
      expect(await script.redis.strlen(KEY)).toBe(17 + 4 * 2);
      expect((await peek(policy, START_US + 90 * 20_000_000, 0))[7]).toBe(3);
    });

    test('does not change by a refused check', async () => {
      const policy = policyOf(LOG, window(MINUTE, 600));
      await run(policy, 'attempt', 'brief', START_US, 300);
      await run(policy, 'attempt', 'brief', START_US + MINUTE - 1, 300);
      const before = await script.redis.getBuffer(KEY);
      expect((await attempt(policy, START_US + MINUTE, 301))[0]).toBe(1);
      expect(await script.redis.getBuffer(KEY)).toEqual(before);
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
      expect(await script.redis.strlen(KEY)).toBe(17 + 2 * bytes);
      expect(await at(times[0] + interval)).toBe(0);
      expect(await at(times[1] + interval - 1)).toBe(1);
      expect(await at(times[1] + interval)).toBe(0);
    });

    test('of a large cost is written at once', async () => {
      const policy = policyOf(LOG, window(MINUTE, 2_000_000));
      expect(await run(policy, 'attempt', 'brief', START_US, 2_000_000)).toEqual([0]);
      expect(await run(policy, 'attempt', 'brief', START_US, 1)).toEqual([MINUTE]);
      expect(await script.redis.strlen(KEY)).toBe(29 + 4 * 1_999_999);
    });

    test.each([
      ['brief', 0],
      ['full', 0],
      ['brief', 1],
    ])('gets no place back that refusals have taken (%s, minDifference %d)', async (how, gap) => {
      const policy = policyOf(LOG, {
        ...window(MINUTE, 4),
        minDifference: gap,
        countBlocked: true,
      });
      const isAllowed = async (now) => {
        const reply = await run(policy, 'attempt', how, now, 1);
        return reply[0] === 0;
      };
      const takeBack = async (now) => refund(policy, await peek(policy, now), now);
      for (let i = 0; i < 4; i++) expect(await isAllowed(START_US + 10 * i)).toBe(true);
      expect(await isAllowed(START_US + 40)).toBe(false);
      expect(await takeBack(START_US + 40)).toBe(1);
      expect(await isAllowed(START_US + 50)).toBe(false);
      // Nothing of that is in the window any more.
      const later = START_US + 2 * MINUTE;
      for (let i = 0; i < 4; i++) expect(await isAllowed(later + 10 * i)).toBe(true);
      expect(await takeBack(later + 30)).toBe(1);
      expect(await isAllowed(later + 50)).toBe(true);
    });

    test.each([
      ['a single window', {}],
      ['minDifference', { minDifference: 1 }],
    ])('lives until its end matters no more, in every call of a batch: %s', async (_, changes) => {
      const sha1 = await script.redis.script('LOAD', inMovedTime(SCRIPTS[LOG].source));
      const policy = policyOf(LOG, { ...window(MINUTE, 100), ...changes });
      const keys = Array.from({ length: 8 }, (__, i) => `key${i}`);
      const [, , , ...words] = argumentsOf(policy, 'attempt', 'brief', '', 1);
      for (let now = 2e15; now < 2e15 + 7e6; now += 437_000) {
        await setTime(script.redis, now);
        await script.redis.evalsha(sha1, keys.length, ...keys, ...words);
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
    ])(
      'lives until its actions leave if the clock of the server steps back: %s',
      async (_, how) => {
        const sha1 = await script.redis.script('LOAD', inMovedTime(SCRIPTS[LOG].source));
        const [, , , ...words] = argumentsOf(policyOf(LOG, how), 'attempt', 'brief', '', 1);
        for (const now of [2e15, 2e15 - 30e6]) {
          await setTime(script.redis, now);
          await script.redis.evalsha(sha1, 1, KEY, ...words);
        }
        expect(await script.redis.pexpiretime(KEY)).toBeGreaterThanOrEqual((2e15 + MINUTE) / 1000);
      },
    );

    test('has no stamp so old that it could be taken for a later one', async () => {
      const policy = policyOf(LOG, window(4_000_000_000, 1000)); // stamps repeat after 4295 s
      await attemptAll(
        policy,
        Array.from({ length: 600 }, (_, i) => START_US + 1000 * i),
      );
      const times = [1, 2, 3].map((i) => START_US + i * 3_900_000_000);
      await attemptAll(policy, times);
      expect((await peek(policy, times[2], 0))[7]).toBe(2);
    });
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

  describe('of another algorithm', () => {
    const pairs = EACH_FORM.flatMap(([from, form, policy]) =>
      ALGORITHMS.filter((to) => to !== from).map((to) => [from, form, to, policy]),
    );
    test.each(pairs)('%s with %s: %s begins anew', async (_from, _form, to, policy) => {
      for (const [next, now] of byEachClock({ ...policy, algorithm: to })) {
        const first = { ...next, algorithm: policy.algorithm };
        for (let i = 0; i < 2; i++) await attempt(first, now);
        const asked = await peek(next, now);
        expect(asked.slice(0, 2)).toEqual([0, 0]);
        const before = await script.redis.getBuffer(KEY);
        expect(await refund(next, [0, 0, 0, 0, 0, START_US, 0], now)).toBe(0);
        expect(await script.redis.getBuffer(KEY)).toEqual(before);
        const [blockedBy, , , , , at] = await attempt(next, now);
        expect(blockedBy).toBe(0);
        expect(at).toBeGreaterThanOrEqual(asked[5]);
        expect(at).toBeLessThan(asked[5] + MINUTE);
        expect((await peek(next, now, 0))[7]).toBe(1);
        await script.redis.del(KEY);
      }
    });
  });

  describe('of other limits', () => {
    const pairs = FORMS.flatMap(([from, before]) =>
      FORMS.filter(([to]) => to !== from).map(([to, after]) => [from, to, before, after]),
    );
    describe.each(OF_FRAME)('%s', (algorithm) => {
      test.each(pairs)(
        '%s, then %s: what was used stays used',
        async (_from, _to, before, after) => {
          const first = policyOf(algorithm, before);
          const second = policyOf(algorithm, after);
          const reply = await attempt(first, START_US);
          expect(reply[0]).toBe(0);
          const { length } = second.limits;
          const used = (await peek(second, START_US, 0)).filter((_, i) => i >= 7 && i % 2 === 1);
          expect(used[0]).toBeGreaterThanOrEqual(1);
          expect(used).toHaveLength(length);
          expect((await attempt(second, START_US + MINUTE))[0]).toBe(0);
          expect((await attempt(first, START_US + 2 * MINUTE))[0]).toBe(0);
        },
      );

      test.each([
        ['an hour', 60 * MINUTE, 'a second', 1_000_000],
        ['a second', 1_000_000, 'an hour', 60 * MINUTE],
        ['10 ms', 10_000, 'a month', 43_200 * MINUTE],
        ['a month', 43_200 * MINUTE, '10 ms', 10_000],
      ])('%s (%d us), then %s (%d us): it passes again at last', async (_f, i1, _t, i2) => {
        const first = policyOf(algorithm, window(i1, 1));
        const second = policyOf(algorithm, window(i2, 1));
        await attempt(first, START_US);
        const [, timeLeft] = await peek(second, START_US);
        expect(timeLeft).toBeLessThanOrEqual(2 * Math.max(i1, i2));
        expect((await attempt(second, START_US + timeLeft))[0]).toBe(0);
      });
    });

    test('gcra takes as many parts of a us as there are of its own', async () => {
      const blockFor = [MINUTE];
      await attempt(policyOf('gcra', { ...window(998_000, 999), blockFor }), START_US);
      const unitsOf = async () => (await script.redis.getBuffer(KEY)).readUInt16LE(33);
      expect(await unitsOf()).toBeGreaterThan(6);
      await attempt(policyOf('gcra', { ...window(MINUTE, 3), blockFor }), START_US);
      expect(await unitsOf()).toBeLessThan(3);
    });

    test.each([
      [7, KEY],
      [7, 'text', KEY],
      [601, KEY],
      [601, 'text', KEY],
    ])('gcra: a lot has no room beside the parts of a us with %d actions', async (max, ...keys) => {
      const policy = policyOf('gcra', window(MINUTE, max));
      await script.redis.set(KEY, '-5800000000000009999'); // 2e15, by limits without parts
      await script.redis.set('text', 'x'); // the general way is gone from here on
      const [sha1, , , ...words] = argumentsOf(policy, 'attempt', 'full', 2e15, 1);
      for (let i = 1; i < 7; i++) {
        const reply = await script.redis.evalsha(sha1, keys.length, ...keys, ...words);
        expect(reply.at(-9)).toBe(0);
        expect(reply.at(-2)).toBe(i + 1);
        expect(await script.redis.strlen(KEY)).toBeLessThanOrEqual(20);
        if (i < 6) continue;
        expect(await refund(policy, reply.slice(-9), 2e15)).toBe(1);
        expect((await peek(policy, 2e15, 0))[7]).toBe(i);
      }
    });

    test.each([[KEY], ['text', KEY]])(
      'gcra: no integers of many actions a second (%s)',
      async (...keys) => {
        const policy = policyOf('gcra', window(1_000_000, 2000));
        const [sha1, , , ...words] = argumentsOf(policy, 'attempt', 'brief', 2e15, 1);
        const numbers = new Set();
        for (const number of ['-5800000000000000001', '-5800000000700000001']) {
          await script.redis.set(KEY, number);
          await script.redis.set('text', 'x');
          expect((await script.redis.evalsha(sha1, keys.length, ...keys, ...words)).at(-1)).toBe(0);
          expect(await script.redis.strlen(KEY)).toBe(18);
          const next = await attempt(policy, 2e15);
          numbers.add(next[6]);
          expect(await refund(policy, next, 2e15)).toBe(1);
        }
        expect(numbers.size).toBe(2);
      },
    );

    test.each([
      ['fuller', -10, 2, 10],
      ['fuller from empty', 10, 1, MINUTE / 3],
    ])('gcra: a bucket gets %s in the general way', async (_, since, used, reset) => {
      const policy = policyOf('gcra', window(MINUTE, 3));
      await script.redis.set(KEY, '-5800000000000070001'); // 2e15 + 7
      await script.redis.set('text', 'x');
      const [sha1, , , ...words] = argumentsOf(policy, 'attempt', 'full', 2e15 + 7 + since, 1);
      const reply = await script.redis.evalsha(sha1, 2, 'text', KEY, ...words);
      expect(reply.slice(-2)).toEqual([used, reset]);
      expect(await refund(policy, reply.slice(-9), 2e15 + 7 + since)).toBe(1);
    });

    test('gcra rounds parts of a us up that are not its own', async () => {
      await attempt(policyOf('gcra', window(998_000, 999)), START_US); // 998 us and 998 of 999 parts
      const policy = policyOf('gcra', window(MINUTE, 3));
      expect((await peek(policy, START_US, 0)).slice(7)).toEqual([1, 999]);
      expect((await attempt(policy, START_US)).slice(7)).toEqual([2, 999]);
    });

    test('gcra is exact by a clock that is far behind', async () => {
      const policy = policyOf('gcra', window(MINUTE, 7));
      for (let units = 0; units < 7; units++) {
        await script.redis.set(KEY, `-580000000000001000${units}`); // 2e15 + 1 us
        const timeLeft = 2e15 - 4 - Math.floor((6 * MINUTE - units) / 7);
        expect((await attempt(policy, 5)).slice(0, 2)).toEqual([1, timeLeft]);
      }
    });

    test('a block is dropped with blockFor', async () => {
      for (const algorithm of ALGORITHMS) {
        const policy = policyOf(algorithm, { ...window(1_000_000, 1), blockFor: [100 * MINUTE] });
        await attempt(policy, START_US);
        await attempt(policy, START_US);
        const later = START_US + 2_000_000;
        expect((await peek(policy, later))[0]).toBe(4);
        expect((await attempt({ ...policy, blockFor: [] }, later))[0]).toBe(0);
        await script.redis.flushall();
      }
    });

    test('a log that refusals have cut still says so where it grows again', async () => {
      const policy = policyOf(LOG, { countBlocked: true });
      for (let i = 0; i < 5; i++) await run(policy, 'attempt', 'brief', START_US + i, 1);
      const larger = { ...policy, ...window(MINUTE, 5) };
      expect(await run(larger, 'attempt', 'brief', START_US + 5, 1)).toEqual([0]);
      expect(await script.redis.strlen(KEY)).toBe(17 + 3 * 4);
      expect((await script.redis.getBuffer(KEY))[0]).toBe(0x80 + 4);
    });

    test('a block that begins on a log without one is seen in the same call', async () => {
      for (let i = 0; i < 3; i++) await attempt(policyOf(LOG), START_US);
      const policy = policyOf(LOG, { blockFor: [1_000_000] });
      const keys = [KEY, KEY];
      const [sha1, , , ...words] = argumentsOf(policy, attemptOn(keys), 'full', START_US + 1, 1);
      const reply = await script.redis.evalsha(sha1, keys.length, ...keys, ...words);
      expect([reply[0], reply[9]]).toEqual([1, 4]);
    });
  });
});
