// The storage for @nestjs/throttler: rolling windows by itself, and under the real guard.
'use strict';

require('reflect-metadata');
const { Controller, Get, Module } = require('@nestjs/common');
const { APP_GUARD, NestFactory } = require('@nestjs/core');
const { Throttle, ThrottlerGuard, ThrottlerModule } = require('@nestjs/throttler');
const fc = require('fast-check');
const { RollgateThrottlerStorage } = require('../../lib/adapters/nest-throttler');
const { redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { casesOf } = require('../support/tiers');
const { fetchText, inTurn, useHandMovedClock, withCode } = require('./apps');

const TTL = 1000;
const time = useHandMovedClock();

const newStorage = (options) => new RollgateThrottlerStorage({ clock: time.clock, ...options });

/** What the guard asks; by default without blocks. */
const hit = (storage, { key = 'a', ttl = TTL, limit = 2, block = 0, name = 'default' } = {}) =>
  storage.increment(key, ttl, limit, block, name);

const blockedOf = async (storage, ...asked) =>
  (await inTurn(asked, (each) => hit(storage, each))).map(({ isBlocked }) => isBlocked);

test('it allows what an exact rolling window allows, under the limit of each call', async () => {
  const step = fc.record({
    wait: fc.integer({ min: 0, max: 700 }),
    limit: fc.constantFrom(-1, 0, 1, 2, 2.5, 3, Number.POSITIVE_INFINITY),
  });
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
    const storage = newStorage();
    const hits = [];
    for (const { wait, limit } of steps) {
      time.advance(wait);
      const inside = hits.filter((at) => at > Date.now() - TTL).length;
      const { isBlocked, totalHits } = await hit(storage, { limit });
      expect(isBlocked).toBe(inside >= Math.floor(limit));
      expect(totalHits > limit).toBe(isBlocked);
      if (isBlocked || limit === Number.POSITIVE_INFINITY) continue; // which counts nothing
      expect(totalHits).toBe(inside + 1);
      hits.push(Date.now());
    }
  });
  await fc.assert(property, { numRuns: casesOf(300) });
});

test('times are seconds, rounded up', async () => {
  const storage = newStorage();
  const asked = { ttl: 2500, limit: 1 };
  const first = { totalHits: 1, timeToExpire: 3, isBlocked: false, timeToBlockExpire: 0 };
  expect(await hit(storage, asked)).toEqual(first);
  time.advance(600);
  const second = { totalHits: 2, timeToExpire: 2, isBlocked: true, timeToBlockExpire: 2 };
  expect(await hit(storage, asked)).toEqual(second);
});

test('blockDuration refuses a key for that long after a refusal', async () => {
  const storage = newStorage();
  const asked = { limit: 1, block: 5000 };
  const other = { ...asked, key: 'b' };
  expect(await blockedOf(storage, asked, asked, other)).toEqual([false, true, false]);
  time.advance(4999);
  expect((await hit(storage, asked)).timeToBlockExpire).toBe(1);
  time.advance(1);
  expect(await blockedOf(storage, asked)).toEqual([false]);
});

test('keys, throttlers and windows count apart, limits together', async () => {
  const storage = newStorage();
  const one = { limit: 1 };
  const others = [{ key: 'b' }, { name: 'long' }, { ttl: 2000 }, { block: 1 }];
  expect(await blockedOf(storage, one, ...others.map((other) => ({ ...one, ...other })))).toEqual(
    Array(5).fill(false),
  );
  expect(await blockedOf(storage, one, { limit: 2 }, { limit: 2 })).toEqual([true, false, true]);
});

test('countBlocked counts refused requests, and gcra counts under any limit', async () => {
  const storage = newStorage({ countBlocked: true });
  await blockedOf(storage, {}, {}, {});
  time.advance(999);
  expect(await blockedOf(storage, {})).toEqual([true]);
  const one = { limit: 3 };
  const gcra = newStorage({ algorithm: 'gcra' });
  expect(await blockedOf(gcra, {}, {}, {}, one, one)).toEqual([false, false, true, false, true]);
});

test.each([
  [{ ttl: 5 }, TypeError, "option 'ttl': expected as 'ttl' of a throttler"],
  [{ max: 5 }, TypeError, "option 'max': expected as 'limit' of a throttler"],
  [{ blockFor: 5 }, TypeError, "option 'blockFor': expected as 'blockDuration' of a throttler"],
  [{ limits: [] }, TypeError, 'unknown option "limits"'],
  [{ redis: 'redis://localhost', lease: 100 }, TypeError, "option 'lease': not available here"],
  [{ namespace: '{}' }, RangeError, "option 'namespace'"],
])('new RollgateThrottlerStorage(%j) is refused', (options, Kind, message) => {
  const create = () => new RollgateThrottlerStorage(options);
  for (const expected of [Kind, withCode('ERR_ROLLGATE_OPTION'), message])
    expect(create).toThrow(expected);
});

test.each([
  [{ ttl: 0 }, "option 'ttl'"],
  [{ ttl: Number.NaN }, "option 'ttl'"],
  [{ block: -1 }, "option 'blockDuration'"],
  [{ limit: Number.NaN }, "option 'limit'"],
  [{ limit: '5' }, "option 'limit'"],
])('a throttler with %j is an error of the request', async (asked, message) => {
  const storage = newStorage();
  await expect(hit(storage, asked)).rejects.toThrow(message);
  await expect(hit(storage, asked)).rejects.toThrow(withCode('ERR_ROLLGATE_OPTION'));
  expect(await blockedOf(storage, {})).toEqual([false]);
});

test('a ttl that is different each time is an error after 1000 of them', async () => {
  const storage = newStorage();
  for (let ttl = 1; ttl <= 1000; ttl++) await hit(storage, { ttl });
  await expect(hit(storage, { ttl: 1001 })).rejects.toThrow(withCode('ERR_ROLLGATE_STORE'));
  expect(await blockedOf(storage, { ttl: 1000 }, { ttl: 1000 })).toEqual([false, true]);
});

test('storages with one namespace on Redis share their counts', async () => {
  const options = { redis: redisAt((await startRedis()).url), namespace: 'n', clock: undefined };
  const storages = [newStorage(options), newStorage(options)];
  const asked = { ttl: 3_600_000, block: 3_600_000 };
  const answers = await inTurn([...storages, ...storages], (storage) => hit(storage, asked));
  expect(answers.map(({ isBlocked }) => isBlocked)).toEqual([false, false, true, true]);
  for (const storage of storages) await storage.onApplicationShutdown();
});

test('under ThrottlerGuard, limits each route, sends the headers, and closes with the application', async () => {
  const storage = new RollgateThrottlerStorage({ clock: () => 0 });
  const throttlers = [{ ttl: 60_000, limit: 3, blockDuration: 0 }];
  // What decorators do in TypeScript.
  class Pages {
    usual() {
      return 'passed';
    }
  }
  Pages.prototype.tight = () => 'passed';
  const decorate = (method, ...decorators) => {
    const descriptor = Object.getOwnPropertyDescriptor(Pages.prototype, method);
    for (const decorator of decorators) decorator(Pages.prototype, method, descriptor);
  };
  Controller()(Pages);
  decorate('usual', Get('/'));
  decorate('tight', Get('/tight'), Throttle({ default: { limit: 1, ttl: 60_000 } }));
  class Root {}
  Module({
    imports: [ThrottlerModule.forRoot({ throttlers, storage })],
    controllers: [Pages],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })(Root);
  const app = await NestFactory.create(Root, { logger: false });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const get = (path) => fetchText(url + path);

  const answers = await inTurn(['/', '/', '/', '/', '/tight', '/tight'], get);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429, 200, 429]);
  const [{ headers }, , , refused] = answers;
  const sent = ['limit', 'remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}`));
  expect(sent).toEqual(['3', '2', '60']);
  expect(refused.headers.get('retry-after')).toBe('60');
  await app.close();
  const closed = withCode('ERR_ROLLGATE_CLOSED');
  await expect(hit(storage)).rejects.toThrow(closed);
  await expect(hit(storage, { ttl: 5 })).rejects.toThrow(closed);
});
