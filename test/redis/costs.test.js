// Limiters on Redis with costs: calls of one turn, settled attempts of named limits, and what of it is in a key.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { expectEqual } = require('../support/outcome');
const { clientAt } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const { LOG, START_US } = require('../support/scripts-on-redis');
const { handClock } = require('../support/set-up');
const { casesOf, patient } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const TRACES = casesOf(process.env.ROLLGATE_SANITIZED ? 60 : 180);
const STEPS = 80;
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

const PATIENT = { commandTimeout: patient(15_000) };
const server = redisForTests();
let client;
const limiters = [];
beforeAll(() => {
  client = clientAt(server.url);
});
const natively = () => ({ url: server.url, ...PATIENT });
afterEach(() => Promise.all(limiters.splice(0).map((limiter) => limiter.close())));
beforeEach(() => client.flushall());

function make(options) {
  const limiter = RateLimiter({ countBlocked: false, ...options });
  limiters.push(limiter);
  return limiter;
}
/** Two limiters of the same options, one in memory and one on Redis. */
const makeBoth = (options, on) => [make(options), make({ ...options, ...on })];
const shown = ({ toJSON, ...decision }) => decision;
const limitOf = (maxInInterval, name) => ({ interval: 60_000, maxInInterval, ...name });

const CLIENTS = [
  ['natively', natively],
  ['through ioredis', () => ({ client, ...PATIENT })],
];
const EACH = ALGORITHMS.flatMap((algorithm) => CLIENTS.map((each) => [algorithm, ...each]));

// Kills: amounts in the order of another group; an entry for each of many costs at one moment.
test.each(EACH)('%s: calls of one turn have their own costs, %s', async (algorithm, _, on) => {
  const named = [limitOf(300, { name: 'requests' }), limitOf(90_000, { name: 'tokens' })];
  for (const limits of [[limitOf(1000)], [limitOf(2_000_000)], named]) {
    await client.flushall();
    const { clock } = handClock(START_US / 1000);
    const options = { limits, algorithm, clock };
    const both = makeBoth(options, { redis: on(), namespace: 'ns' });
    const costOf = (i) => {
      const cost = i % 7 === 0 ? 1 : 400 + i;
      return limits === named ? { requests: i % 5, tokens: cost } : cost;
    };
    const attemptAll = (limiter) =>
      Array.from({ length: 300 }, (_each, i) => limiter.attempt(`${i % 3}`, { cost: costOf(i) }));
    const [expected, came] = await Promise.all(both.map((one) => Promise.all(attemptAll(one))));
    expect(came.map(shown)).toEqual(expected.map(shown));
    const isPlainLog = algorithm === LOG && limits[0].maxInInterval === 1000;
    expect(await client.strlen('ns{1}')).toBeLessThan(isPlainLog ? 4000 : 200);
  }
});

// Kills: a refund of what has leaked since the attempt, or of what others made after it.
test('settle named limits of gcra as the store in memory does', async () => {
  const NAMES = ['requests', 'tokens', 'bytes'];
  for (let seed = 1; seed <= TRACES; seed++) {
    const random = randomFrom(seed);
    const named = NAMES.slice(0, random.between(1, 3)).map((name) => ({
      name,
      interval: random.pick([1, 7, 60]),
      maxInInterval: random.pick([3, 40, 1500]),
    }));
    const { clock, advance } = handClock(START_US / 1000);
    const options = { limits: named, algorithm: 'gcra', clock };
    const both = makeBoth(options, { redis: natively(), namespace: `gcra${seed}` });
    const made = [];
    const costsOf = (largest) =>
      Object.fromEntries(
        named.map(({ name, maxInInterval }) => [
          name,
          random.chance(20) ? 0 : random.between(1, largest(maxInInterval)),
        ]),
      );
    for (let step = 0; step < STEPS; step++) {
      const context = { seed, step };
      advance(random.pick([0, 0, 1, 250, 3000]) / 1000);
      if (made.length === 0 || random.chance(60)) {
        const cost = costsOf((most) => random.pick([1, Math.ceil(most / 4), most]));
        if (sum(Object.values(cost)) === 0) continue;
        const decisions = await Promise.all(both.map((one) => one.attempt('a', { cost })));
        const [expected, came] = decisions.map(shown);
        expectEqual(came, expected, context);
        if (expected.allowed) made.push(decisions);
      } else {
        const [decisions] = made.splice(random.between(0, made.length - 1), 1);
        const actual = random.chance(30) ? 0 : costsOf((most) => 2 * most);
        const settle = (one, i) =>
          actual === 0 ? one.refund(decisions[i]) : one.settle(decisions[i], actual);
        const [expected, came] = await Promise.all(both.map(settle));
        expectEqual(came, expected, { ...context, actual });
      }
      const [expected, came] = await Promise.all(both.map((one) => one.usage('a')));
      expectEqual(came, expected, context);
    }
  }
});

test('a key of named limits of gcra lives as long as its attempts can be settled', async () => {
  const limits = [{ name: 'tokens', interval: 84_000, maxInInterval: 100 }];
  const limiter = make({ limits, algorithm: 'gcra', redis: natively(), namespace: 'ns' });
  const decision = await limiter.attempt('a', { cost: { tokens: 1 } }); // leaks in 840 ms
  const times = [await client.pttl('ns{a}')];
  await limiter.block('a', 1000);
  times.push(await client.pttl('ns{a}'));
  await limiter.settle(decision, { tokens: 0 });
  times.push(await client.pttl('ns{a}'));
  for (const ms of times) expect(ms).toBeGreaterThan(42_000);
});

// Kills: an excess of sums that are no exact numbers, so that the total wraps to 0.
test('an overdraft of nearly 2^53 is not forgotten', async () => {
  const limits = [limitOf(1000, { name: 'tokens' })];
  const limiter = make({ limits, countBlocked: true, redis: natively(), namespace: 'ns' });
  const attempt = (tokens) => limiter.attempt('a', { cost: { tokens } });
  const first = await attempt(5);
  await attempt(5);
  expect(await limiter.settle(first, { tokens: 2 ** 53 - 1 })).toBe(true);
  await attempt(2);
  expect((await limiter.usage('a')).used).toBe(2 ** 53 - 1);
});

test('a plain log of many actions becomes a weighted one that uses as much', async () => {
  const limiter = make({ ...limitOf(10_000), redis: natively(), namespace: 'ns' });
  for (let i = 0; i < 50; i++) {
    await Promise.all(Array.from({ length: 60 }, () => limiter('a')));
  }
  await limiter.attempt('a', { cost: 500 });
  expect((await limiter.usage('a')).used).toBe(3500);
  expect(await client.strlen('ns{a}')).toBeLessThan(10_000);
  expect(await limiter('a')).toBe(0);
  expect((await limiter.attempt('a', { cost: 6500 })).allowed).toBe(false);
});
