// What is in Redis: keys, their time to live, and states that outlive a change of limits.
'use strict';

const RateLimiter = require('../..');
const { handClock } = require('../support/set-up');
const { REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const {
  FORMS,
  KEY,
  MINUTE,
  OF_FRAME,
  policyOf,
  scriptsOnRedis,
  START_US,
  window,
} = require('../support/scripts-on-redis');

const { using, closeAll } = openings();
const server = redisForTests();
let redis;
let namespaces = 0;

describe('keys', () => {
  beforeAll(() => {
    redis = using(REDIS_CLIENTS.ioredis.open(server.url));
  });
  afterAll(closeAll);

  beforeEach(async () => {
    namespaces += 1;
    await server.command('FLUSHALL');
  });

  const keyOf = (id) => `keys-${namespaces}{${id}}`;

  const limiterWith = (options) =>
    RateLimiter({ redis, namespace: `keys-${namespaces}`, countBlocked: false, ...options });

  test('are namespace{id}, one for each id, whatever the windows', async () => {
    const limits = [1000, 60_000, 86_400_000].map((interval) => ({ interval, maxInInterval: 9 }));
    const limiter = limiterWith({ limits });
    await limiter.attemptMany(['a', 'ü}', '', 5]);
    const keys = await server.command('KEYS', '*');
    expect(keys.sort()).toEqual(['', '5', 'a', 'ü}'].map(keyOf).sort());
  });

  test('begin with a random namespace where none is given', async () => {
    const limiters = [1, 2].map(() => RateLimiter({ redis, interval: 1000, maxInInterval: 1 }));
    expect([await limiters[0]('a'), await limiters[1]('a')]).toEqual([0, 0]);
    const keys = await server.command('KEYS', '*');
    expect(keys).toHaveLength(2);
    for (const key of keys) expect(key).toMatch(/^rate-limiter-[\w-]{8}\{a\}$/);
  });

  // Kills: a ring of which a part is written, and its expiry is not.
  test('of long logs without a time to live get one again', async () => {
    const limiter = limiterWith({ interval: 60_000, maxInInterval: 300 });
    await limiter.attempt('a', { cost: 299 });
    for (const call of [() => limiter('a'), () => limiter.attempt('a')]) {
      await server.command('PERSIST', keyOf('a'));
      await call();
      expect(await server.command('PTTL', keyOf('a'))).toBeGreaterThan(59_000);
    }
  });

  describe('in one batch', () => {
    const ids = Array.from({ length: 20 }, (_, i) => `id${i}`);
    const all = (ask) => Promise.all(ids.map((id) => ask(id)));
    const endOf = (id) => server.command('PEXPIRETIME', keyOf(id));
    const batches = (options) => limiterWith({ redis: server.url, countBlocked: true, ...options });

    /** Ends are told by the server's clock: no earlier than what a limit asks for from here on. */
    const startOf = async () => {
      const [seconds] = await server.command('TIME');
      return seconds * 1000;
    };

    test('keep their end where it is late enough, and their logs are right all the same', async () => {
      const half = 1_800_000;
      await all(batches({ interval: 2 * half, maxInInterval: 5 }));
      const ends = await all(endOf);
      const limiter = batches({ interval: half, maxInInterval: 5 });
      for (let i = 0; i < 8; i++) {
        const answers = await all(limiter);
        expect(answers.every((timeLeft) => timeLeft > 0)).toBe(i >= 4);
      }
      // But for the one that each call looks after.
      const kept = (await all(endOf)).filter((end, i) => end === ends[i]);
      expect(kept.length).toBeGreaterThan(0);
    });

    test.each([
      ['the first action', 1, {}],
      ['full logs', 6, {}],
      ['the first action and minDifference', 1, { minDifference: 1 }],
      ['full logs and minDifference', 6, { minDifference: 1 }],
    ])('live as long as the limit asks for that wrote last: %s', async (_, times, options) => {
      const short = batches({ ...options, interval: 1000, maxInInterval: 4 });
      for (let i = 0; i < times; i++) await all(short);
      const start = await startOf();
      await all(batches({ ...options, interval: 60_000, maxInInterval: 4 }));
      for (const end of await all(endOf)) expect(end).toBeGreaterThanOrEqual(start + 60_000);
    });

    test('get an end back that is as late as their logs say', async () => {
      const uncounted = { maxInInterval: 4, countBlocked: false };
      const [long, short] = [60_000, 10_000].map((interval) => batches({ ...uncounted, interval }));
      const start = await startOf();
      for (let i = 0; i < 4; i++) await all(long);
      await all((id) => server.command('PERSIST', keyOf(id)));
      for (let i = 0; i < 2000 && (await all(endOf)).includes(-1); i++) await all(short);
      for (const end of await all(endOf)) expect(end).toBeGreaterThanOrEqual(start + 60_000);
    });

    test.each(['sliding-window-log', 'fixed-window'])(
      'do not live longer for the block of another (%s)',
      async (algorithm) => {
        const limits = { interval: 60_000, maxInInterval: 1, blockFor: 3_600_000 };
        const limiter = limiterWith({ ...limits, algorithm });
        for (let i = 0; i < 2; i++) await limiter('a');
        await limiter.attemptMany(['a', 'b', 'a', 'c']);
        const left = (id) => server.command('PTTL', keyOf(id));
        expect(await left('a')).toBeGreaterThan(3_600_000);
        for (const id of ['b', 'c']) expect(await left(id)).toBeLessThanOrEqual(63_000);
      },
    );
  });

  describe('of logs whose limits change', () => {
    /** What `max` allows after `done` actions at one moment, half an interval later. */
    async function changeOf(before, after, done) {
      const time = handClock(1_700_000_000_000);
      const first = limiterWith({ clock: time.clock, ...before });
      await first.attempt('a', { cost: done });
      time.advance(Math.min(before.interval, after.interval) / 2);
      const second = limiterWith({ clock: time.clock, ...after });
      const { limits } = await second.peek('a');
      const wouldUse = done < after.maxInInterval ? done + 1 : done;
      expect(limits[0].used).toBe(wouldUse);
      let allowed = 0;
      while ((await second('a')) === 0) allowed += 1;
      expect(allowed).toBe(Math.max(0, after.maxInInterval - done));
      time.advance(after.interval);
      expect(await second('a')).toBe(0);
    }
    const minute = 60_000;
    const long = 2 * 3_600_000; // stamps of more than 4 bytes

    test.each([
      ['max up', [minute, 3], [minute, 6], 3],
      ['max down', [minute, 6], [minute, 3], 6],
      ['max down, a few done', [minute, 6], [minute, 3], 2],
      ['interval beyond 71 minutes', [minute, 4], [long, 4], 3],
      ['interval below 71 minutes', [long, 4], [minute, 4], 3],
      ['short to long form', [minute, 200], [minute, 258], 200],
      ['just short to just long', [minute, 257], [minute, 258], 257],
      ['long to short form', [minute, 258], [minute, 257], 258],
      ['long to short form, a few done', [minute, 300], [minute, 20], 10],
      ['all at once', [long, 300], [minute, 20], 15],
      ['all at once, back', [minute, 20], [long, 300], 15],
    ])('%s', (_what, [i1, m1], [i2, m2], done) =>
      changeOf({ interval: i1, maxInInterval: m1 }, { interval: i2, maxInInterval: m2 }, done),
    );
  });

  describe('under a prefix of the client', () => {
    test.each([
      ['ioredis', () => new (require('ioredis'))(server.url, { keyPrefix: 'app*:' })],
      ['ioredis-5', () => new (require('ioredis-5'))(server.url, { keyPrefix: 'app*:' })],
      ['redis-3', () => require('redis-3').createClient(server.url, { prefix: 'app*:' })],
    ])('%s', async (_name, open) => {
      const limiter = limiterWith({
        redis: using({ client: open() }),
        interval: 60_000,
        maxInInterval: 2,
      });
      await limiter.attemptMany(['a', 'b', 'a']);
      const keys = await server.command('KEYS', '*');
      expect(keys.sort()).toEqual([`app*:${keyOf('a')}`, `app*:${keyOf('b')}`]);
      await limiter.clear('a');
      expect(await server.command('KEYS', '*')).toEqual([`app*:${keyOf('b')}`]);
      await server.command('SET', `app+:${keyOf('c')}`, 'of others');
      await limiter.clearAll();
      expect(await server.command('KEYS', '*')).toEqual([`app+:${keyOf('c')}`]);
    });
  });

  describe('with clients that are told to answer otherwise', () => {
    const odd = { commandOptions: { typeMapping: { 58: String, 36: Buffer, 43: Buffer } } };
    const ioredis = (options) => new (require('ioredis'))(server.url, options);
    async function nodeRedis(name, options, create = 'createClient') {
      const client = require(name)[create]({ url: server.url, ...options });
      await client.connect();
      return client;
    }
    const nodeRedis3 = (options) => require('redis-3').createClient(server.url, options);
    test.each([
      ['ioredis, stringNumbers', () => ioredis({ stringNumbers: true })],
      ['ioredis, enableAutoPipelining', () => ioredis({ enableAutoPipelining: true })],
      ['node-redis 6, other types', () => nodeRedis('redis', odd)],
      ['node-redis 5, RESP 3', () => nodeRedis('redis-5', { RESP: 3 })],
      ['node-redis 4, legacyMode', () => nodeRedis('redis-4', { legacyMode: true })],
      ['a pool of node-redis 6', () => nodeRedis('redis', {}, 'createClientPool')],
      ['node-redis 3, buffers', () => nodeRedis3({ return_buffers: true })],
    ])('%s', async (_name, open) => {
      const { client } = using({ client: await open() });
      const limiter = limiterWith({ redis: client, interval: 60_000, maxInInterval: 2 });
      const decisions = await limiter.attemptMany(['a', 'a', 'a']);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false]);
      expect(await limiter('a')).toBeGreaterThan(0);
      await limiter.clear('a');
      expect(await limiter('a')).toBe(0);
      await limiter.clearAll();
      expect(await server.command('KEYS', '*')).toEqual([]);
    });
  });
});

describe('a state of other limits', () => {
  const script = scriptsOnRedis();
  const { runOn, attempt, peek, refund } = script;

  const pairs = FORMS.flatMap(([from, before]) =>
    FORMS.filter(([to]) => to !== from).map(([to, after]) => [from, to, before, after]),
  );
  describe.each(OF_FRAME)('%s', (algorithm) => {
    test.each(pairs)('%s, then %s: what was used stays used', async (_from, _to, before, after) => {
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
    });

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
    ['fuller', -10, 2, 10],
    ['fuller from empty', 10, 1, MINUTE / 3],
  ])('gcra: a bucket gets %s in the general way', async (_, since, used, reset) => {
    const policy = policyOf('gcra', window(MINUTE, 3));
    await script.redis.set(KEY, '-5800000000000070000'); // 2e15 + 7, of an earlier release
    await script.redis.set('text', 'x');
    const now = 2e15 + 7 + since;
    const reply = await runOn(['text', KEY], policy, 'attempt', 'full', now, 1);
    expect(reply.slice(-2)).toEqual([used, reset]);
    expect(await refund(policy, reply.slice(-9), now)).toBe(1);
  });

  test('gcra counts an action as one, and rounds parts of one up', async () => {
    const fine = policyOf('gcra', window(998_000, 999)); // 998 us and 998 of 999 parts
    await attempt(fine, START_US);
    const policy = policyOf('gcra', window(MINUTE, 3));
    expect((await peek(policy, START_US, 0)).slice(7)).toEqual([1, MINUTE / 3]);
    await attempt(fine, START_US + 500); // 1.4995 of them
    expect((await peek(policy, START_US + 500, 0)).slice(7)).toEqual([2, 9_989_980]);
    const single = policyOf('gcra', window(MINUTE, 1));
    expect((await peek(single, START_US + 500, 0)).slice(7)).toEqual([2, 89_969_940]);
    expect((await attempt(policy, START_US + 500)).slice(7)).toEqual([3, 9_989_980]);
  });

  test('gcra is exact by a clock that is far behind', async () => {
    const policy = policyOf('gcra', window(MINUTE, 7));
    for (let units = 0; units < 7; units++) {
      await attempt(policy, 2e15);
      const state = await script.redis.getBuffer(KEY);
      state.writeBigInt64LE(BigInt(2e15 + 1), 16);
      state.writeUInt16LE(units, 24);
      await script.redis.set(KEY, state);
      const timeLeft = 2e15 - 4 - Math.floor((6 * MINUTE - units) / 7);
      expect((await attempt(policy, 5)).slice(0, 2)).toEqual([1, timeLeft]);
    }
  });
});
