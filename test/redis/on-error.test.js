// What onError makes of an outage: who decides meanwhile, and that Redis decides again afterwards.
'use strict';

const RateLimiter = require('../..');
const { handClock } = require('../support/hand-clock');
const { errorOf, outcomeOf } = require('../support/outcome');
const { REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { waitUntil } = require('../support/wait-until');

const LIMITS = [
  { interval: 1000, maxInInterval: 3 },
  { interval: 60_000, maxInInterval: 5 },
];
const { using, closeAll } = openings();
let server;
let namespaces = 0;

beforeAll(async () => {
  server = await startRedis();
});
afterEach(closeAll);
afterEach(async () => {
  if (server.frozen) server.thaw();
  if (server.pid === undefined) await server.restart();
});

function limiterWith(onError, options) {
  namespaces += 1;
  const namespace = `on-error-${namespaces}`;
  const redis = { ...using(REDIS_CLIENTS['node-redis 6'].open(server.url)), commandTimeout: 200 };
  return RateLimiter({ redis, onError, namespace, limits: LIMITS, ...options });
}

/** Whether Redis decides: a fallback would be counted. */
const isBack = (limiter) => async () => {
  const { fallbacks } = limiter.stats();
  await limiter.peek('back?');
  return limiter.stats().fallbacks === fallbacks;
};

test("'throw' is the default", async () => {
  const limiter = limiterWith(undefined);
  await limiter('a');
  await server.freeze();
  expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
  expect(await outcomeOf(limiter.limit('a'))).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
  const error = await new Promise((resolve) => limiter('a', resolve));
  expect(error.code).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
  expect(limiter.stats()).toMatchObject({ errors: 3, fallbacks: 0 });
});

test("'allow' allows as if every id were new", async () => {
  const limiter = limiterWith('allow', { countBlocked: false });
  const first = await limiter.attempt('a', { cost: 2 });
  await server.freeze();
  for (let i = 0; i < 5; i++) {
    const decision = await limiter.attempt('a', { cost: 2 });
    expect({ ...decision }).toEqual({ ...first });
    expect(await limiter.refund(decision)).toBe(false);
  }
  expect([await limiter('a'), await limiter.limit('a'), await limiter.wouldLimit('a')]).toEqual([
    0,
    false,
    false,
  ]);
  const many = await limiter.attemptMany(['a', 'a', 'a', 'a']);
  expect(many.map(({ allowed, actionsLeft }) => [allowed, actionsLeft])).toEqual(
    Array(4).fill([true, 2]),
  );
  expect(limiter.stats()).toMatchObject({ allowed: 12, blocked: 0, fallbacks: 12 });
  server.thaw();
  await waitUntil('Redis decides again', isBack(limiter));
  expect(await limiter.refund(first)).toBe(true);
});

test("'block' refuses for a second", async () => {
  const limiter = limiterWith('block');
  await limiter('a');
  await server.freeze();
  expect({ ...(await limiter.attempt('a')) }).toEqual({
    allowed: false,
    timeLeft: 1000,
    actionsLeft: 0,
    resetIn: 1000,
    blockedBy: 'block',
    limits: LIMITS.map((limit) => ({
      ...limit,
      used: limit.maxInInterval,
      remaining: 0,
      resetIn: 1000,
    })),
  });
  expect(await limiter('b')).toBe(1000);
  expect(await limiter.limitWithInfo('a')).toEqual({
    blocked: true,
    blockedDueToCount: false,
    blockedDueToMinDifference: false,
    millisecondsUntilAllowed: 1000,
    actionsRemaining: 0,
  });
  expect((await limiter.attemptMany(['a', 'b'])).map(({ blockedBy }) => blockedBy)).toEqual([
    'block',
    'block',
  ]);
  server.thaw();
  await waitUntil('Redis decides again', isBack(limiter));
  expect(await limiter('b')).toBe(0);
});

test("'memory' decides in memory until Redis answers again", async () => {
  const time = handClock();
  const limiter = limiterWith('memory', { clock: time.clock, countBlocked: false });
  const ofRedis = await limiter.attempt('a');
  await server.freeze();
  const decisions = await Promise.all([1, 2, 3, 4].map(() => limiter.attempt('a')));
  expect(decisions.map(({ timeLeft }) => timeLeft)).toEqual([0, 0, 0, 1000]);
  expect(await limiter.refund(decisions[0])).toBe(true);
  expect(await limiter.refund(decisions[0])).toBe(false);
  expect(await limiter('a')).toBe(0);
  time.advance(1000);
  expect((await limiter.attempt('a')).limits[1].used).toBe(4);
  expect((await limiter.attemptMany(['a', 'a'])).map(({ allowed }) => allowed)).toEqual([
    true,
    false,
  ]);
  expect(await outcomeOf(limiter.refund(ofRedis))).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
  server.thaw();
  await waitUntil('Redis decides again', isBack(limiter));
  expect(await limiter.refund(decisions[1])).toBe(true);
});

test('an outage is noticed once: afterwards nobody waits', async () => {
  const limiter = limiterWith('memory');
  await limiter('a');
  await server.freeze();
  await limiter('a');
  const { errors } = limiter.stats();
  const start = performance.now();
  for (let i = 0; i < 1000; i++) await limiter(i);
  expect(performance.now() - start).toBeLessThan(2000);
  expect(limiter.stats()).toMatchObject({ errors, fallbacks: 1001 });
  expect(limiter.stats().connection.pending).toBeLessThanOrEqual(1);
});

test('a server that dies and comes back', async () => {
  const limiter = limiterWith('block');
  await limiter('a');
  await server.stop();
  expect(await limiter('a')).toBe(1000);
  await server.restart();
  await waitUntil('Redis decides again', isBack(limiter));
  expect(await limiter('a')).toBe(0);
});

test('an error reply is softened, and Redis asked again at once', async () => {
  const limiter = limiterWith('allow', { namespace: 'on-error-reply' });
  await server.command('SET', 'on-error-reply{a}', 'x');
  for (let i = 0; i < 5; i++) expect(await limiter('a')).toBe(0);
  expect(limiter.stats()).toMatchObject({ errors: 5, fallbacks: 5 });
  const answers = [];
  for (let i = 0; i < 4; i++) answers.push((await limiter.attempt('b')).actionsLeft);
  expect(answers).toEqual([2, 1, 0, 0]);
});

test('a client that its owner closed', async () => {
  const limiter = limiterWith('allow');
  await limiter('a');
  await closeAll();
  expect([await limiter('a'), await limiter('a')]).toEqual([0, 0]);
});

test.each([['allow'], ['block'], ['memory']])(
  "'%s' softens decisions, never mistakes of the program",
  async (onError) => {
    const time = handClock();
    const limiter = limiterWith(onError, { clock: time.clock });
    const decision = await limiter.attempt('a');
    await server.freeze();
    await limiter('a');
    expect(await outcomeOf(limiter({}))).toBe('ERR_ROLLGATE_ID');
    expect(await outcomeOf(limiter('\ud800'))).toBe('ERR_ROLLGATE_ID');
    expect(await outcomeOf(limiter.attempt('a', { cost: 4 }))).toBe('ERR_ROLLGATE_COST');
    expect(await outcomeOf(limiter.refund(decision))).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
    expect(await outcomeOf(limiter.clear('a'))).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
    expect(await outcomeOf(limiter.clearAll())).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
    time.set(Number.NaN);
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_CLOCK');
    await limiter.close();
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_CLOSED');
  },
);

test('the callback form hears of the fallback', async () => {
  const limiter = limiterWith('block');
  await limiter('a');
  await server.freeze();
  const answer = await new Promise((resolve) => limiter('a', (...args) => resolve(args)));
  expect(answer).toEqual([null, 1000, 0]);
});

test('a limiter that is closed while a call waits', async () => {
  const limiter = limiterWith('memory');
  await limiter('a');
  await server.freeze();
  const waiting = errorOf(limiter('a'));
  await limiter.close();
  expect((await waiting).code).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
});
