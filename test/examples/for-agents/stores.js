// What docs/for-agents.md says about stores, their failures, leases, and the end of limiters and programs.
'use strict';

const { randomUUID } = require('node:crypto');
const net = require('node:net');
const { once } = require('node:events');
const RateLimiter = require('../../..');
const { createPlainKv } = require('../../support/kv-stores');
const { runProgram } = require('../../support/run-program');

const withCode = (code) => expect.objectContaining({ code: `ERR_ROLLGATE_${code}` });
const WINDOW = { interval: 60_000, maxInInterval: 1 };
const PATIENT = { commandTimeout: 10_000 };

/** A URL of Redis at which nobody answers. */
async function deadUrl() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return `redis://127.0.0.1:${port}`;
}

const onRedis = (url) => ({ redis: { url, ...PATIENT }, namespace: randomUUID() });

/** What a program prints, which must end by itself. */
async function printedBy(source, redisUrl) {
  const program = `const RateLimiter = require('rollgate');\n${source}`;
  const { code, stdout } = await runProgram(program, { env: { REDIS_URL: redisUrl } });
  expect(code).toBe(0);
  return stdout;
}

exports.sections = {
  Stores: {
    'Counts in memory belong to one limiter object: n processes allow n times the limit, and a limiter that is created in a request handler refuses nobody. Create one per purpose, outside of handlers; it serves all ids.'() {
      const handle = () => RateLimiter(WINDOW)('ada');
      expect([handle(), handle()]).toEqual([0, 0]);
      const limiter = RateLimiter(WINDOW);
      expect([limiter('ada'), limiter('bob'), limiter('ada') > 0]).toEqual([0, 0, true]);
    },
    'In memory and with `shared`, `limiter(id)` and `attempt(id)` return the result at once; with `redis` and `kv`, they return a promise of it. Without `await`, `limiter(id) === 0` and `limiter(id) > 0` are both false there, so nobody is refused.':
      async ({ make, redisUrl }) => {
        expect(RateLimiter(WINDOW)('ada')).toBe(0);
        if (process.platform === 'linux') {
          const shared = `for-agents-${randomUUID()}`;
          expect(RateLimiter({ ...WINDOW, shared })('ada')).toBe(0);
          RateLimiter.unlinkShared(shared);
        }
        const kv = { kv: createPlainKv(), namespace: 'api' };
        expect(await RateLimiter({ ...WINDOW, ...kv })('ada').then((timeLeft) => timeLeft)).toBe(0);
        const limiter = make(onRedis(redisUrl));
        const result = limiter('ada');
        expect([result === 0, result > 0]).toEqual([false, false]);
        expect([await result, (await limiter.attempt('ada')).allowed]).toEqual([0, false]);
      },
    'On Redis, limiters share their counts only if they have the same `namespace`; without one, each has a random one. `kv` requires it.':
      async ({ make, redisUrl }) => {
        const kv = { get: async () => null, set: async () => true };
        expect(() => RateLimiter({ ...WINDOW, kv })).toThrow(withCode('OPTION'));
        const { redis, namespace } = onRedis(redisUrl);
        const firstOf = (options) => make({ redis, ...options })('ada');
        expect([await firstOf(), await firstOf()]).toEqual([0, 0]);
        expect(await firstOf({ namespace })).toBe(0);
        expect(await firstOf({ namespace })).toBeGreaterThan(0);
      },
    'Creating a limiter does no I/O: with a Redis that is down, it succeeds, and the first call fails.':
      async ({ make }) => {
        const limiter = make(onRedis(await deadUrl()));
        await expect(limiter('ada')).rejects.toEqual(withCode('REDIS_UNREACHABLE'));
      },
    "If Redis fails, the call fails by default (`onError: 'throw'`); nothing is allowed or refused by itself. `'allow'` allows, `'block'` refuses, `'memory'` counts in this process.":
      async ({ make }) => {
        const down = onRedis(await deadUrl());
        const twice = async (onError) => {
          const limiter = make({ ...down, onError });
          return [(await limiter.attempt('ada')).allowed, (await limiter.attempt('ada')).allowed];
        };
        await expect(make(down)('ada')).rejects.toEqual(withCode('REDIS_UNREACHABLE'));
        expect(await twice('allow')).toEqual([true, true]);
        expect(await twice('block')).toEqual([false, false]);
        expect(await twice('memory')).toEqual([true, false]);
      },
    "`onError` is for stores, not for mistakes: with `'allow'`, a wrong id or cost is an error, too.":
      async ({ make }) => {
        const limiter = make({ ...onRedis(await deadUrl()), onError: 'allow' });
        await expect(limiter({})).rejects.toEqual(withCode('ID'));
        await expect(limiter.attempt('ada', { cost: 2 })).rejects.toEqual(withCode('COST'));
      },
    'A full limiter forgets: in memory, after `maxKeys` ids (1,000,000 by default), a new id replaces the one nearest to expiry, which then begins at 0.'() {
      let now = 0;
      const limiter = RateLimiter({ ...WINDOW, maxKeys: 8, clock: () => now });
      limiter('ada');
      now = 1000;
      for (let i = 0; i < 8; i++) limiter(i);
      expect(limiter.peek('ada').allowed).toBe(true);
      expect(limiter.stats().evicted).toBe(1);
    },
    '`shared` is for Linux and needs the native addon; `redis` with a URL needs it, too. Elsewhere they are errors (`ERR_ROLLGATE_UNSUPPORTED`), and `redis` takes a client of ioredis or node-redis.':
      async ({ redisUrl }) => {
        const printed = await printedBy(
          `process.env.ROLLGATE_BINDING = 'wasm';
          for (const store of [{ shared: 'api' }, { redis: '${redisUrl}' }]) {
            try {
              RateLimiter({ interval: 1000, maxInInterval: 1, ...store });
            } catch (error) {
              console.log(error.code);
            }
          }
          const client = new (require('ioredis'))('${redisUrl}', { lazyConnect: true });
          const limiter = RateLimiter({ interval: 1000, maxInInterval: 1, redis: client });
          limiter('ada').then((timeLeft) => client.quit(console.log(timeLeft)));`,
        );
        expect(printed).toBe('ERR_ROLLGATE_UNSUPPORTED\nERR_ROLLGATE_UNSUPPORTED\n0\n');
      },
  },

  Leases: {
    "`lease` is refused together with `RateLimiter`'s default: it requires `countBlocked: false`.":
      ({ redisUrl }) => {
        const options = { ...WINDOW, ...onRedis(redisUrl), lease: 1000 };
        expect(() => RateLimiter(options)).toThrow(withCode('OPTION'));
        expect(() => RateLimiter({ ...options, countBlocked: false })).not.toThrow();
      },
    'Permits that one process holds and does not use count as used for all others. `close()` gives them back, so close such a limiter before the program ends.':
      async ({ make, redisUrl }) => {
        let now = Date.now();
        const options = { ...onRedis(redisUrl), countBlocked: false, clock: () => now };
        const leasing = make({ ...options, maxInInterval: 1000, lease: 1000 });
        const other = make({ ...options, maxInInterval: 1000 });
        for (let i = 0; leasing.stats().leases === 0; i++) {
          expect(i).toBeLessThan(1000);
          await leasing('ada');
          now += 50;
        }
        const { allowed } = leasing.stats();
        expect((await other.usage('ada')).used).toBeGreaterThan(allowed);
        await leasing.close();
        expect((await other.usage('ada')).used).toBe(allowed);
      },
  },

  'The end': {
    'A limiter does not keep a program running, also on Redis, and need not be closed for that.':
      async ({ redisUrl }) => {
        const printed = await printedBy(
          `const window = { interval: 60_000, maxInInterval: 1 };
          const limiters = [{}, { redis: process.env.REDIS_URL }].map((store) => RateLimiter({ ...window, ...store }));
          Promise.all(limiters.map((limiter) => limiter('ada'))).then((all) => console.log(...all));`,
          redisUrl,
        );
        expect(printed).toBe('0 0\n');
      },
    'A pending `wait` keeps the program running until it is allowed.': async () => {
      const printed = await printedBy(
        `const limiter = RateLimiter({ interval: 300, maxInInterval: 1 });
        limiter('ada');
        limiter.wait('ada').then(() => console.log('allowed'));`,
      );
      expect(printed).toBe('allowed\n');
    },
    'After `close()`, every call fails with `ERR_ROLLGATE_CLOSED`, and what waits is rejected with it. A second `close()` is no error.':
      async () => {
        const limiter = RateLimiter(WINDOW);
        limiter('ada');
        const waiting = limiter.wait('ada');
        await Promise.all([limiter.close(), limiter.close()]);
        await expect(waiting).rejects.toEqual(withCode('CLOSED'));
        for (const call of [limiter, limiter.attempt, limiter.peek, limiter.usage]) {
          expect(() => call.call(limiter, 'ada')).toThrow(withCode('CLOSED'));
        }
        for (const name of ['limit', 'limitWithInfo', 'wait', 'clear', 'clearAll']) {
          await expect(limiter[name]('ada')).rejects.toEqual(withCode('CLOSED'));
        }
      },
    'Your own client of Redis stays open after `close()`: end it yourself.': async ({
      redisUrl,
    }) => {
      const Redis = require('ioredis');
      const client = new Redis(redisUrl);
      const limiter = RateLimiter({ ...WINDOW, redis: { client, ...PATIENT } });
      expect(await limiter('ada')).toBe(0);
      await limiter.close();
      expect(await client.ping()).toBe('PONG');
      await client.quit();
    },
  },
};
