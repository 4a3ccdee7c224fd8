// Clients of every kind and several processes at once on one namespace: together they get the limit.
'use strict';

const RateLimiter = require('../..');
const { REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');

const { using, closeAll } = openings();
const HOUR = 3_600_000;
const LIMIT = { interval: HOUR, maxInInterval: 100, countBlocked: false };
let server;

beforeAll(async () => {
  server = await startRedis();
});

describe('all clients on one namespace', () => {
  afterEach(closeAll);

  const limitersOn = (namespace, options) =>
    Object.values(REDIS_CLIENTS).map(({ open }) => {
      const redis = { ...using(open(server.url)), commandTimeout: 10_000 };
      return RateLimiter({ redis, namespace, ...LIMIT, ...options });
    });

  test.each([
    ['a short log', {}],
    ['a long log', { maxInInterval: 300 }],
    [
      'several windows',
      { limits: [200, 90].map((maxInInterval) => ({ interval: HOUR, maxInInterval })) },
    ],
  ])('get together what one is allowed: %s', async (name, options) => {
    const limiters = limitersOn(name, options);
    const max = options.limits ? 90 : (options.maxInInterval ?? LIMIT.maxInInterval);
    const each = Math.ceil((2 * max) / limiters.length);
    const calls = limiters.flatMap((limiter) =>
      Array.from({ length: each }, (_, i) =>
        i % 2 ? limiter('a') : limiter.attempt('a').then(({ timeLeft }) => timeLeft),
      ),
    );
    const answers = await Promise.all(calls);
    expect(answers.filter((timeLeft) => timeLeft === 0)).toHaveLength(max);
  });

  test('see and take back what others recorded', async () => {
    const limiters = limitersOn('together');
    for (const [i, limiter] of limiters.entries()) {
      const decision = await limiter.attempt('a', { cost: 2 });
      expect(decision.limits[0].used).toBe(i + 2);
      await limiter.refund(decision);
      await limiter('a');
    }
    await limiters[0].clear('a');
    for (const limiter of limiters) expect((await limiter.peek('a')).limits[0].used).toBe(1);
  });
});

/** A process that hurries through attempts and prints how many were allowed. */
const racer = (clientName, url, namespace) => `
  const RateLimiter = require('rollgate');
  const { REDIS_CLIENTS } = require('./test/support/redis-clients');
  const redis = {
    ...REDIS_CLIENTS[${JSON.stringify(clientName)}].open(${JSON.stringify(url)}),
    commandTimeout: 15_000,
  };
  const options = { ...${JSON.stringify(LIMIT)}, redis, namespace: ${JSON.stringify(namespace)} };
  (async () => {
    const limiter = RateLimiter(options);
    let allowed = 0;
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => limiter('a')));
      allowed += answers.filter((timeLeft) => timeLeft === 0).length;
    }
    console.log(allowed);
    process.exit();
  })();
`;

test('processes that race get the limit, all in all', async () => {
  const names = Object.keys(REDIS_CLIENTS).filter((name) => !/ [345]$/.test(name));
  const racing = [...names, ...names];
  const allowed = await Promise.all(
    racing.map((name) => askProgram(racer(name, server.url, 'race'))),
  );
  expect(allowed.reduce((sum, own) => sum + own, 0)).toBe(LIMIT.maxInInterval);
});
