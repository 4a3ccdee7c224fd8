// What is in Redis: keys, their time to live, and states that outlive a change of limits.
'use strict';

const { nativeLimiter } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const {
  FORMS,
  KEY,
  LOG,
  MINUTE,
  OF_FRAME,
  policyOf,
  scriptsOnRedis,
  START_US,
  window,
} = require('../support/scripts-on-redis');

const server = redisForTests();
let namespaces = 0;

describe('keys', () => {
  beforeEach(async () => {
    namespaces += 1;
    await server.command('FLUSHALL');
  });

  const keyOf = (id) => `keys-${namespaces}{${id}}`;

  const limiterWith = (options) =>
    nativeLimiter(server.url, {
      ...{ namespace: `keys-${namespaces}`, countBlocked: false },
      ...options,
    });

  test('are namespace{id}, one for each id, whatever the windows', async () => {
    const limits = [1000, 60_000, 86_400_000].map((interval) => ({ interval, maxInInterval: 9 }));
    const limiter = limiterWith({ limits, interval: undefined, maxInInterval: undefined });
    await limiter.attemptMany(['a', 'ü}', '', 5]);
    const keys = await server.command('KEYS', '*');
    expect(keys.sort()).toEqual(['', '5', 'a', 'ü}'].map(keyOf).sort());
  });

  test('begin with a random namespace where none is given', async () => {
    const [one, other] = [1, 2].map(() => limiterWith({ namespace: undefined }));
    expect([await one('a'), await other('a')]).toEqual([0, 0]);
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
});

describe('keys of one batch', () => {
  const script = scriptsOnRedis();
  const keys = Array.from({ length: 20 }, (_, i) => `key${i}`);
  const MINUTES = MINUTE / 1000; // in ms
  const endsOf = () => Promise.all(keys.map((key) => script.redis.pexpiretime(key)));
  /** All of them attempt, by the server's clock. */
  const attemptAll = (interval, changes) => {
    const policy = policyOf(LOG, { countBlocked: true, ...window(interval, 4), ...changes });
    return script.runOn(keys, policy, 'attempt', 'brief', '', 1);
  };
  const serverMs = async () => (await script.redis.time())[0] * 1000;

  test.each([
    ['the first action', 1, {}],
    ['full logs', 6, {}],
    ['the first action and minDifference', 1, { minDifference: 1000 }],
    ['full logs and minDifference', 6, { minDifference: 1000 }],
  ])('live as long as the limit asks for that wrote last: %s', async (_, times, changes) => {
    for (let i = 0; i < times; i++) await attemptAll(1_000_000, changes);
    const start = await serverMs();
    await attemptAll(MINUTE, changes);
    expect(Math.min(...(await endsOf()))).toBeGreaterThanOrEqual(start + MINUTES);
  });

  test('get an end back that is as late as their logs say', async () => {
    const start = await serverMs();
    for (let i = 0; i < 4; i++) await attemptAll(MINUTE, { countBlocked: false });
    await Promise.all(keys.map((key) => script.redis.persist(key)));
    for (let i = 0; i < 2000 && (await endsOf()).includes(-1); i++) {
      await attemptAll(MINUTE / 6, { countBlocked: false });
    }
    expect(Math.min(...(await endsOf()))).toBeGreaterThanOrEqual(start + MINUTES);
  });

  test.each([LOG, 'fixed-window'])(
    'do not live longer for the block of another: %s',
    async (name) => {
      const policy = policyOf(name, { ...window(MINUTE, 1), blockFor: [60 * MINUTE] });
      for (let i = 0; i < 2; i++) await script.attempt(policy);
      await script.runOn([KEY, 'b', KEY, 'c'], policy, 'attempt', 'full', '', 1);
      expect(await script.ttl()).toBeGreaterThan(60 * MINUTES);
      for (const key of ['b', 'c']) {
        expect(await script.redis.pttl(key)).toBeLessThanOrEqual(MINUTES + 3000);
      }
    },
  );
});

describe('a state of other limits', () => {
  const script = scriptsOnRedis();
  const { attempt, peek, run } = script;

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
      [60 * MINUTE, 1_000_000],
      [1_000_000, 60 * MINUTE],
      [10_000, 43_200 * MINUTE],
      [43_200 * MINUTE, 10_000],
    ])('of %d us, then of %d us: it passes again at last', async (before, after) => {
      const second = policyOf(algorithm, window(after, 1));
      await attempt(policyOf(algorithm, window(before, 1)), START_US);
      const [, timeLeft] = await peek(second, START_US);
      expect(timeLeft).toBeLessThanOrEqual(2 * Math.max(before, after));
      expect((await attempt(second, START_US + timeLeft))[0]).toBe(0);
    });
  });

  const LONG = 120 * MINUTE; // stamps of more than 4 bytes
  test.each([
    ['interval beyond 71 minutes', [MINUTE, 4], [LONG, 4], 3],
    ['interval below 71 minutes', [LONG, 4], [MINUTE, 4], 3],
    ['short to long form', [MINUTE, 200], [MINUTE, 258], 200],
    ['just short to just long', [MINUTE, 257], [MINUTE, 258], 257],
    ['long to short form', [MINUTE, 258], [MINUTE, 257], 258],
    ['all at once', [LONG, 300], [MINUTE, 20], 15],
    ['all at once, back', [MINUTE, 20], [LONG, 300], 15],
  ])('a log, %s: what was used stays used', async (_, before, after, done) => {
    const [first, second] = [before, after].map((limits) => policyOf(LOG, window(...limits)));
    await attempt(first, START_US, done);
    const now = START_US + Math.min(before[0], after[0]) / 2;
    expect((await peek(second, now, 0))[7]).toBe(done);
    let allowed = 0;
    while ((await run(second, 'attempt', 'brief', now, 1))[0] === 0) allowed += 1;
    expect(allowed).toBe(Math.max(0, after[1] - done));
    expect((await attempt(second, now + after[0]))[0]).toBe(0);
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
