// What comes of writes that others were faster with: calls are decided anew, within their time. One process does not race with itself.
'use strict';

const { createPlainKv } = require('../support/kv-stores');
const { FAILED, limiterOver, TIMEOUT } = require('../support/limiter-over-kv');
const { errorOf, outcomeOf } = require('../support/outcome');
const { randomFrom } = require('../support/traces');

describe('lost races', () => {
  /** Loses the first `losses` sets; what others wrote instead is `write`'s to say. */
  function losing(losses, write = () => {}) {
    const kv = createPlainKv();
    const { set } = kv;
    kv.set = async (...args) => {
      if (losses-- <= 0) return set(...args);
      kv.calls.set++;
      await write(set, ...args);
      return false;
    };
    return kv;
  }

  test('are tried again until one is won', async () => {
    const kv = losing(4);
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    expect(await limiter('a')).toBe(0);
    expect(kv.calls).toMatchObject({ get: 5, set: 5 });
    expect(limiter.stats()).toMatchObject({ allowed: 1, connection: { conflicts: 4 } });
  });

  test('are decided anew: what others wrote meanwhile counts', async () => {
    const kv = createPlainKv();
    const other = limiterOver({ ...kv });
    const { set } = kv;
    let lost = 0;
    kv.set = async (...args) => {
      if (lost++ < 3) await other('a');
      return set(...args);
    };
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    expect(await limiter('a')).toBeGreaterThan(0);
    expect(other.stats().allowed).toBe(3);
  });

  test('without end are a timeout, and nothing was recorded', async () => {
    const kv = losing(Infinity);
    const limiter = limiterOver(kv);
    const before = performance.now();
    const error = await errorOf(limiter('a'));
    expect(error.code).toBe(TIMEOUT);
    expect(error.message).toContain('others wrote this id');
    expect(performance.now() - before).toBeGreaterThan(99);
    expect(kv.entries.size).toBe(0);
    const asked = kv.calls.get;
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(kv.calls.get).toBe(asked);
  });

  test('a busy store is asked again, too', async () => {
    let busy = 3;
    const kv = createPlainKv();
    const { get } = kv;
    kv.get = (key) => {
      if (busy-- > 0) throw new Error('database is locked\nStack backtrace: ...');
      return get(key);
    };
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    expect(await limiter('a')).toBe(0);
    busy = 3;
    await limiter.clear('a');
    expect(kv.entries.size).toBe(0);
  });

  test('other failures are not tried again', async () => {
    const kv = createPlainKv();
    let calls = 0;
    kv.set = () => {
      calls++;
      throw new Error('disk full');
    };
    expect(await outcomeOf(limiterOver(kv)('a'))).toBe(FAILED);
    expect(calls).toBe(1);
  });
});

describe('the calls of one process on one id', () => {
  test('do not race with each other: one write for all that wait', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { maxInInterval: 500 });
    const calls = Array.from({ length: 500 }, () => limiter('a'));
    expect((await Promise.all(calls)).every((timeLeft) => timeLeft === 0)).toBe(true);
    expect(kv.calls).toMatchObject({ get: 1, set: 1 });
    expect(limiter.stats().connection).toEqual({ pending: 0, conflicts: 0 });
  });

  test('are decided in the order in which they were made, more than one round of them, too', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { maxInInterval: 1200, commandTimeout: 10_000 });
    const decisions = await Promise.all(Array.from({ length: 1500 }, () => limiter.attempt('a')));
    expect(decisions.map(({ actionsLeft }) => actionsLeft)).toEqual(
      Array.from({ length: 1500 }, (_, i) => Math.max(0, 1199 - i)),
    );
    expect(kv.calls.set).toBe(2);
  });

  test('fail alone where one cannot be decided', async () => {
    let time = 0;
    const limiter = limiterOver(createPlainKv(), { clock: () => (time++ === 1 ? Number.NaN : 5) });
    const outcomes = await Promise.all([1, 2, 3].map(() => outcomeOf(limiter('a'))));
    expect(outcomes).toEqual([0, 'ERR_ROLLGATE_CLOCK', 0]);
  });
});

test('limiters that race through slow answers admit exactly what they may', async () => {
  const random = randomFrom(5);
  const kv = createPlainKv();
  const slow = Object.fromEntries(
    ['get', 'set'].map((name) => [
      name,
      async (...args) => {
        await new Promise((resolve) => setTimeout(resolve, random.between(0, 4)));
        const answer = await kv[name](...args);
        await new Promise((resolve) => setTimeout(resolve, random.between(0, 4)));
        return answer;
      },
    ]),
  );
  const limiters = Array.from({ length: 5 }, () =>
    limiterOver(slow, { maxInInterval: 40, commandTimeout: 20_000 }),
  );
  const calls = limiters.flatMap((limiter) =>
    Array.from({ length: 30 }, async (_, i) => {
      await new Promise((resolve) => setTimeout(resolve, i * 5));
      return limiter('a');
    }),
  );
  const timesLeft = await Promise.all(calls);
  expect(timesLeft.filter((timeLeft) => timeLeft === 0)).toHaveLength(40);
  const conflicts = limiters.reduce(
    (sum, limiter) => sum + limiter.stats().connection.conflicts,
    0,
  );
  expect(conflicts).toBeGreaterThan(0);
});
