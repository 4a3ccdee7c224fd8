// localRefusals: refusals repeated without Redis, exactly those that Redis would give.
'use strict';

const os = require('node:os');
const { performance } = require('node:perf_hooks');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { randomPolicy, randomTrace } = require('../conformance/random-traces');
const { expectTrace } = require('../conformance/replay');
const { gatedClient } = require('../support/gated-client');
const { waitUntil } = require('../support/outcome');
const { nativeLimiter, published, runsOf } = require('../support/redis-clients');
const { redisForTests, startRedis } = require('../support/redis-server');
const { catchError, handClock } = require('../support/set-up');
const { casesOf, patient } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
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

/** A trace in whole minutes: what is repeated is rounded to ms once. */
function traceOfMinutes(random, algorithm) {
  const policy = randomPolicy(random, { algorithm, units: [1] });
  policy.countBlocked &&= policy.blockFor.length > 0;
  const options = { policy, steps: 100, ids: ['a', 'b'], start: 28_000_000 };
  const { operations } = randomTrace(random, options);
  const toUs = (minutes) => minutes * 60_000_000;
  return {
    policy: {
      ...policy,
      limits: policy.limits.map((limit) => ({ ...limit, interval: toUs(limit.interval) })),
      minDifference: toUs(policy.minDifference),
      blockFor: policy.blockFor.map(toUs),
    },
    operations: operations.map((operation) => ({
      ...operation,
      now: toUs(operation.now),
      length: toUs(operation.length ?? 0),
    })),
  };
}

test.each(ALGORITHMS)('every answer is the one that Redis would give: %s', async (algorithm) => {
  let repeated = 0;
  const open = (options) => {
    const redis = { url: server.url, commandTimeout: patient(15_000) };
    const limiter = RateLimiter({ redis, localRefusals: true, ...options });
    const { close } = limiter;
    limiter.close = () => {
      repeated += limiter.stats().localRefusals;
      return close.call(limiter);
    };
    return limiter;
  };
  for (let seed = 1; seed <= casesOf(100); seed++) {
    await expectTrace(traceOfMinutes(randomFrom(seed), algorithm), open, { algorithm, seed });
  }
  expect(repeated).toBeGreaterThan(casesOf(100));
});

test.each([
  ['refusals are not counted', {}],
  ['a block', { blockFor: HOUR, interval: MINUTE }],
  ['a block where refusals are counted', { blockFor: HOUR, countBlocked: true, interval: MINUTE }],
])('a refused id costs Redis nothing: %s', async (_name, options) => {
  const limiter = make(options);
  await limiter('a');
  await limiter.attempt('a');
  const runs = await runsOf(server, async () => {
    const calls = Array.from({ length: 500 }, () => limiter('a'));
    for (const timeLeft of await Promise.all(calls)) expect(timeLeft).toBeGreaterThan(0);
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

test('each repeated refusal is counted, published, and whole for a callback', async () => {
  const limiter = await refused();
  const answered = () => new Promise((resolve) => limiter('a', (...given) => resolve(given)));
  await answered(); // that of refused() is brief
  const messages = await published('rollgate:decision', async () => {
    expect(await answered()).toEqual([null, expect.any(Number), 0]);
    await new Promise(setImmediate);
  });
  expect(messages).toMatchObject([{ limiter, id: 'a', cost: 1, allowed: false }]);
  expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 3, localRefusals: 1 });
});

test('a refusal under limits of one call says nothing of other calls, and theirs nothing of it', async () => {
  const limiter = make({ maxInInterval: 3 });
  const allowed = [];
  for (const limits of [undefined, 1, undefined, 2, 3, undefined, 4]) {
    allowed.push((await limiter.attempt('a', { limits })).allowed);
  }
  expect(allowed).toEqual([true, false, true, false, true, false, true]);
});

test('a refusal at costs by name says nothing of other costs', async () => {
  const limits = ['calls', 'tokens'].map((name) => ({ name, interval: HOUR, maxInInterval: 3 }));
  const limiter = make({ interval: undefined, maxInInterval: undefined, limits });
  const allowed = [];
  for (const cost of [{ tokens: 2 }, { tokens: 2 }, { calls: 2, tokens: 1 }]) {
    allowed.push((await limiter.attempt('a', { cost })).allowed);
  }
  expect(allowed).toEqual([true, false, true]);
});

describe('a refusal is forgotten', () => {
  test('if there are more than maxKeys, the oldest first', async () => {
    const limiter = make({ maxKeys: 3 });
    const runsFor = (ids) => runsOf(server, () => Promise.all(ids.map((id) => limiter(id))));
    for (const id of ['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd']) await limiter(id);
    expect(await runsFor(['b', 'c', 'd'])).toBe(0);
    expect(await runsFor(['a'])).toBe(1);
    expect(await runsFor(['b'])).toBe(1);
    expect(await runsFor(['a', 'd'])).toBe(0);
  });

  test('with a block and new limits', async () => {
    const limiter = make();
    const expectOf = async (expected) =>
      expect(await limiter.attempt('a')).toMatchObject({ allowed: false, ...expected });
    await limiter.block('a', HOUR);
    for (let i = 0; i < 2; i++) await expectOf({ blockedBy: 'block', actionsLeft: 1 });
    await limiter.block('a', 0);
    expect(await limiter('a')).toBe(0);
    for (let i = 0; i < 2; i++) await expectOf({ blockedBy: 'count' });
    limiter.setLimits([{ interval: HOUR, maxInInterval: 2 }]);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(limiter.stats().localRefusals).toBe(2);
  });

  test.each([
    ['a clear', (limiter) => limiter.clear('a')],
    ['its time', (_limiter, time) => time.advance(HOUR)],
  ])('whose answer comes after %s', async (_name, pass) => {
    const time = handClock();
    const gated = await gatedClient(server.url);
    const redis = { client: gated.client, commandTimeout: patient(15_000) };
    const limiter = make({ redis, clock: time.clock });
    await limiter('a');
    const held = gated.holdReply();
    const late = limiter('a');
    const release = await held;
    await pass(limiter, time);
    release();
    expect(await late).toBeGreaterThan(0);
    expect(await limiter('a')).toBe(0);
    gated.close();
  });
});

test('wait wakes when the id is allowed', async () => {
  const limiter = await refused({ interval: patient(500) });
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
