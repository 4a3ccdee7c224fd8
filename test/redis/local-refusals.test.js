// localRefusals: refusals repeated without Redis, exactly those that Redis would give.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const os = require('node:os');
const { performance } = require('node:perf_hooks');
const { createClient } = require('redis');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { expectEqual, waitUntil } = require('../support/outcome');
const { nativeLimiter, openings, runsOf } = require('../support/redis-clients');
const { redisForTests, startRedis } = require('../support/redis-server');
const { catchError, handClock } = require('../support/set-up');
const { casesOf, patient } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const HOUR = 3_600_000;
const server = redisForTests();

/** One in an hour unless `options` say otherwise; refusals are repeated. */
const make = (options) =>
  nativeLimiter(server.url, {
    interval: HOUR,
    maxInInterval: 1,
    countBlocked: false,
    localRefusals: true,
    ...options,
  });

async function refused(options) {
  const limiter = make(options);
  await limiter('a');
  expect(await limiter('a')).toBeGreaterThan(0);
  return limiter;
}

describe('every answer is the one that Redis would give', () => {
  const interval = (random) => random.pick([10, 20, 50, 100]);

  function randomPolicy(random, algorithm) {
    const windows = Array.from({ length: random.between(1, 2) }, () => ({
      interval: interval(random),
      maxInInterval: random.between(1, 6),
    }));
    const blocks = [undefined, random.pick([5, 30, 300]), [7, 40, 200]];
    const blockFor = random.pick(blocks);
    const counts = algorithm !== 'gcra' && blockFor !== undefined && random.chance(50);
    const minDifference = random.chance(25) ? random.between(1, 15) : 0;
    windows[0].minDifference = minDifference;
    return { limits: windows, blockFor, countBlocked: counts, algorithm };
  }

  const largestCost = ({ limits }) => Math.min(...limits.map((limit) => limit.maxInInterval));

  /** The same operation on each limiter; `decisions` are those of earlier attempts that were allowed. */
  function randomOperation(random, policy) {
    const id = random.pick(['a', 'b']);
    const cost = random.chance(70) ? 1 : random.between(1, largestCost(policy));
    const which = random.between(1, 100);
    if (which <= 45) return (limiter) => limiter(id);
    if (which <= 50) return (limiter) => limiter.limitWithInfo(id);
    if (which <= 54) return (limiter) => limiter.peek(id, { cost });
    if (which <= 57) return (limiter) => limiter.attemptMany(['a', 'b']);
    if (which <= 58) return (limiter) => limiter.clear(id);
    if (which <= 59) return (limiter) => limiter.clearAll();
    if (which <= 63) {
      const back = random.between(1, 3);
      return (limiter, decisions) => {
        const decision = decisions.at(-back);
        return decision === undefined ? false : limiter.refund(decision);
      };
    }
    return async (limiter, decisions) => {
      const decision = await limiter.attempt(id, { cost });
      if (decision.allowed) decisions.push(decision);
      return decision;
    };
  }

  test.each(ALGORITHMS)('%s', async (algorithm) => {
    let repeated = 0;
    for (let seed = 1; seed <= casesOf(200); seed++) {
      const random = randomFrom(seed);
      const policy = randomPolicy(random, algorithm);
      const time = handClock(1_700_000_000_000);
      const limiters = [false, true].map((localRefusals) =>
        make({ ...policy, localRefusals, clock: time.clock }),
      );
      const decisions = [[], []];
      for (let step = 0; step < 150; step++) {
        const operation = randomOperation(random, policy);
        const [expected, actual] = await Promise.all(
          limiters.map((limiter, i) => operation(limiter, decisions[i])),
        );
        expectEqual(actual, expected, { seed, step, policy, operation: String(operation) });
        if (random.chance(40)) time.advance(random.between(1, random.chance(10) ? 120 : 8));
        if (random.chance(2)) time.advance(-random.between(1, 40));
      }
      repeated += limiters[1].stats().localRefusals;
      expect(limiters[0].stats().localRefusals).toBe(0);
      await Promise.all(limiters.map((limiter) => limiter.close()));
    }
    expect(repeated).toBeGreaterThan(casesOf(200));
  });
});

test.each([
  ['refusals are not counted', {}],
  ['a block', { blockFor: HOUR, interval: 1000 }],
  ['a block where refusals are counted', { blockFor: HOUR, countBlocked: true, interval: 1000 }],
])('a refused id costs Redis nothing: %s', async (_name, options) => {
  const limiter = make(options);
  await limiter('a');
  await limiter.attempt('a');
  const runs = await runsOf(server, async () => {
    for (let batch = 0; batch < 20; batch++) {
      const calls = Array.from({ length: 500 }, () => limiter('a'));
      for (const timeLeft of await Promise.all(calls)) expect(timeLeft).toBeGreaterThan(0);
    }
  });
  expect(runs).toBe(0);
});

test('by the clock of the server, too, nothing is refused that Redis would allow', async () => {
  const limiter = make({ interval: 30.4 }); // so that whole ms round up by most of one
  while (limiter.stats().allowed < 20) {
    const { allowed } = await limiter.peek('a');
    const timeLeft = await limiter('a');
    if (allowed) expect(timeLeft).toBe(0);
  }
  expect(limiter.stats().localRefusals).toBeGreaterThan(0);
});

test('the reasons are those of the moment', async () => {
  const time = handClock();
  const limiter = make({ interval: 100, minDifference: 10, clock: time.clock });
  await limiter('a');
  const reasons = [];
  for (const ms of [0, 5, 5, 5]) {
    time.advance(ms);
    reasons.push((await limiter.limitWithInfo('a')).blockedDueToMinDifference);
  }
  expect(reasons).toEqual([true, true, false, false]);
  expect(limiter.stats().localRefusals).toBe(1);
});

// Kills: an attemptAll on one id that forgets answers about others, or remembers nothing itself.
test('attemptAll repeats refusals, and forgets none of other ids', async () => {
  const limiter = await refused();
  await limiter.attempt('a');
  await limiter.attempt('b');
  const runs = await runsOf(server, async () => {
    const calls = Array.from({ length: 5 }, () => limiter('a'));
    await Promise.all([RateLimiter.attemptAll([{ limiter, id: 'b' }]), ...calls]);
    for (const id of ['a', 'b']) {
      expect(await RateLimiter.attemptAll([{ limiter, id }])).toMatchObject({ allowed: false });
    }
  });
  expect(runs).toBe(1);
});

test('each repeated refusal is counted and published', async () => {
  const limiter = await refused();
  const messages = [];
  const listener = (message) => messages.push(message);
  diagnostics.subscribe('rollgate:decision', listener);
  await limiter('a');
  await new Promise(setImmediate);
  diagnostics.unsubscribe('rollgate:decision', listener);
  expect(messages).toMatchObject([{ limiter, id: 'a', cost: 1, allowed: false }]);
  expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 2, localRefusals: 1 });
});

test('a callback gets a whole answer', async () => {
  const limiter = await refused();
  for (let i = 0; i < 2; i++) {
    const answer = await new Promise((resolve) => limiter('a', (...given) => resolve(given)));
    expect(answer).toEqual([null, expect.any(Number), 0]);
  }
  expect(limiter.stats().localRefusals).toBe(1);
});

test('a refusal says nothing of another cost, or of a call with terms of its own', async () => {
  const limiter = make({ maxInInterval: 3 });
  await limiter('a');
  expect((await limiter.attempt('a', { cost: 3 })).allowed).toBe(false);
  expect((await limiter.attempt('a', { cost: 2 })).allowed).toBe(true);
  const allowed = [];
  for (const limits of [3, 3, undefined, 4, undefined]) {
    allowed.push((await limiter.attempt('a', { limits })).allowed);
  }
  expect(allowed).toEqual([false, false, false, true, false]);
  expect(limiter.stats().localRefusals).toBe(0);
});

describe('a refusal is forgotten', () => {
  test('after its time, also if another limiter cleared the id', async () => {
    const time = handClock();
    const namespace = 'cleared elsewhere';
    const limiter = make({ interval: 100, clock: time.clock, namespace });
    const other = make({ interval: 100, clock: time.clock, namespace });
    await limiter('a');
    expect(await limiter('a')).toBe(100);
    await other.clear('a');
    await other('a');
    time.advance(98);
    expect([await limiter('a'), limiter.stats().localRefusals]).toEqual([2, 1]);
    await other.clear('a');
    time.advance(2);
    expect(await limiter('a')).toBe(0);
  });

  test('if there are more than maxKeys, the oldest first', async () => {
    const limiter = make({ maxKeys: 3 });
    const ids = ['a', 'b', 'c', 'd'];
    for (const id of ids) await limiter(id);
    for (const id of ids) await limiter(id);
    expect(await runsOf(server, () => Promise.all(['b', 'c', 'd'].map((id) => limiter(id))))).toBe(
      0,
    );
    expect(await runsOf(server, () => limiter('a'))).toBe(1);
    expect(await runsOf(server, () => limiter('b'))).toBe(1);
    expect(await runsOf(server, () => Promise.all([limiter('a'), limiter('d')]))).toBe(0);
  });

  describe('whose answer comes late', () => {
    const { using, closeAll } = openings();
    afterEach(closeAll);
    let client;
    beforeEach(async () => {
      client = createClient({ url: server.url }).on('error', () => {});
      using({ client });
      await client.connect();
    });
    const over = (options) =>
      make({ redis: { client, commandTimeout: patient(15_000) }, ...options });

    /** Holds back the reply to the next command, until the function that it returns is called. */
    function holdReply() {
      const pass = client.sendCommand.bind(client);
      let release;
      const isReleased = new Promise((resolve) => {
        release = resolve;
      });
      client.sendCommand = async (...args) => {
        client.sendCommand = pass;
        const reply = await pass(...args);
        await isReleased;
        return reply;
      };
      return release;
    }

    test('after a clear', async () => {
      const limiter = over();
      await limiter('a');
      const release = holdReply();
      const late = limiter('a');
      await limiter.clear('a');
      release();
      expect(await late).toBeGreaterThan(0);
      expect(await limiter('a')).toBe(0);
    });

    test('after its time', async () => {
      const limiter = over({ interval: 50 });
      await limiter('a');
      const release = holdReply();
      const late = limiter('a');
      await new Promise(setImmediate); // in a command of its own
      await waitUntil('it would be allowed', async () => (await limiter.peek('a')).allowed);
      release();
      expect(await late).toBeGreaterThan(0);
      expect(await limiter('a')).toBe(0);
    });
  });
});

test('wait wakes when the id is allowed', async () => {
  const limiter = make({ interval: 100 });
  await limiter('a');
  await limiter('a');
  expect((await limiter.wait('a')).allowed).toBe(true);
  await limiter('a');
  const waiting = limiter.wait('a');
  await limiter.clear('a');
  expect((await waiting).allowed).toBe(true);
});

test('in an outage, refusals hold, and those of onError are not remembered', async () => {
  const own = await startRedis();
  const limiter = nativeLimiter(
    { url: own.url, commandTimeout: patient(300) },
    { interval: HOUR, countBlocked: false, localRefusals: true, onError: 'block' },
  );
  await waitUntil('refused', async () => (await limiter('a')) > 1000);
  await own.stop();
  expect(await limiter('b')).toBe(1000);
  expect(await limiter('a')).toBeGreaterThan(1000);
  await own.restart();
  await waitUntil('b is decided by Redis', async () => (await limiter('b')) === 0);
});

describe('options', () => {
  const redis = 'redis://127.0.0.1:1';
  const GOOD = { interval: 1000, maxInInterval: 1, countBlocked: false, localRefusals: true };
  const COUNTED = /'localRefusals': requires 'countBlocked: false' or 'blockFor', because/;

  test.each([
    ['counted refusals', { redis, countBlocked: true }, COUNTED],
    ['refusals counted by default', { redis, countBlocked: undefined }, COUNTED],
    ['the same without Redis', { redis: undefined, countBlocked: true }, COUNTED],
    ['a string', { redis, localRefusals: 'true' }, /'localRefusals': expected true or false, got/],
    ['shared memory', { shared: 'x' }, /'localRefusals': requires 'redis'/],
    ['a kv', { kv: { get() {}, set() {} }, namespace: 'x' }, /'localRefusals': requires 'redis'/],
  ])('%s: refused', (_name, options, message) => {
    const error = catchError(() => RateLimiter({ ...GOOD, ...options }));
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
    expect(error.message).toMatch(message);
  });

  test.each([
    ['gcra, which counts no refusal', { countBlocked: undefined, algorithm: 'gcra' }],
    ['counted refusals in blocks', { countBlocked: true, blockFor: 1000 }],
    ['false, with counted refusals', { countBlocked: true, localRefusals: false }],
  ])('%s: fine', async (_name, options) => {
    await make(options).close();
  });

  test('without effect in memory, as redis: undefined is', () => {
    const limiter = RateLimiter({ ...GOOD, redis: undefined });
    expect([limiter('a'), limiter('a') > 0]).toEqual([0, true]);
  });

  test('rules take it for all of their limiters, if none counts refusals', () => {
    const withRule = (countBlocked) => () =>
      RateLimiter.rateLimit({
        ...{ redis, namespace: 'rules', localRefusals: true },
        rules: [{ path: '/', windowMs: 1000, limit: 1, countBlocked }],
      });
    withRule(false)();
    expect(catchError(withRule(true)).message).toMatch(COUNTED);
  });
});

test('a refusal is over after a sleep of the host that was longer', async () => {
  const limiter = await refused();
  expect(await runsOf(server, () => limiter('a'))).toBe(0);
  const now = performance.now.bind(performance);
  const uptime = os.uptime();
  // The time that a host does not sleep goes on, too: its uptime is read once a second.
  jest.spyOn(performance, 'now').mockImplementation(() => now() + 1001);
  jest.spyOn(os, 'uptime').mockImplementation(() => uptime + HOUR / 1000 + 10);
  expect(await runsOf(server, () => limiter('a'))).toBe(1);
  jest.restoreAllMocks();
});
