// What becomes of a state under other limits and another algorithm.
'use strict';

const { ALGORITHMS } = require('../../lib/algorithms');
const { attemptOn } = require('../../lib/redis/script');
const {
  argumentsOf,
  byEachClock,
  EACH_FORM,
  FORMS,
  KEY,
  LOG,
  MINUTE,
  OF_FRAME,
  policyOf,
  START_US,
  window,
  scriptsOnRedis,
} = require('../support/scripts-on-redis');

describe('a state', () => {
  const script = scriptsOnRedis();
  const { attempt, peek, refund, run } = script;

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
      const unitsOf = async () => (await script.redis.getBuffer(KEY)).readUInt16LE(35);
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
      await script.redis.set(KEY, '-6000000000000000999'); // 2e15, by limits without parts
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
        const lives = new Set();
        for (const number of ['-6000000000000000001', '-6000000000070000001']) {
          await script.redis.set(KEY, number);
          await script.redis.set('text', 'x');
          expect((await script.redis.evalsha(sha1, keys.length, ...keys, ...words)).at(-1)).toBe(0);
          expect(await script.redis.strlen(KEY)).toBe(12);
          const next = await attempt(policy, 2e15);
          lives.add(next[6]);
          expect(await refund(policy, next, 2e15)).toBe(1);
        }
        expect(lives.size).toBe(2);
      },
    );

    test.each([
      ['fuller', -10, 2, 10],
      ['fuller from empty', 10, 1, MINUTE / 3],
    ])('gcra: a bucket gets %s in the general way', async (_, since, used, reset) => {
      const policy = policyOf('gcra', window(MINUTE, 3));
      await script.redis.set(KEY, '-6000000000000007001'); // 2e15 + 7
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
        await script.redis.set(KEY, `-600000000000000100${units}`); // 2e15 + 1 us
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
      expect(await script.redis.strlen(KEY)).toBe(18 + 3 * 4);
      expect((await script.redis.getBuffer(KEY))[1]).toBe(1);
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
