// What stands in Redis: keys, their time to live, and logs that outlive a change of limits.
'use strict';

const RateLimiter = require('../..');
const { handClock } = require('../support/set-up');
const { REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');

const { using, closeAll } = openings();
let server;
let redis;
let namespaces = 0;

beforeAll(async () => {
  server = await startRedis();
});

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

  test.each([
    ['short', 1],
    ['long', 300],
  ])('of %s logs without a time to live get one again', async (_form, max) => {
    const limiter = limiterWith({ interval: 60_000, maxInInterval: max });
    await limiter.attempt('a', { cost: max });
    for (const attempt of [() => limiter('a'), () => limiter.attempt('a')]) {
      await server.command('PERSIST', keyOf('a'));
      await attempt();
      expect(await server.command('PTTL', keyOf('a'))).toBeGreaterThan(59_000);
    }
  });

  test.each([5, 500])('get it at every write, also right after another (max %d)', async (max) => {
    const limiter = limiterWith({ interval: 60_000, maxInInterval: max });
    await limiter('a');
    await server.command('PERSIST', keyOf('a'));
    await limiter('a');
    expect(await server.command('PTTL', keyOf('a'))).toBeGreaterThan(59_000);
  });

  describe('in one batch', () => {
    const ids = Array.from({ length: 20 }, (_, i) => `id${i}`);
    const all = (ask) => Promise.all(ids.map((id) => ask(id)));
    const endOf = (id) => server.command('PEXPIRETIME', keyOf(id));
    const batches = (options) => {
      return using(limiterWith({ redis: server.url, countBlocked: true, ...options }));
    };

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

    test('get a time to live back, one with each call', async () => {
      const limiter = batches({ interval: 60_000, maxInInterval: 4 });
      for (let i = 0; i < 5; i++) await all(limiter);
      await all((id) => server.command('PERSIST', keyOf(id)));
      for (let i = 0; i < 2000 && (await all(endOf)).includes(-1); i++) await all(limiter);
      expect(await all(endOf)).not.toContain(-1);
    });
  });

  test('hold no more than the limit, however often an id comes', async () => {
    const limiter = limiterWith({ interval: 60_000, maxInInterval: 10, countBlocked: true });
    await limiter.attemptMany(Array(500).fill('a'));
    expect(await server.command('STRLEN', keyOf('a'))).toBeLessThan(100);
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
      const wouldUse = Math.min(done + 1, after.maxInInterval);
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

    test.each([
      ['short', 20, 200],
      ['long', 300, 600],
    ])('by a refund, too, while another release writes more: %s', async (_form, max, more) => {
      const low = limiterWith({ interval: minute, maxInInterval: max });
      const high = limiterWith({ interval: minute, maxInInterval: more });
      const decision = await low.attempt('a');
      await high.attempt('a', { cost: more - 1 });
      expect(await low.refund(decision)).toBe(true);
      expect((await low.attempt('a')).allowed).toBe(false);
      expect((await high.peek('a')).limits[0].used).toBeGreaterThanOrEqual(max);
    });
  });

  describe('under a prefix of the client', () => {
    test.each([
      ['ioredis', () => new (require('ioredis'))(server.url, { keyPrefix: 'app*:' })],
      ['ioredis-5', () => new (require('ioredis-5'))(server.url, { keyPrefix: 'app*:' })],
      ['redis-3', () => require('redis-3').createClient(server.url, { prefix: 'app*:' })],
    ])('%s', async (_name, open) => {
      const client = open();
      try {
        const limiter = limiterWith({ redis: client, interval: 60_000, maxInInterval: 2 });
        await limiter.attemptMany(['a', 'b', 'a']);
        expect((await server.command('KEYS', '*')).sort()).toEqual([
          `app*:${keyOf('a')}`,
          `app*:${keyOf('b')}`,
        ]);
        await limiter.clear('a');
        expect(await server.command('KEYS', '*')).toEqual([`app*:${keyOf('b')}`]);
        await server.command('SET', `app+:${keyOf('c')}`, 'of others');
        await limiter.clearAll();
        expect(await server.command('KEYS', '*')).toEqual([`app+:${keyOf('c')}`]);
      } finally {
        if (client.end.length > 0) client.end(true);
        else client.disconnect();
      }
    });
  });

  describe('with clients that are told to answer otherwise', () => {
    const connect = async (client) => {
      await client.connect();
      return client;
    };
    const url = () => ({ url: server.url });
    const odd = { commandOptions: { typeMapping: { 58: String, 36: Buffer, 43: Buffer } } };
    const ioredis = (options) => new (require('ioredis'))(server.url, options);
    test.each([
      ['ioredis, stringNumbers', () => ioredis({ stringNumbers: true })],
      ['ioredis, enableAutoPipelining', () => ioredis({ enableAutoPipelining: true })],
      [
        'node-redis 6, other types',
        () => connect(require('redis').createClient({ ...url(), ...odd })),
      ],
      [
        'node-redis 5, RESP 3',
        () => connect(require('redis-5').createClient({ ...url(), RESP: 3 })),
      ],
      [
        'node-redis 4, legacyMode',
        () => connect(require('redis-4').createClient({ ...url(), legacyMode: true })),
      ],
      ['a pool of node-redis 6', () => connect(require('redis').createClientPool(url()))],
      [
        'node-redis 3, buffers',
        () => require('redis-3').createClient(server.url, { return_buffers: true }),
      ],
    ])('%s', async (_name, open) => {
      const client = await open();
      try {
        const limiter = limiterWith({ redis: client, interval: 60_000, maxInInterval: 2 });
        const decisions = await limiter.attemptMany(['a', 'a', 'a']);
        expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false]);
        expect(await limiter('a')).toBeGreaterThan(0);
        await limiter.clear('a');
        expect(await limiter('a')).toBe(0);
        await limiter.clearAll();
        expect(await server.command('KEYS', '*')).toEqual([]);
      } finally {
        if (typeof client.destroy === 'function') client.destroy();
        else if (client.end?.length > 0) client.end(true);
        else await client.disconnect();
      }
    });
  });
});
