// The scripts with limits and calendars of calls, and records: states, also of earlier releases, and times to live.
'use strict';

const { ALGORITHMS } = require('../../lib/options/algorithms');
const {
  KEY,
  LOG,
  MINUTE,
  policyOf,
  scriptsOnRedis,
  START_US,
  window,
} = require('../support/scripts-on-redis');

const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WRONG_TIME = -2;
const now = START_US;

/** Days that begin at START_US and `shift` later; the first is that of the time of the call. */
const daysFrom = (start, ordinal) => [
  ...[ordinal - 1, start - DAY],
  ...[ordinal, start],
  ...[ordinal + 1, start + DAY, start + 2 * DAY],
];
const TODAY = daysFrom(now, 19_000);
const dayPolicy = (max, around = TODAY, more = {}) =>
  policyOf('fixed-window', { ...window(-50 * HOUR, max), around, ...more });

describe('the scripts', () => {
  const script = scriptsOnRedis();
  const { attempt, block, peek, refund, run, ttl } = script;
  const bytesOf = () => script.redis.getBuffer(KEY);
  const record = (policy, at, cost = 1) => run(policy, 'record', 'full', at, cost);
  const usedOf = async (policy, at) => (await peek(policy, at, 0))[7];
  const secondsLeft = async () => (await ttl()) / 1000;

  describe('states of gcra by earlier releases', () => {
    const at = 2_000_000_000_000_001;
    const seven = policyOf('gcra', window(MINUTE, 7));
    const PLAIN = Buffer.from('a5ffc686514a94924afd1a07000100020000', 'hex');

    // Kills: a form that is no longer read; a fraction of a us that is dropped.
    test.each([
      ['an integer', seven, '-5800000171428586700'],
      ['a single window', seven, PLAIN],
      [
        'two windows',
        { ...seven, limits: [...seven.limits, ...window(10 * MINUTE, 9).limits] },
        Buffer.from(
          'a4ffc6865101008d49fd1a07000200004a94924afd1a0700010056817f51fd1a07000100',
          'hex',
        ),
      ],
      [
        'a block',
        seven,
        Buffer.from(
          'acffc6865100000000000000c081c3564bfd1a0700000200004a94924afd1a07000100',
          'hex',
        ),
      ],
    ])('are read: %s', async (_, policy, state) => {
      await script.redis.set(KEY, state);
      // A us later: fractions were rounded up.
      const reply = await peek(policy, at + 1, 0);
      for (const w of policy.limits.keys()) expect(reply[7 + 2 * w]).toBe(2);
      const moments = [at + 17_142_857, at + 17_142_858];
      expect([await usedOf(policy, moments[0]), await usedOf(policy, moments[1])]).toEqual([1, 0]);
      expect(await block(policy, 0, at)).toBe(1);
      expect((await attempt(policy, at + 1))[0]).toBe(0);
      expect((await bytesOf())[0]).toBe(0xb1);
    });

    test('are read as if under the limits of the call, and are under them from an action on', async () => {
      await script.redis.set(KEY, PLAIN);
      const fourteen = policyOf('gcra', window(MINUTE, 14));
      expect(await usedOf(fourteen, at)).toBe(4 + 1); // 17.14 s
      await block(seven, MINUTE, at);
      expect(await usedOf(fourteen, at)).toBe(4 + 1);
      await block(seven, 0, at);
      await attempt(fourteen, at);
      expect(await usedOf(policyOf('gcra', window(MINUTE, 28)), at)).toBe(6);
      expect(await usedOf(seven, at)).toBe(6);
    });
  });

  describe('gcra', () => {
    const limited = (max, keep = 0) => policyOf('gcra', { ...window(MINUTE, max), keep });

    // Kills: a state with a block that was written under the limits of a refusal.
    test('a refusal that starts a block, and a block, leave the limit of the actions', async () => {
      for (let i = 0; i < 4; i++) await attempt(limited(10), now);
      const ofActions = async () => (await bytesOf()).subarray(-24).toString('hex');
      const before = await ofActions();
      expect((await attempt({ ...limited(2), blockFor: [MINUTE] }, now))[0]).toBe(1);
      expect(await ofActions()).toBe(before);
      await block(limited(100), 2 * MINUTE, now);
      expect(await ofActions()).toBe(before);
      // What is recorded in a block changes it.
      await record(limited(20), now);
      expect(await usedOf(limited(20), now)).toBe(5);
    });

    // Kills: a limit that is kept from the key before.
    test('a refusal that starts a block leaves that of each key in a batch', async () => {
      const keys = ['one', 'two'];
      const actionsOf = async (key) => (await script.redis.getBuffer(key)).subarray(-24);
      await script.runOn(['one'], limited(10), 'attempt', 'brief', now, 4);
      await script.runOn(['two'], limited(2), 'attempt', 'brief', now, 2);
      const before = await Promise.all(keys.map(actionsOf));
      const policy = { ...limited(2), blockFor: [MINUTE] };
      expect(await script.runOn(keys, policy, 'attempt', 'brief', now, 1)).not.toContain(0);
      expect(await Promise.all(keys.map(actionsOf))).toEqual(before);
    });

    test('tells actions apart whose costs have more than 24 bits', async () => {
      const large = policyOf('gcra', window(DAY, 2 ** 27));
      const first = await attempt(large, now, 2 ** 25);
      await attempt(large, now);
      expect(await refund(large, first, now, 2 ** 25)).toBe(1);
      expect(await usedOf(large, now)).toBe(1);
    });

    test('goes by its newest action where the clock steps back', async () => {
      const first = await attempt(limited(10), now);
      await attempt(limited(10), now + 6_000_000);
      await attempt(limited(10), now);
      expect((await bytesOf()).readBigInt64LE(5)).toBe(BigInt(now + 6_000_000));
      expect(await refund(limited(10), first, now)).toBe(0);
    });

    test('settles by the limit that an attempt was recorded under', async () => {
      const first = await attempt(limited(10), now, 4);
      expect(await refund(limited(100), first, now, 4)).toBe(1);
      expect(await usedOf(limited(10), now)).toBe(0);
      const second = await attempt(limited(100), now, 4);
      // By then it has leaked under a limit of 100, but not under 10.
      expect(await refund(limited(10), second, now + 3_000_000, 4)).toBe(0);
    });

    test('lives for the interval where the limits of a call brought it about', async () => {
      await attempt(limited(60), now);
      expect(await secondsLeft()).toBeLessThan(3);
      await attempt(limited(60, 10), now);
      expect(await secondsLeft()).toBeGreaterThan(60);
      expect(await secondsLeft()).toBeLessThan(62);
      const two = { ...limited(60, 10), minDifference: 1 }; // on the path for any policy
      const last = await attempt(two, now + 1);
      expect(await secondsLeft()).toBeGreaterThan(60);
      expect(await refund(limited(60), last, now + 1)).toBe(1);
      expect(await secondsLeft()).toBeGreaterThan(60);
    });
  });

  describe('a log', () => {
    // Kills: the path for one window, which makes room in a full log.
    test('has room for as many actions as the limiter allows, under lower limits of calls', async () => {
      const counting = (max) =>
        policyOf(LOG, { ...window(MINUTE, max), keep: 5, countBlocked: true });
      for (let i = 0; i < 6; i++) await attempt(counting(2), now + i);
      expect((await peek(counting(9), now + 6, 0))[7]).toBe(5);
      expect((await peek(counting(2), now + 6, 0))[7]).toBe(2);
    });

    // Kills: an allowed attempt under a lower limit that drops what the newest action before it needs.
    test.each([
      [2, 3],
      [1, 2],
    ])('under a limit of %d keeps %d actions of two windows', async (max, kept) => {
      const limited = policyOf(LOG, { ...window(MINUTE, max), keep: 5 });
      if (max === 2) await attempt(limited, now);
      await attempt(limited, now + 1);
      expect((await attempt(limited, now + 1 + MINUTE - (max === 2 ? 1 : 0)))[0]).toBe(0);
      expect(await script.redis.strlen(KEY)).toBe(17 + 4 * (kept - 1));
    });

    // Kills: a record that pushes actions out of a full log, which then looks as if it had all.
    test('says that a record displaced actions', async () => {
      const limited = policyOf(LOG);
      for (let i = 0; i < 3; i++) await attempt(limited, now + i);
      expect((await record(limited, now + 3, 1021))[7]).toBe(1024);
      expect((await bytesOf())[0]).toBe(0x80 + 16); // a ring
      expect((await record(limited, now + 3))[7]).toBe(1024);
      expect((await bytesOf())[0]).toBe(0x80 + 16 + 4);
    });
  });

  describe('calendar windows', () => {
    test('are known by their ordinals, and where they end', async () => {
      expect((await attempt(dayPolicy(2), now + HOUR)).slice(7)).toEqual([1, DAY - HOUR]);
      const state = await bytesOf();
      expect([state[0], state.length, state.readInt32LE(13 + 16)]).toEqual([0xb0, 13 + 27, 19_000]);
      // A window of the same ordinal that began after that end.
      expect(await usedOf(dayPolicy(2, daysFrom(now + DAY, 19_000)), now + DAY)).toBe(0);
    });

    // Kills: a first window that is chosen for all times, or a last one; a bound that belongs to the other side.
    test.each(['attempt', 'peek', 'record'])(
      '%s outside of them is an answer of its own',
      async (operation) => {
        const policy = dayPolicy(5);
        for (const detail of ['brief', 'full']) {
          for (const at of [now - DAY - 1, now + 2 * DAY]) {
            const reply = await run(policy, operation, detail, at, 1);
            expect(new Set(reply)).toEqual(new Set([WRONG_TIME]));
          }
          const inside = [now - DAY, now - 1, now, now + DAY, now + 2 * DAY - 1];
          for (const at of inside) expect((await run(policy, operation, detail, at, 1))[0]).toBe(0);
          await script.redis.del(KEY);
        }
        await run(policy, operation, 'full', now + 2 * DAY, 1);
        expect(await script.redis.exists(KEY)).toBe(0);
        expect(await block(policy, MINUTE, now + 9 * DAY)).toBe(1);
      },
    );

    // Kills: a key that ends with its window, which may go on in another zone.
    test('live as long as the longest window may matter, also beside intervals', async () => {
      const policy = dayPolicy(2);
      const longest = Math.abs(policy.limits[0].interval);
      await attempt(policy, now + 20 * HOUR);
      expect(await secondsLeft()).toBeGreaterThan(longest / 1e6);
      expect(await secondsLeft()).toBeLessThan(longest / 1e6 + 2);
      await script.redis.del(KEY);
      const limits = [...policy.limits, { interval: 90 * HOUR, maxInInterval: 9 }];
      await attempt({ ...policy, limits, minDifference: 1 }, now);
      expect(await secondsLeft()).toBeGreaterThan((90 * HOUR) / 1e6);
      expect(await secondsLeft()).toBeLessThan((90 * HOUR) / 1e6 + 2);
    });

    // Kills: a month that a window with an interval waits for.
    test('of another kind count nothing', async () => {
      const interval = { interval: HOUR, maxInInterval: 2 };
      for (let i = 0; i < 2; i++) await attempt(dayPolicy(2), now);
      expect((await attempt(policyOf('fixed-window', interval), now))[0]).toBe(0);
      await script.redis.del(KEY);
      const mixed = { ...dayPolicy(2), limits: [...dayPolicy(2).limits, interval] };
      for (let i = 0; i < 2; i++) await attempt(mixed, now);
      expect((await attempt(mixed, now))[0]).toBe(1);
    });

    test('keep the counts of intervals when they join them, and settle what they counted', async () => {
      const interval = { interval: 1000 * HOUR, maxInInterval: 9 };
      const before = policyOf('fixed-window', { limits: [interval, interval] });
      await attempt(before, now, 3);
      const limits = [interval, ...dayPolicy(5).limits];
      const both = { ...dayPolicy(5), limits };
      const joined = await peek(both, now, 0);
      expect([joined[7], joined[9]]).toEqual([3, 0]);
      const made = await attempt(both, now, 2);
      expect([made[7], made[9]]).toEqual([5, 2]);
      expect(await refund(both, made, now, 2)).toBe(1);
      const reply = await peek(both, now, 0);
      expect([reply[7], reply[9]]).toEqual([3, 0]);
      expect(await refund(both, made, now + DAY, 2)).toBe(1); // of the interval alone
      expect(await usedOf(before, now + 1)).toBe(1);
    });
  });

  test.each(ALGORITHMS)('%s records the largest costs, again and again', async (algorithm) => {
    const policy = policyOf(algorithm, window(MINUTE, 2000));
    const large = 2 ** 31 - 1;
    for (let i = 1; i <= 3; i++) {
      const [reason, , , , wait, , , used] = await record(policy, now, large);
      expect([reason, used]).toEqual([0, i * large]);
      expect(wait).toBeGreaterThan(0);
    }
    const [, , , , longest] = await record({ ...policy, ...window(1e15, 2) }, now, large);
    expect(longest).toBeLessThanOrEqual(2 ** 53);
  });
});
