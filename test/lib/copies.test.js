// Several copies of the package in one program, as after jest.resetModules(): what one made, the others take.
'use strict';

const RateLimiter = require('../..');
const { rateLimitFetch } = require('../../lib/adapters/fetch');
const { hasNativeRedis } = require('../support/bindings');
const { HOUR_MS, useFastify } = require('../middleware/apps');
const { catchError } = require('../support/set-up');

const { answer, newApp, own, rollgate, serve, statusesAt } = useFastify();
const GOOD = { interval: HOUR_MS, maxInInterval: 2, clock: () => 0 };

/** What `read` returns where the module cache is empty. What is loaded later comes from the usual cache. */
function inAnotherCopy(read) {
  let result;
  jest.isolateModules(() => {
    result = read();
  });
  return result;
}

const other = inAnotherCopy(() => require('../..'));

test('attemptAll takes limiters of every copy, and a refusal takes back what they recorded', () => {
  expect(other).not.toBe(RateLimiter);
  const [mine, others] = [RateLimiter(GOOD), other({ ...GOOD, maxInInterval: 1 })];
  const both = [
    { limiter: mine, id: 'a' },
    { limiter: others, id: 'a' },
  ];
  expect(RateLimiter.attemptAll(both).allowed).toBe(true);
  expect(other.attemptAll(both)).toMatchObject({ allowed: false, refusedBy: 1 });
  expect([mine.usage('a').used, others.usage('a').used]).toEqual([1, 1]);
  const bound = [{ limiter: mine.bind(null), id: 'a' }];
  expect(() => RateLimiter.attemptAll(bound)).toThrow('attemptAll[0].limiter');
});

test('a middleware reads and checks a limiter of another copy as its own', async () => {
  for (const make of [RateLimiter, other]) {
    let now = 0;
    const limiter = make({ ...GOOD, maxInInterval: 1, clock: () => now });
    const limit = rateLimitFetch({ limiter, cost: 2, keyGenerator: () => 'a' });
    limiter('a');
    now += 1000;
    const { decision } = await limit(new Request('http://host/'), { ip: '192.0.2.1' });
    expect(decision).toMatchObject({ allowed: false, resetIn: HOUR_MS - 1000 });
    const limits = [{ interval: HOUR_MS, maxInInterval: 2, name: 'tokens' }];
    const wrong = () => RateLimiter.rateLimit({ limiter: make({ limits }), cost: { tokesn: 1 } });
    expect(catchError(wrong)).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  }
});

(hasNativeRedis ? test : test.skip)('a limiter takes a connection of another copy', async () => {
  const connection = inAnotherCopy(() => require('../..').createRedisConnection('redis://h'));
  const limiter = RateLimiter({ ...GOOD, connection });
  expect(limiter.detectedClientType).toBe('hiredis');
  await limiter.close();
});

test('stores of express-rate-limit are named by their limiters, whatever copy made the stores', () => {
  const Store = require('../../lib/adapters/express-rate-limit-store');
  const OtherStore = inAnotherCopy(() => require('../../lib/adapters/express-rate-limit-store'));
  const [mine, others] = [RateLimiter(GOOD), other(GOOD)];
  const prefixOf = (limiter, Class) => new Class({ limiter }).prefix;
  const prefix = prefixOf(mine, Store);
  expect(prefixOf(others, OtherStore)).not.toBe(prefix);
  expect(prefixOf(mine, OtherStore)).toBe(prefix);
});

test('a route of Fastify is counted in the nearest scope, whatever copies the plugins are of', async () => {
  const app = newApp();
  const keyGenerator = jest.fn(() => 'a');
  app.register(
    inAnotherCopy(() => require('../../lib/adapters/fastify')),
    { ...GOOD, keyGenerator },
  );
  app.register(async (scope) => {
    scope.register(rollgate, GOOD);
    scope.get('/own', own({ limit: 1 }), answer);
  });
  expect(await statusesAt(await serve(app), '/own', '/own')).toEqual([200, 429]);
  expect(keyGenerator).not.toHaveBeenCalled();
});
