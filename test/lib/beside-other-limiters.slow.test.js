// What the pages of migration say about the behaviour of other packages, seen at these packages.
'use strict';

const { ThrottlerStorageService } = require('@nestjs/throttler');
const { Ratelimit } = require('@upstash/ratelimit');
const Bottleneck = require('bottleneck');
const { Hono } = require('hono');
const { rateLimiter } = require('hono-rate-limiter');
const Redis = require('ioredis');
const limiters = require('limiter');
const RateLimiter = require('../..');
const { startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');
const { randomFrom } = require('../support/traces');

const WINDOW = 1000;

/** The most times in any interval of this length. */
function mostIn(times, interval = WINDOW) {
  let first = 0;
  return times.reduce((most, time, i) => {
    while (time - times[first] >= interval) first += 1;
    return Math.max(most, i - first + 1);
  }, 0);
}

/** As many as are allowed in each ms, from one ms before a window ends. */
async function timesOf(isAllowed) {
  const times = [];
  await jest.advanceTimersByTimeAsync(WINDOW - 1);
  for (let ms = 0; ms < 2 * WINDOW; ms++) {
    while (await isAllowed()) times.push(Date.now());
    await jest.advanceTimersByTimeAsync(1);
  }
  return times;
}

const useMovedTime = () => {
  beforeEach(() => jest.useFakeTimers({ now: 1_800_000_000_000, doNotFake: ['nextTick'] }));
  afterEach(() => jest.useRealTimers());
};

describe('limiter', () => {
  useMovedTime();

  test('lets 199 of 100 pass in an interval; here 100', async () => {
    const theirs = new limiters.RateLimiter({ tokensPerInterval: 100, interval: WINDOW });
    expect(mostIn(await timesOf(() => theirs.tryRemoveTokens(1)))).toBe(199);
    const options = { interval: WINDOW, maxInInterval: 100, countBlocked: false, clock: Date.now };
    const ours = RateLimiter(options);
    expect(mostIn(await timesOf(() => ours.attempt('ada').allowed))).toBe(100);
  });

  test('lets nothing pass after a burst until its interval ends, whatever the bucket has', async () => {
    const limiter = new limiters.RateLimiter({ tokensPerInterval: 100, interval: WINDOW });
    limiter.tryRemoveTokens(100);
    await jest.advanceTimersByTimeAsync(500);
    expect([limiter.getTokensRemaining(), limiter.tryRemoveTokens(1)]).toEqual([50, false]);
  });

  test('has buckets that are empty at first', () => {
    const options = { bucketSize: 2, tokensPerInterval: 2, interval: WINDOW };
    expect(new limiters.TokenBucket(options).tryRemoveTokens(1)).toBe(false);
  });
});

describe('Bottleneck', () => {
  useMovedTime();

  async function startsOf(options, count, pause) {
    const limiter = new Bottleneck(options);
    const starts = [];
    await jest.advanceTimersByTimeAsync(pause);
    for (let i = 0; i < count; i++) limiter.schedule(async () => starts.push(Date.now()));
    await jest.advanceTimersByTimeAsync(4 * WINDOW);
    return starts;
  }

  test('starts twice the reservoir within one interval', async () => {
    const refresh = { reservoirRefreshInterval: WINDOW, reservoirRefreshAmount: 10 };
    expect(mostIn(await startsOf({ reservoir: 10, ...refresh }, 50, 900))).toBe(20);
  });

  test('refreshes every 1250 ms if the interval is 1001 ms', async () => {
    const refresh = { reservoirRefreshInterval: 1001, reservoirRefreshAmount: 1 };
    const [first, second, third] = await startsOf({ reservoir: 1, ...refresh }, 3, 0);
    expect(second - first).toBeGreaterThan(1200);
    expect(third - second).toBeGreaterThan(1200);
  });

  test('with a minTime of 333 ms, starts four jobs in a second', async () => {
    expect(mostIn(await startsOf({ minTime: 333 }, 12, 0))).toBe(4);
  });
});

// Kills: a claim that only one version keeps. The package is an ES module, so a program imports it.
test.each(['p-queue', 'p-queue-10'])(
  '%s is exact with strict, until the clock is set',
  async (name) => {
    const result = await askProgram(
      `import { mock } from 'node:test';
     import PQueue from '${name}';
     const settle = () => new Promise((resolve) => setImmediate(resolve));
     mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1e12 });
     const mostIn = ${mostIn.toString().replace('= WINDOW', `= ${WINDOW}`)};
     import { createRequire } from 'node:module';
     const { randomFrom } = createRequire(process.cwd() + '/')('./test/support/traces.js');
     const random = randomFrom(1);
     async function most(strict) {
       const queue = new PQueue({ interval: ${WINDOW}, intervalCap: 3, strict });
       const times = [];
       for (let i = 0; i < 150; i++) {
         for (let n = random.between(0, 5); n > 0; n--) queue.add(() => times.push(Date.now()));
         for (let n = 0; n < 4; n++) {
           mock.timers.tick(random.between(0, 199));
           await settle();
         }
       }
       return mostIn(times);
     }
     const [exact, fixed] = [await most(true), await most(false)];
     const queue = new PQueue({ interval: ${WINDOW}, intervalCap: 3, strict: true });
     let started = 0;
     for (let i = 0; i < 9; i++) queue.add(() => { started += 1; });
     await settle();
     const now = Date.now();
     Date.now = () => now + 60_000;
     queue.add(() => { started += 1; });
     await settle();
     console.log(JSON.stringify({ exact, fixed, started }));
     process.exit();`,
      { type: 'module' },
    );
    expect(result).toEqual({ exact: 3, fixed: expect.any(Number), started: 6 });
    expect(result.fixed).toBeGreaterThan(3);
  },
);

describe('hono-rate-limiter', () => {
  function appOf(options) {
    const app = new Hono();
    const keyGenerator = () => 'everybody';
    app.use(rateLimiter({ windowMs: WINDOW, limit: 5, keyGenerator, ...options }));
    app.get('/', (c) => c.text('hello\n'));
    return async () => (await app.request('/')).status === 200;
  }

  test('refuses all of 20 requests of one turn', async () => {
    const isAllowed = appOf();
    const all = await Promise.all(Array.from({ length: 20 }, isAllowed));
    expect(all.filter(Boolean)).toHaveLength(0);
  });

  test('lets 9 of 5 pass within a window', async () => {
    const isAllowed = appOf();
    let now = 1_800_000_000_000;
    jest.spyOn(Date, 'now').mockImplementation(() => now);
    const times = [];
    for (const [ms, count] of [
      [0, 1],
      [WINDOW - 1, 9],
      [1, 9],
    ]) {
      now += ms;
      for (let i = 0; i < count; i++) if (await isAllowed()) times.push(now);
    }
    jest.restoreAllMocks();
    expect(mostIn(times)).toBe(9);
  });
});

describe('@nestjs/throttler', () => {
  useMovedTime();

  // Random pauses, as no pattern shows every block.
  async function most(blockDuration) {
    const storage = new ThrottlerStorageService();
    const times = [];
    const random = randomFrom(1);
    for (let i = 0; i < 500; i++) {
      for (let n = random.between(0, 7); n > 0; n--) {
        const { isBlocked } = await storage.increment('key', WINDOW, 5, blockDuration, 'default');
        if (!isBlocked) times.push(Date.now());
      }
      jest.advanceTimersByTime(random.between(0, i % 50 === 0 ? 3 * WINDOW : 200));
    }
    storage.onApplicationShutdown();
    return mostIn(times);
  }

  test('lets no more than the limit pass without a block, or with one of the window', async () => {
    expect([await most(0), await most(WINDOW)]).toEqual([5, 5]);
  });

  test('lets more pass with a shorter block, because it forgets all hits at its end', async () => {
    expect(await most(100)).toBeGreaterThan(20);
  });
});

describe('@upstash/ratelimit', () => {
  let client;
  let now = 1_800_000_000_000;
  const MINUTE = 60_000;

  beforeAll(async () => {
    client = new Redis((await startRedis()).url);
  });
  beforeEach(() => {
    now += 10 * MINUTE - (now % MINUTE); // a window begins
    jest.spyOn(Date, 'now').mockImplementation(() => now);
  });
  afterEach(() => jest.restoreAllMocks());
  afterAll(() => client.disconnect());

  /** What @upstash/redis does, on another server, which refuses the flag in the scripts' first line. */
  const redis = {
    evalsha: () => Promise.reject(new Error('NOSCRIPT')),
    eval: (script, keys, args) =>
      client.eval(script.replace(/^#!.*/, ''), keys.length, ...keys, ...args),
  };
  let prefix = 0;
  const limiterOf = (limiter, options) =>
    new Ratelimit({ redis, limiter, prefix: `${prefix++}`, ephemeralCache: false, ...options });

  async function most(limiter) {
    const ratelimit = limiterOf(limiter);
    const times = [];
    if ((await ratelimit.limit('ada')).success) times.push(now);
    now += MINUTE - 1;
    for (let i = 0; i < 120; i++) {
      while ((await ratelimit.limit('ada')).success) times.push(now);
      now += i === 0 ? 1 : 500;
    }
    return mostIn(times, MINUTE);
  }

  test('its scripts have a flag that other servers refuse', async () => {
    const plain = {
      ...redis,
      eval: (script, keys, args) => client.eval(script, keys.length, ...keys, ...args),
    };
    const ratelimit = limiterOf(Ratelimit.slidingWindow(20, '60 s'), { redis: plain });
    await expect(ratelimit.limit('ada')).rejects.toThrow();
  });

  test('lets about twice the limit pass within a window', async () => {
    expect(await most(Ratelimit.slidingWindow(20, '60 s'))).toBeGreaterThan(35);
    expect(await most(Ratelimit.tokenBucket(20, '60 s', 20))).toBeGreaterThan(35);
  });

  test('a refusal that the cache remembers lasts to the end of the fixed window', async () => {
    const allowedWith = async (options) => {
      const ratelimit = limiterOf(Ratelimit.slidingWindow(10, '60 s'), options);
      now += 2 * MINUTE - (now % MINUTE) - 1;
      for (let i = 0; i < 10; i++) await ratelimit.limit('ada');
      now += 1;
      let allowed = 0;
      for (let s = 0; s < 60; s++, now += 1000) {
        if ((await ratelimit.limit('ada')).success) allowed += 1;
      }
      return allowed;
    };
    expect(await allowedWith({ ephemeralCache: new Map() })).toBe(0);
    expect(await allowedWith({ ephemeralCache: false })).toBe(10);
  });

  test('at reset, a call may still be refused', async () => {
    const ratelimit = limiterOf(Ratelimit.slidingWindow(10, '60 s'));
    now += MINUTE - 1;
    for (let i = 0; i < 10; i++) await ratelimit.limit('ada');
    now = (await ratelimit.limit('ada')).reset;
    expect((await ratelimit.limit('ada')).success).toBe(false);
  });

  test.each([
    ['slidingWindow', Ratelimit.slidingWindow(10, '60 s'), false],
    ['fixedWindow', Ratelimit.fixedWindow(10, '60 s'), false],
    ['tokenBucket', Ratelimit.tokenBucket(10, '60 s', 10), true],
  ])('%s: after a refusal of 8, the next call of 1', async (_name, limiter, isAllowed) => {
    const ratelimit = limiterOf(limiter);
    for (let i = 0; i < 5; i++) await ratelimit.limit('ada');
    expect((await ratelimit.limit('ada', { rate: 8 })).success).toBe(false);
    expect((await ratelimit.limit('ada')).success).toBe(isAllowed);
  });

  test('a call without an answer is allowed after the timeout', async () => {
    const silent = { ...redis, evalsha: () => new Promise(() => {}) };
    const ratelimit = limiterOf(Ratelimit.slidingWindow(1, '60 s'), { redis: silent, timeout: 20 });
    expect(await ratelimit.limit('ada')).toMatchObject({ success: true, reason: 'timeout' });
  });

  test('two hosts whose clocks are a window apart get twice the limit', async () => {
    const ratelimit = limiterOf(Ratelimit.fixedWindow(5, '60 s'));
    let allowed = 0;
    for (let i = 0; i < 20; i++) {
      if (i === 10) now += MINUTE;
      if ((await ratelimit.limit('ada')).success) allowed += 1;
    }
    expect(allowed).toBe(10);
  });
});
