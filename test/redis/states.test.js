// What the scripts keep of an id: how many bytes, for how long, and what becomes of it under other limits.
'use strict';

const Redis = require('ioredis');
const { ALGORITHMS } = require('../../lib/algorithms');
const { SCRIPTS } = require('../../lib/redis/script');
const { startRedis } = require('../support/redis-server');

const START_US = 1_700_000_000_000_001;
const KEY = 'api{0123456789abcdef}';
const MINUTE = 60_000_000;
const LOG = 'sliding-window-log';
const OF_FRAME = ALGORITHMS.filter((algorithm) => algorithm !== LOG);

let server;
let redis;

const policyOf = (algorithm, changes) => ({
  algorithm,
  countBlocked: false,
  minDifference: 0,
  blockFor: [],
  limits: [{ interval: MINUTE, maxInInterval: 3 }],
  ...changes,
});

const window = (interval, maxInInterval) => ({ limits: [{ interval, maxInInterval }] });

function argumentsOf(policy, ...words) {
  const { algorithm, countBlocked, minDifference, blockFor, limits } = policy;
  const windows = limits.flatMap(({ interval, maxInInterval }) => [interval, maxInInterval]);
  const { sha1 } = SCRIPTS[algorithm];
  const told = [countBlocked ? 1 : 0, minDifference, blockFor.join(), ...windows];
  return [sha1, 1, KEY, ...words, ...told];
}

const run = (policy, ...words) => redis.evalsha(...argumentsOf(policy, ...words));

const attempt = (policy, now = '', cost = 1) => run(policy, 'attempt', 'full', now, cost);
const peek = (policy, now = '', cost = 1) => run(policy, 'peek', 'full', now, cost);

async function refund(policy, reply, now = '', cost = 1) {
  const [found] = await run(policy, 'refund', `${reply[5]},${reply[6]}`, now, cost);
  return found;
}

const ttl = () => redis.pttl(KEY);

/** Policies that lead to each form of a state. */
const FORMS = [
  ['a single window', {}],
  ['minDifference', { minDifference: 5_000_000 }],
  ['blocks', { blockFor: [1_000_000, 3_600_000_000] }],
  [
    'two windows',
    {
      limits: [
        { interval: MINUTE, maxInInterval: 3 },
        { interval: 1000 * MINUTE, maxInInterval: 9 },
      ],
    },
  ],
  ['wide counts', window(MINUTE, 2 ** 53 - 1)],
];

const EACH_FORM = ALGORITHMS.flatMap((algorithm) =>
  FORMS.map(([name, changes]) => [algorithm, name, policyOf(algorithm, changes)]),
);

/** Windows so long that none ends while a test lasts that goes by the clock of the server. */
function lengthened({ limits, ...policy }) {
  const longer = ({ interval, ...limit }) => ({ ...limit, interval: interval * 40_000 });
  return { ...policy, limits: limits.map(longer) };
}

/** By a given time and by the server's own, unless all leaks there before it can be seen. */
function byEachClock(policy) {
  const leaksAtOnce = policy.algorithm === 'gcra' && policy.limits[0].maxInInterval > 1e6;
  const given = [policy, START_US];
  return leaksAtOnce ? [given] : [given, [lengthened(policy), '']];
}

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

beforeAll(async () => {
  server = await startRedis();
});

describe('the state of an id', () => {
  beforeAll(async () => {
    redis = new Redis(server.url).on('error', () => {});
    for (const { source } of Object.values(SCRIPTS)) await redis.script('LOAD', source);
  });
  afterEach(() => redis.flushall());
  afterAll(() => redis.disconnect());

  /** A second longer, and a log up to three. */
  const expectTtlOf = async (lifetime, algorithm) => {
    const left = await ttl();
    const spare = algorithm === LOG ? 3000 : 1000;
    expect(left).toBeLessThanOrEqual(Math.ceil(lifetime / 1000) + spare);
    expect(left).toBeGreaterThan(lifetime / 1000);
  };

  const usageOf = async (text) => {
    await redis.set(KEY, text);
    const usage = await redis.memory('USAGE', KEY);
    await redis.del(KEY);
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
        expect(await redis.strlen(KEY)).toBe(text.length);
      }
      await peek(policy, now);
      await refund(policy, await attempt(policy, now, cost), now, cost);
      expect(await redis.strlen(KEY)).toBe(text.length);
      expect(await redis.memory('USAGE', KEY)).toBe(most);
      await redis.flushall();
    }
  });

  test('of gcra takes more of it from where an older action is taken back until all has leaked', async () => {
    const policy = policyOf('gcra', window(MINUTE, 5));
    const first = await attempt(policy);
    await attempt(policy);
    expect(await redis.strlen(KEY)).toBe(20);
    expect(await refund(policy, first)).toBe(1);
    expect(await redis.strlen(KEY)).toBe(12);
    const last = await attempt(policy);
    expect([last[7], await redis.strlen(KEY)]).toEqual([2, 12]);
    expect(await refund(policy, last)).toBe(1);
    const bytes = await redis.getBuffer(KEY);
    bytes.writeIntLE(bytes.readIntLE(6, 6) - (2 * MINUTE) / 64, 6, 6);
    await redis.set(KEY, bytes);
    expect((await attempt(policy))[7]).toBe(1);
    expect(await redis.strlen(KEY)).toBe(20);
    expect(await refund(policy, last)).toBe(0);
  });

  test.each([2n ** 60n, -(2n ** 60n)])(
    'of sliding-window-counter at %s us is begun anew',
    async (moment) => {
      const bytes = Buffer.alloc(19);
      bytes.writeUInt8(0xb1);
      bytes.writeBigInt64LE(moment, 5);
      bytes.writeUInt8(3, 13); // actions
      await redis.set(KEY, bytes);
      const reply = await attempt(policyOf('sliding-window-counter'), START_US);
      expect([reply[0], reply[5], reply[7]]).toEqual([0, START_US, 1]);
    },
  );

  test('of sliding-window-counter has room for any incarnation', async () => {
    const bytes = Buffer.alloc(19);
    bytes.writeUInt8(0xb1);
    bytes.writeUInt32LE(2 ** 32 - 1, 1);
    bytes.writeBigInt64LE(BigInt(START_US), 5);
    bytes.writeUInt8(1, 13); // actions
    await redis.set(KEY, bytes);
    const policy = policyOf('sliding-window-counter');
    for (const used of [2, 3]) expect((await attempt(policy, START_US))[7]).toBe(used);
    expect(await redis.strlen(KEY)).toBe(12);
  });

  test('of fixed-window is an integer in the next window too', async () => {
    await redis.set(KEY, '-1700000000000000003');
    expect((await attempt(policyOf('fixed-window')))[7]).toBe(1);
    expect(await redis.strlen(KEY)).toBe(20);
  });

  test.each([
    ['fixed-window', 999, 12],
    ['sliding-window-counter', 1023, 19],
  ])('of %s takes more of it above %d actions', async (algorithm, most, length) => {
    const policy = policyOf(algorithm, window(40_000 * MINUTE, 2000));
    const first = await attempt(policy, '', most - 1);
    await attempt(policy);
    const before = await redis.strlen(KEY);
    expect(before).toBe(algorithm === 'fixed-window' ? 20 : 12);
    const next = await attempt(policy);
    expect(await redis.strlen(KEY)).toBe(length);
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
    await redis.set(KEY, integer);
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
    const full = await redis.strlen(KEY);
    for (let i = 0; i < 50; i++) await attempt(policy, START_US + 4 + i);
    const grown = policy.algorithm === LOG && policy.limits.at(-1).maxInInterval > 4;
    if (!grown) expect(await redis.strlen(KEY)).toBe(full);
    expect(await redis.strlen(KEY)).toBeLessThan(300);
  });

  test.each(EACH_FORM)('of %s with %s lives as long as it matters', async (_a, _f, policy) => {
    await attempt(policy);
    await expectTtlOf(lifetimeOf(policy), policy.algorithm);
    await redis.pexpire(KEY, 1_000_000_000);
    const reply = await attempt(policy);
    if (reply[0] !== 0) return;
    const factor = policy.algorithm === 'gcra' ? 2 : 1;
    expect(await ttl()).toBeLessThanOrEqual((factor * lifetimeOf(policy)) / 1000 + 3001);
  });

  test.each(EACH_FORM)('of %s with %s gets a lost time to live back', async (_a, _f, policy) => {
    const reply = await attempt(policy, START_US);
    const most = Math.min(...policy.limits.map(({ maxInInterval }) => maxInInterval));
    for (let i = 0; i < 2; i++) {
      await redis.persist(KEY);
      expect((await attempt(policy, START_US, most))[0]).not.toBe(0);
      expect(await ttl()).toBeGreaterThan(0);
    }
    await redis.persist(KEY);
    expect(await refund(policy, reply, START_US)).toBe(1);
    if (await redis.exists(KEY)) expect(await ttl()).toBeGreaterThan(0);
  });

  test.each(ALGORITHMS)('of %s lives while its block and the memory of it matter', async (name) => {
    const policy = policyOf(name, { ...window(MINUTE, 1), blockFor: [3 * MINUTE, 100 * MINUTE] });
    const now = START_US;
    const first = await attempt(policy, now);
    const [blockedBy, timeLeft] = await attempt(policy, now);
    expect([blockedBy, timeLeft]).toEqual([1, 3 * MINUTE]);
    await expectTtlOf(4 * MINUTE, name);
    for (let i = 0; i < 3; i++) {
      await redis.persist(KEY);
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
    const words = ['attempt', 'brief', START_US, 1, 0, 0, '', MINUTE, 3];
    const replies = await redis.evalsha(sha1, keys.length, ...keys, ...words);
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
        const before = await redis.getBuffer(KEY);
        expect(await refund(next, [0, 0, 0, 0, 0, START_US, 0], now)).toBe(0);
        expect(await redis.getBuffer(KEY)).toEqual(before);
        const [blockedBy, , , , , at] = await attempt(next, now);
        expect(blockedBy).toBe(0);
        expect(at).toBeGreaterThanOrEqual(asked[5]);
        expect(at).toBeLessThan(asked[5] + MINUTE);
        expect((await peek(next, now, 0))[7]).toBe(1);
        await redis.del(KEY);
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
      const unitsOf = async () => (await redis.getBuffer(KEY)).readUInt16LE(35);
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
      await redis.set(KEY, '-6000000000000000999'); // 2e15, by limits without parts
      await redis.set('text', 'x'); // the general way is gone from here on
      const [sha1, , , ...words] = argumentsOf(policy, 'attempt', 'full', 2e15, 1);
      for (let i = 1; i < 7; i++) {
        const reply = await redis.evalsha(sha1, keys.length, ...keys, ...words);
        expect(reply.at(-9)).toBe(0);
        expect(reply.at(-2)).toBe(i + 1);
        expect(await redis.strlen(KEY)).toBeLessThanOrEqual(20);
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
          await redis.set(KEY, number);
          await redis.set('text', 'x');
          expect((await redis.evalsha(sha1, keys.length, ...keys, ...words)).at(-1)).toBe(0);
          expect(await redis.strlen(KEY)).toBe(12);
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
      await redis.set(KEY, '-6000000000000007001'); // 2e15 + 7
      await redis.set('text', 'x');
      const [sha1, , , ...words] = argumentsOf(policy, 'attempt', 'full', 2e15 + 7 + since, 1);
      const reply = await redis.evalsha(sha1, 2, 'text', KEY, ...words);
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
        await redis.set(KEY, `-600000000000000100${units}`); // 2e15 + 1 us
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
        await redis.flushall();
      }
    });
  });

  describe('that is none', () => {
    const bytes = (...numbers) => Buffer.from(numbers);
    const zeros = (length) => Buffer.alloc(length);
    const texts = [
      '',
      'x',
      '12',
      '1700000000',
      '-1',
      '1795338785335952999',
      '-0999999999999999999',
      '-9000000000000000000',
      '-9223372036854775808',
      '12345678901234567890',
      '-1.79533878533595e18',
      '-1.70000000000000e18',
      '-50000000000000000e2',
      '-0x01000000000000001',
      '-179533878533595299x',
      '-17953387853359 2999',
      '- 795338785335952999',
      'nan(abcdefghijklmno)',
      'Hello, World',
      'Dangerous goods, really!!',
      'Ünïcödé text ',
      '{"count":1,"reset":1700000000000}',
      bytes(0xb0),
      Buffer.concat([bytes(0xb0), zeros(10)]),
      Buffer.concat([bytes(0xb8), zeros(40)]),
      Buffer.concat([bytes(0xba, 1, 0), Buffer.alloc(36, 0x7f)]),
      // No moment of an attempt, none of a block, and windows that are not of one size.
      Buffer.concat([bytes(0xba, 1), zeros(9), Buffer.alloc(8, 0x7f), zeros(18)]),
      Buffer.concat([bytes(0xba, 1), zeros(17), Buffer.alloc(8, 0x7f), zeros(10)]),
      Buffer.concat([bytes(0xba, 2), zeros(25 + 15)]),
      Buffer.concat([bytes(0x44), Buffer.alloc(17, 0x20)]),
      Buffer.concat([bytes(0xff, 0xfe), zeros(10)]),
    ];
    const others = {
      list: () => redis.rpush(KEY, 'a'),
      hash: () => redis.hset(KEY, 'a', 'b'),
      set: () => redis.sadd(KEY, 'a'),
      'sorted set': () => redis.zadd(KEY, 1, 'a'),
    };
    describe.each(EACH_FORM)('%s with %s', (algorithm, _form, policy) => {
      test('is left as it is', async () => {
        // A long log cannot tell an empty text from no key before it writes.
        const seen = algorithm === LOG ? texts.slice(1) : texts;
        const makers = [
          ...seen.map((text) => () => redis.set(KEY, text)),
          ...Object.values(others),
        ];
        for (const make of makers) {
          await make();
          const before = await redis.dumpBuffer(KEY);
          for (const words of [
            ['attempt', 'brief', '', 1],
            ['attempt', 'full', START_US, 1],
            ['peek', 'brief', '', 1],
            ['refund', '5,5', '', 1],
          ]) {
            const [first] = await run(policy, ...words);
            expect([words[0], first]).toEqual([words[0], -1]);
          }
          expect(await redis.dumpBuffer(KEY)).toEqual(before);
          expect(await ttl()).toBe(-1);
          await redis.del(KEY);
        }
      });
    });

    test.each(EACH_FORM)(
      '%s with %s: the other keys of a call are judged',
      async (_a, _f, policy) => {
        const keys = [KEY, 'other', KEY, 'other'];
        for (const [detail, length] of [
          ['brief', 1],
          ['full', 7 + 2 * policy.limits.length],
        ]) {
          await redis.rpush(KEY, 'a');
          const [sha1, , , ...words] = argumentsOf(policy, 'attempt', detail, START_US, 1);
          const reply = await redis.evalsha(sha1, keys.length, ...keys, ...words);
          expect(reply).toHaveLength(keys.length * length);
          const firsts = keys.map((_, i) => reply[i * length]);
          expect(firsts).toEqual([-1, 0, -1, policy.minDifference > 0 ? expect.any(Number) : 0]);
          expect(await redis.lrange(KEY, 0, -1)).toEqual(['a']);
          await redis.flushall();
        }
      },
    );
  });

  describe('that may not be read', () => {
    const some = EACH_FORM.filter(([algorithm]) => algorithm !== LOG);
    test.each(some)('of %s with %s: that is an error', async (_a, _f, policy) => {
      await redis.call('ACL', 'SETUSER', 'unread', 'on', 'nopass', '~*', '+@all', '-get');
      const other = new Redis(server.url, { username: 'unread', password: 'any' });
      try {
        for (const operation of ['attempt', 'peek']) {
          const words = argumentsOf(policy, operation, 'brief', START_US, 1);
          await expect(other.evalsha(...words)).rejects.toThrow(/permissions|can't run/);
        }
      } finally {
        other.disconnect();
      }
    });
  });

  describe('refunds', () => {
    test.each(EACH_FORM)('%s with %s: not what was cleared', async (_a, _f, each) => {
      for (const [policy, now] of [...byEachClock(each), ...byEachClock(each)]) {
        const cleared = await attempt(policy, now);
        await redis.del(KEY);
        const again = await attempt(policy, now);
        expect(await refund(policy, cleared, now)).toBe(0);
        expect((await peek(policy, now, 0))[7]).toBe(1);
        expect(await refund(policy, again, now)).toBe(1);
        expect((await peek(policy, now, 0))[7]).toBe(0);
        await redis.del(KEY);
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
        await redis.del(KEY);
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
            await redis.flushall();
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
