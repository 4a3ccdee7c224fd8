// Calls through every client, of one limiter and of several: in few commands, in their order, each with its own answer.
'use strict';

const RateLimiter = require('../..');
const { errorOf, outcomeOf } = require('../support/outcome');
const { EACH_CLIENT, nativeLimiter, openings, runsOf } = require('../support/redis-clients');
const { callsOf, redisForTests, startRedis } = require('../support/redis-server');
const { handClock } = require('../support/set-up');
const { patient } = require('../support/tiers');

const QUEUE_FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';
const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';

const server = redisForTests();
const { using, closeAll } = openings();
afterEach(closeAll);

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const runsOfAll = (makeCalls) => runsOf(server, () => Promise.all(makeCalls()));
const usedOf = async (promise) => (await promise).limits[0].used;

/** Policies that have a group each, in a run for each algorithm; two limiters share one. */
const POLICIES = [
  {},
  {},
  { minDifference: 20 },
  { blockFor: [1000, 5000], countBlocked: false },
  { maxInInterval: 1_000_000 },
  {
    ...{ interval: undefined, maxInInterval: undefined },
    limits: [
      { interval: 100, maxInInterval: 4 },
      { interval: 9000, maxInInterval: 6, minDifference: 1 },
    ],
  },
  { algorithm: 'gcra', maxInInterval: 4 },
  { algorithm: 'fixed-window' },
];
const ALGORITHMS = 3;

describe.each(EACH_CLIENT)('through %s', (name, open) => {
  /** What limiters share: a connection, or a user's client. */
  function connect(url = server.url) {
    const opened = { ...open(url), commandTimeout: patient(15_000) };
    return opened.client === undefined ? RateLimiter.createRedisConnection(opened) : using(opened);
  }
  const limiterOn = (redis, options) => nativeLimiter(undefined, { redis, ...options });
  const limiterWith = (options, connection) =>
    nativeLimiter(
      { ...using(open(server.url)), ...connection },
      { maxInInterval: 1000, ...options },
    );

  test.each([
    [1, 1],
    [64, 1],
    [65, 2],
    [200, 4],
  ])('%d checks of one turn take %d runs', async (checks, runs) => {
    const limiter = limiterWith();
    await limiter('warm');
    expect(await runsOfAll(() => times(checks, (i) => limiter(`a${i}`)))).toBe(runs);
    expect(await runsOfAll(() => times(checks, () => limiter('hot')))).toBe(runs);
    expect(await runsOfAll(() => [limiter.attemptMany(times(checks, String))])).toBe(runs);
  });

  test('calls made while results are handed on go out in few runs, too', async () => {
    const limiter = limiterWith();
    await limiter('warm');
    const chains = () => times(64, (i) => limiter(`a${i}`).then(() => limiter(`a${i}`)));
    expect(await runsOfAll(chains)).toBeLessThanOrEqual(4);
  });

  test('limiters that share a connection have one run for each algorithm, and the answers that they get alone', async () => {
    const { clock, advance } = handClock();
    const connection = connect();
    const make = () => POLICIES.map((policy) => limiterOn(connection, { clock, ...policy }));
    const [apart, together] = [make(), make()];
    // Brief, full, with a cost, and peeks; ids that repeat and ids that are new.
    const callsOn = (limiter) => [
      ...[limiter('a'), limiter.attempt('a'), limiter.peek('a'), limiter('b')],
      ...[limiter.attempt('b', { cost: 2 }), limiter('a'), limiter.peek('new')],
    ];
    for (let round = 0; round < 3; round++) {
      const expected = [];
      for (const limiter of apart) expected.push(...(await Promise.all(callsOn(limiter))));
      let answers;
      const runs = await runsOf(server, async () => {
        answers = await Promise.all(together.flatMap(callsOn));
      });
      expect([runs, answers]).toEqual([ALGORITHMS, expected]);
      advance(6);
    }
  });

  // Kills a batch that looks for repeated keys only among the calls of one limiter.
  test('limiters of one namespace count together', async () => {
    const connection = connect();
    const limiters = times(3, () => limiterOn(connection, { namespace: `one, ${name}` }));
    const timesLeft = await Promise.all(times(12, (i) => limiters[i % 3]('a')));
    expect(timesLeft.filter((timeLeft) => timeLeft === 0)).toHaveLength(2);
  });

  test('a key that holds something else fails its own id alone', async () => {
    const connection = connect();
    const namespaces = times(2, (i) => `foreign, ${name}, ${i}`);
    const [good, bad] = namespaces.map((namespace) => limiterOn(connection, { namespace }));
    await server.command('LPUSH', `${namespaces[1]}{a}`, 'hello');
    for (const how of ['limitWithInfo', 'attempt', 'peek']) {
      const calls = [good[how]('a'), bad[how]('b'), bad[how]('a'), good[how]('b')];
      const outcomes = await Promise.all(calls.map((call) => outcomeOf(call)));
      expect(outcomes.map((outcome) => outcome === REPLY)).toEqual([false, false, true, false]);
    }
    const brief = await Promise.all([good('c'), bad('a'), bad('c')].map((call) => outcomeOf(call)));
    expect(brief).toEqual([0, REPLY, 0]);
    expect(await outcomeOf(bad.attemptMany(['b', 'a']))).toBe(REPLY);
    await bad.clear('a');
    expect(await bad('a')).toBe(0);
  });

  // Kills: a call that joins an earlier group of its limiter past a later one.
  test('the order of the calls of one limiter stays among the calls of others', async () => {
    const connection = connect();
    const [limiter, other] = times(2, () => limiterOn(connection, { maxInInterval: 1000 }));
    for (const between of [0, 1, 31, 62, 63, 64]) {
      const first = await limiter.attempt('a', { cost: 5 });
      const noise = [];
      const step = (call) => {
        noise.push(...times(between, (i) => other(i)));
        return call;
      };
      const results = [
        usedOf(step(limiter.peek('a'))),
        step(limiter('a')),
        usedOf(step(limiter.peek('a'))),
        step(limiter.refund(first)),
        usedOf(step(limiter.attempt('a', { cost: 3 }))),
        step(limiter.attemptMany(['a', 'b', 'a'])).then((all) => all[2].limits[0].used),
        step(limiter.clear('a')),
        usedOf(step(limiter.attempt('a'))),
        step(limiter.clear('a')),
      ];
      expect(await Promise.all(results)).toEqual([6, 0, 7, true, 4, 6, undefined, 1, undefined]);
      await Promise.all(noise);
    }
  });

  // Kills: a batch that fails as a whole because its user may not use the keys of one limiter.
  test('keys that the user may not use fail alone', async () => {
    const locked = await startRedis();
    await locked.command('ACL', 'SETUSER', 'half', 'on', '>pass', '~good*', '+@all');
    const connection = connect(locked.url.replace('//', '//half:pass@'));
    const make = (namespace) => limiterOn(connection, { namespace });
    const limiters = ['good1', 'bad', 'good2'].map(make);
    await limiters[0]('warm');
    const outcomes = await Promise.all(limiters.map((limiter) => outcomeOf(limiter('a'))));
    expect(outcomes).toEqual([0, 'ERR_ROLLGATE_REDIS_AUTH', 0]);
  });

  test('a server that forgets its scripts with several batches under way gets the source once, and counts each call once', async () => {
    const limiter = limiterWith({ maxInInterval: 10_000 });
    await limiter('warm');
    await server.command('CONFIG', 'RESETSTAT');
    let made = 0;
    for (let round = 0; round < 10; round++) {
      const flushed = server.command('SCRIPT', 'FLUSH');
      for (let turn = 0; turn < 5; turn++) {
        const calls = times(100, () => limiter(`id ${made++ % 7}`));
        if (turn === 4) calls.push(flushed);
        await (turn === 4 ? Promise.all(calls) : new Promise(setImmediate));
      }
    }
    await limiter('id 0'); // answered after all the others
    const used = await Promise.all(times(7, (i) => usedOf(limiter.usage(`id ${i}`))));
    expect(used.reduce((sum, count) => sum + count)).toBe(made + 1);
    expect(await callsOf(server, 'eval')).toBeLessThanOrEqual(10);
  });

  describe('maxQueue', () => {
    const maxQueue = 50;

    test('calls may be under way at once, however often, and one more is refused at once', async () => {
      const limiter = limiterWith({ maxInInterval: 1e6 }, { maxQueue });
      for (let burst = 0; burst < 20; burst++) {
        const timesLeft = await Promise.all(times(maxQueue, (i) => limiter(`a${i}`)));
        expect(new Set(timesLeft)).toEqual(new Set([0]));
      }
      // And from where the last of a burst is answered.
      const chain = async () => {
        for (let i = 0; i < 50; i++) expect(await limiter('a')).toBe(0);
      };
      await Promise.all(times(maxQueue, chain));
      const calls = times(maxQueue + 1, () => limiter('a'));
      const { code, message } = await errorOf(calls.at(-1));
      expect([code, message]).toEqual([QUEUE_FULL, expect.stringContaining('50')]);
      expect(await Promise.all(calls.slice(0, -1))).toEqual(times(maxQueue, () => 0));
    });

    test('lets attemptMany have more ids, one turn after the other', async () => {
      const ids = times(4 * maxQueue + 7, () => 'a');
      const decisions = await limiterWith({}, { maxQueue }).attemptMany(ids);
      expect(decisions.map(({ limits }) => limits[0].used)).toEqual(ids.map((_, i) => i + 1));
    });

    test('refuses attemptMany as a whole, before it counts any', async () => {
      const limiter = limiterWith({}, { maxQueue });
      const other = limiter('b');
      expect(await outcomeOf(limiter.attemptMany(times(maxQueue, () => 'a')))).toBe(QUEUE_FULL);
      expect(await other).toBe(0);
      expect(await usedOf(limiter.attempt('a'))).toBe(1);
    });
  });
});
