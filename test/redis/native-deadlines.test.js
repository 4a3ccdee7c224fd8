// Deadlines of the native client: what is late, who is to blame for it, and what comes afterwards.
'use strict';

const { nativeLimiter } = require('../support/native-redis');
const { errorOf, outcomeOf } = require('../support/outcome');
const { startRedis } = require('../support/redis-server');
const { waitUntil } = require('../support/wait-until');

const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const QUEUE_FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';

/** What a busy machine may add to a deadline. */
const LATEST_MS = 2000;

let server;
let opened = [];

beforeAll(async () => {
  server = await startRedis();
});

afterEach(async () => {
  if (server.frozen) server.thaw();
  await Promise.all(opened.map((limiter) => limiter.close()));
  opened = [];
});

function limiterAt(redis, options) {
  const limiter = nativeLimiter({ url: server.url, ...redis }, { maxInInterval: 1000, ...options });
  opened.push(limiter);
  return limiter;
}

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

function blockFor(ms) {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe('a program that is busy for longer than the deadline', () => {
  const commandTimeout = 200;
  const busyMs = 350;

  test('after a call gets its answer', async () => {
    const limiter = limiterAt({ commandTimeout });
    await limiter('a');
    const calls = times(100, (i) => limiter(`a${i}`));
    blockFor(busyMs);
    expect(new Set(await Promise.all(calls))).toEqual(new Set([0]));
  });

  test('after its first call gets its answer', async () => {
    const call = limiterAt({ commandTimeout })('a');
    blockFor(busyMs);
    expect(await outcomeOf(call)).toBe(0);
  });

  test('while it connects gets its answer', async () => {
    for (const host of ['127.0.0.1', 'localhost']) {
      for (const turns of [1, 2, 3]) {
        const call = limiterAt({ url: undefined, host, port: server.port, commandTimeout })('a');
        for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
        blockFor(busyMs);
        expect(await outcomeOf(call)).toBe(0);
      }
    }
  });

  test('while an answer is on its way gets it', async () => {
    const limiter = limiterAt({ commandTimeout });
    await limiter('a');
    const call = limiter('a');
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    const other = limiter('b');
    blockFor(busyMs);
    expect(await Promise.all([call, other])).toEqual([0, 0]);
  });

  test('again and again does not put off the deadline for ever', async () => {
    const limiter = limiterAt({ commandTimeout: 100 });
    await limiter('a');
    await server.freeze();
    const began = performance.now();
    const call = outcomeOf(limiter('a'));
    let isBusy = true;
    const work = () => {
      if (!isBusy) return;
      blockFor(60);
      setImmediate(work);
    };
    work();
    expect(await call).toBe(TIMEOUT);
    isBusy = false;
    expect(performance.now() - began).toBeLessThan(100 + LATEST_MS);
  });
});

describe('a frozen server', () => {
  test('is waited for as long as said', async () => {
    const limiter = limiterAt({ commandTimeout: 250 });
    await limiter('a');
    await server.freeze();
    const began = performance.now();
    const calls = [limiter('a'), limiter.attempt('a'), limiter.peek('a'), limiter.clear('a')];
    const many = limiter.attemptMany(['a', 'b']);
    const errors = await Promise.all([...calls, many, limiter.clearAll()].map(errorOf));
    const tookMs = performance.now() - began;
    expect(errors.map(({ code }) => code)).toEqual(errors.map(() => TIMEOUT));
    expect(errors[0].message).toContain('250 ms');
    expect(tookMs).toBeGreaterThanOrEqual(249);
    expect(tookMs).toBeLessThan(250 + LATEST_MS);
    expect(limiter.stats().connection.pending).toBe(0);
  });

  test('that thaws answers nobody with what was meant for others', async () => {
    const limiter = limiterAt({ commandTimeout: 100 }, { countBlocked: false });
    // Each id has another number left, which tells the answers apart.
    const ids = times(50, (i) => `id ${i}`);
    await Promise.all(ids.map((id, i) => limiter.attempt(id, { cost: 10 * (i + 1) })));
    await server.freeze();
    const late = ids.map((id) => outcomeOf(limiter.peek(id)));
    expect(new Set(await Promise.all(late))).toEqual(new Set([TIMEOUT]));
    const calls = [...ids].reverse().map((id) => limiter.peek(id));
    server.thaw();
    const used = (await Promise.all(calls)).map(({ limits }) => limits[0].used);
    expect(used).toEqual(times(50, (i) => 10 * (50 - i) + 1));
    const again = await limiter.attemptMany(ids);
    expect(again.map(({ limits }) => limits[0].used)).toEqual(times(50, (i) => 10 * (i + 1) + 1));
  });

  test('that thaws has counted what it was sent, each call at most once', async () => {
    const limiter = limiterAt({ commandTimeout: 100 });
    await limiter('a');
    await server.freeze();
    await Promise.all(times(20, () => outcomeOf(limiter('a'))));
    server.thaw();
    const { limits } = await limiter.attempt('a');
    expect(limits[0].used).toBe(22);
  });
});

describe('maxQueue', () => {
  const maxQueue = 50;

  test('calls may be under way at once, however often', async () => {
    const limiter = limiterAt({ maxQueue }, { maxInInterval: 1e6 });
    for (let burst = 0; burst < 20; burst++) {
      const timesLeft = await Promise.all(times(maxQueue, (i) => limiter(`a${i}`)));
      expect(new Set(timesLeft)).toEqual(new Set([0]));
    }
    // And from where the last of a burst is answered.
    const chain = async () => {
      for (let i = 0; i < 50; i++) expect(await limiter('a')).toBe(0);
    };
    await Promise.all(times(maxQueue, chain));
  });

  test('and one call more is refused at once', async () => {
    const limiter = limiterAt({ maxQueue });
    const outcomes = await Promise.all(times(maxQueue + 1, () => outcomeOf(limiter('a'))));
    expect(outcomes.filter((outcome) => outcome === 0)).toHaveLength(maxQueue);
    expect(outcomes.at(-1)).toBe(QUEUE_FULL);
    expect((await errorOf(Promise.all(times(51, () => limiter('a'))))).message).toContain('50');
  });

  test('counts what a frozen server still has, and is whole again when it thaws', async () => {
    const limiter = limiterAt({ maxQueue, commandTimeout: 100 });
    await limiter('a');
    for (let round = 0; round < 3; round++) {
      await server.freeze();
      const first = await Promise.all(times(maxQueue, () => outcomeOf(limiter('a'))));
      expect(new Set(first)).toEqual(new Set([TIMEOUT]));
      expect(await outcomeOf(limiter('a'))).toBe(QUEUE_FULL);
      server.thaw();
      await waitUntil('it answers', async () => (await limiter('b')) === 0);
      const timesLeft = await Promise.all(times(maxQueue, () => limiter('c')));
      expect(new Set(timesLeft)).toEqual(new Set([0]));
    }
  });

  test('is whole again when a dead server is back', async () => {
    const limiter = limiterAt({ maxQueue, commandTimeout: 300, retry: { min: 20, max: 50 } });
    for (let round = 0; round < 3; round++) {
      await limiter('a');
      await server.stop();
      const outcomes = await Promise.all(times(2 * maxQueue, () => outcomeOf(limiter('a'))));
      expect(outcomes.filter((outcome) => outcome === QUEUE_FULL)).toHaveLength(maxQueue);
      await server.restart();
      const timesLeft = await Promise.all(times(maxQueue, () => limiter('a')));
      expect(new Set(timesLeft)).toEqual(new Set([0]));
    }
  });

  test('lets attemptMany have more ids, one turn after the other', async () => {
    const limiter = limiterAt({ maxQueue }, { maxInInterval: 1000 });
    const ids = times(4 * maxQueue + 7, () => 'a');
    const decisions = await limiter.attemptMany(ids);
    expect(decisions.map(({ limits }) => limits[0].used)).toEqual(ids.map((_, i) => i + 1));
  });

  test('refuses attemptMany as a whole, before it counts any', async () => {
    const limiter = limiterAt({ maxQueue }, { maxInInterval: 1000 });
    const other = limiter('b');
    expect(await outcomeOf(limiter.attemptMany(times(maxQueue, () => 'a')))).toBe(QUEUE_FULL);
    expect(await other).toBe(0);
    expect((await limiter.attempt('a')).limits[0].used).toBe(1);
  });
});
