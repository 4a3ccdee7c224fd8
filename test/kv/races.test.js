// Several writers and slow answers over one key-value store: calls are decided again, once, and within their time.
'use strict';

const { FAILED, TIMEOUT, createPlainKv, limiterOver } = require('../support/kv-stores');
const { errorOf, outcomeOf } = require('../support/outcome');
const { randomFrom } = require('../support/traces');

beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] }));
afterEach(() => jest.useRealTimers());

const pass = (ms) => jest.advanceTimersByTimeAsync(ms);
const never = () => new Promise(() => {});

async function outcomeAfter(ms, call) {
  const outcome = outcomeOf(call);
  await pass(ms);
  return outcome;
}

/** A promise that is settled from outside. */
function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

/** Replaces the next call of kv[name]. */
function once(kv, name, replacement) {
  const original = kv[name];
  kv[name] = (...args) => {
    kv[name] = original;
    return replacement(() => original.apply(kv, args));
  };
}

describe('a lost race', () => {
  /** Loses the first `losses` writes. */
  function losing(losses) {
    const kv = createPlainKv();
    const { set } = kv;
    kv.set = async (...args) => {
      if (losses-- <= 0) return set(...args);
      kv.calls.set++;
      return false;
    };
    return kv;
  }

  test('is repeated until it is won', async () => {
    const kv = losing(4);
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    expect(await outcomeAfter(1000, limiter('a'))).toBe(0);
    expect(kv.calls).toMatchObject({ get: 5, set: 5 });
    expect(limiter.stats()).toMatchObject({ allowed: 1, connection: { conflicts: 4 } });
  });

  test('without end is a timeout, after which the store is left alone', async () => {
    const kv = losing(Infinity);
    const error = errorOf(limiterOver(kv)('a'));
    await pass(99);
    const { get } = kv.calls;
    await pass(1);
    expect(await error).toMatchObject({ code: TIMEOUT });
    expect((await error).message).toContain('others wrote this id');
    await pass(1000);
    expect(kv.entries.size).toBe(0);
    expect(kv.calls.get - get).toBeLessThanOrEqual(1);
  });

  test('a busy store is asked again, one that fails otherwise is not', async () => {
    let failures = 3;
    const kv = createPlainKv();
    const { get } = kv;
    kv.get = (key) => {
      if (failures-- > 0) throw new Error('database is locked\nStack backtrace: ...');
      return get(key);
    };
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    expect(await outcomeAfter(1000, limiter('a'))).toBe(0);
    failures = 3;
    await outcomeAfter(1000, limiter.clear('a'));
    expect(kv.entries.size).toBe(0);
    kv.set = jest.fn(() => Promise.reject(new Error('disk full')));
    expect(await outcomeAfter(1000, limiter('a'))).toBe(FAILED);
    expect(kv.set).toHaveBeenCalledTimes(1);
  });

  test('limiters that race through slow answers admit exactly the limit', async () => {
    const random = randomFrom(5);
    const kv = createPlainKv();
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const slow =
      (name) =>
      async (...args) => {
        await sleep(random.between(0, 4));
        const answer = await kv[name](...args);
        await sleep(random.between(0, 4));
        return answer;
      };
    const store = { get: slow('get'), set: slow('set') };
    const limiters = [1, 2, 3, 4, 5].map(() => {
      return limiterOver(store, { maxInInterval: 40, commandTimeout: 20_000 });
    });
    const calls = [];
    for (let i = 0; i < 30; i++) {
      calls.push(...limiters.map((limiter) => limiter('a')));
      await pass(5);
    }
    await pass(20_000);
    const timesLeft = await Promise.all(calls);
    expect(timesLeft.filter((timeLeft) => timeLeft === 0)).toHaveLength(40);
    const conflicts = limiters.map((limiter) => limiter.stats().connection.conflicts);
    expect(Math.max(...conflicts)).toBeGreaterThan(0);
  });
});

describe('the calls of one process on one id', () => {
  test('share one read and one write', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { maxInInterval: 500 });
    const timesLeft = await Promise.all(Array.from({ length: 500 }, () => limiter('a')));
    expect(timesLeft).toEqual(timesLeft.map(() => 0));
    expect(kv.calls).toMatchObject({ get: 1, set: 1 });
    expect(limiter.stats().connection).toEqual({ pending: 0, conflicts: 0 });
  });

  test('are decided in their order, through several rounds', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { maxInInterval: 1200, commandTimeout: 10_000 });
    const decisions = await Promise.all(Array.from({ length: 1500 }, () => limiter.attempt('a')));
    const expected = decisions.map((_, i) => Math.max(0, 1199 - i));
    expect(decisions.map(({ actionsLeft }) => actionsLeft)).toEqual(expected);
    expect(kv.calls.set).toBe(2);
  });

  test('fail alone', async () => {
    let time = 0;
    const limiter = limiterOver(createPlainKv(), { clock: () => (time++ === 1 ? Number.NaN : 5) });
    const outcomes = await Promise.all([1, 2, 3].map(() => outcomeOf(limiter('a'))));
    expect(outcomes).toEqual([0, 'ERR_ROLLGATE_CLOCK', 0]);
  });
});

describe('an answer after the deadline', () => {
  /** Holds back the answers of one function until `release()`. */
  function holding(name) {
    const kv = createPlainKv();
    const inner = kv[name];
    const { promise: released, resolve: release } = deferred();
    kv[name] = async (...args) => {
      const answer = await inner(...args);
      await released;
      return answer;
    };
    return { kv, release };
  }

  test.each([
    ['get: nothing is written', 'get', 2],
    ['set: the attempt stays counted, but the caller has an error', 'set', 1],
  ])('of %s', async (_what, name, actionsLeft) => {
    const { kv, release } = holding(name);
    const limiter = limiterOver(kv);
    expect(await outcomeAfter(100, limiter('a'))).toBe(TIMEOUT);
    release();
    expect((await limiter.peek('a')).actionsLeft).toBe(actionsLeft);
    expect(kv.calls.set).toBe(name === 'get' ? 0 : 1);
    expect(limiter.stats()).toMatchObject({ allowed: 0, errors: 1 });
  });

  test('of get does not delay later calls', async () => {
    const { kv, release } = holding('get');
    const { get } = kv;
    const limiter = limiterOver(kv, { commandTimeout: 600 });
    const first = outcomeOf(limiter('a'));
    await pass(300);
    const second = outcomeOf(limiter('a'));
    kv.get = createPlainKv().get;
    await pass(300);
    expect([await first, await second]).toEqual([TIMEOUT, 0]);
    kv.get = get;
    release();
    expect(await limiter('a')).toBe(0);
  });

  test('of get leaves its younger calls to the next round', async () => {
    const kv = createPlainKv();
    const { get } = kv;
    const gets = [() => new Promise((resolve) => setTimeout(() => resolve(null), 250)), never];
    kv.get = (key) => (gets.shift() ?? get)(key);
    once(kv, 'set', async () => false); // lost, so the next question is for both calls
    const limiter = limiterOver(kv, { commandTimeout: 600 });
    const old = outcomeOf(limiter('a'));
    await pass(100);
    const young = outcomeOf(limiter('a'));
    await pass(500);
    expect(await old).toBe(TIMEOUT);
    expect(await outcomeAfter(100, young)).toBe(0);
  });

  test('of set settles later calls exactly once', async () => {
    const { kv, release } = holding('set');
    const limiter = limiterOver(kv, { maxInInterval: 10, commandTimeout: 600 });
    const first = outcomeOf(limiter('a'));
    await pass(300);
    const late = [outcomeOf(limiter('a')), outcomeOf(limiter('a'))];
    await pass(300);
    expect(await first).toBe(TIMEOUT); // abandons its round, and the others have their own
    release();
    await pass(100);
    expect(await Promise.all(late)).toEqual([0, 0]);
    expect((await limiter.peek('a')).actionsLeft).toBe(6);
    expect(limiter.stats()).toMatchObject({ allowed: 2, connection: { pending: 0 } });
  });

  test('of set makes none of its calls twice', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { maxInInterval: 10, commandTimeout: 150 });
    const { promise: released, resolve: release } = deferred();
    let young;
    once(kv, 'set', async (write) => {
      write();
      await new Promise((resolve) => setTimeout(resolve, 50));
      young = outcomeOf(limiter('a'));
      once(kv, 'set', (writeNext) => {
        const isWritten = writeNext();
        return released.then(() => isWritten);
      });
      return false; // lost, so the next round has calls of different age
    });
    expect(await outcomeAfter(150, limiter('a'))).toBe(TIMEOUT);
    release();
    expect(await young).toBe(0);
    // The first set wrote in spite of its answer; and one for each call.
    expect(10 - 1 - (await limiter.peek('a')).actionsLeft).toBe(3);
  });

  test('of set is not waited for by a call that comes long after', async () => {
    const kv = createPlainKv();
    const { get, set } = kv;
    kv.get = (key) => new Promise((resolve) => setTimeout(() => resolve(get(key)), 150));
    kv.set = never;
    const limiter = limiterOver(kv, { commandTimeout: 200 });
    expect(await outcomeAfter(200, limiter('a'))).toBe(TIMEOUT);
    Object.assign(kv, { get, set });
    await pass(200);
    expect(await limiter('a')).toBe(0);
  });

  test('of get decides no call that was made after the question', async () => {
    const { kv, release } = holding('get');
    const limiter = limiterOver(kv, { commandTimeout: 5000 });
    const early = limiter.peek('a');
    await pass(0);
    await limiterOver({ ...kv, get: createPlainKv().get }).attempt('a', { cost: 3 });
    const late = limiter.peek('a');
    release();
    expect((await early).allowed).toBe(true);
    expect((await late).allowed).toBe(false);
  });

  test('does not delay other ids', async () => {
    const kv = createPlainKv();
    const { get } = kv;
    kv.get = (key) => (key === 'n{slow}' ? never() : get(key));
    const limiter = limiterOver(kv);
    const slow = outcomeOf(limiter('slow'));
    expect(await limiter('a')).toBe(0); // no time passes
    expect(await outcomeAfter(100, slow)).toBe(TIMEOUT);
  });

  test('that is a rejection is no unhandled one', async () => {
    const unhandled = jest.fn();
    process.on('unhandledRejection', unhandled);
    const kv = createPlainKv();
    const { promise, reject } = deferred();
    kv.get = () => promise;
    expect(await outcomeAfter(100, limiterOver(kv)('a'))).toBe(TIMEOUT);
    reject(new Error('too late'));
    for (let i = 0; i < 2; i++) await new Promise(setImmediate);
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe('wait', () => {
  function setUp() {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { maxInInterval: 1, commandTimeout: 15_000 });
    return { kv, limiter };
  }

  /** Holds back the next write until `release()`. */
  function holdWrite(kv) {
    const { promise: released, resolve: release } = deferred();
    once(kv, 'set', (write) => released.then(write));
    return release;
  }

  test.each([
    ['its place goes to the next one', false],
    ['and its place cannot be given back: the next one waits on', true],
  ])('a caller leaves during its attempt, %s', async (_what, isStuck) => {
    const { kv, limiter } = setUp();
    const release = holdWrite(kv);
    const controller = new AbortController();
    const first = errorOf(limiter.wait('a', { signal: controller.signal }));
    const second = limiter.wait('a');
    await pass(0);
    controller.abort();
    expect((await first).name).toBe('AbortError');
    if (isStuck) once(kv, 'set', () => Promise.reject(new Error('broken')));
    release();
    await pass(0);
    expect(limiter.stats().errors).toBe(isStuck ? 1 : 0);
    if (isStuck) await limiter.clear('a');
    expect(await second).toMatchObject({ allowed: true });
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
  });

  test('close ends it also during an attempt', async () => {
    const { kv, limiter } = setUp();
    const release = holdWrite(kv);
    const ends = [errorOf(limiter.wait('a')), errorOf(limiter.wait('a'))];
    await pass(0);
    limiter.close();
    release();
    for (const end of ends) expect(await end).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
  });

  test('a place that another limiter takes meanwhile is waited for again, in order', async () => {
    const { kv, limiter } = setUp();
    const other = limiterOver({ ...kv }, { maxInInterval: 1 });
    once(kv, 'set', (write) => other('a').then(write));
    const order = [];
    for (const who of [1, 2]) limiter.wait('a').then(() => order.push(who));
    await pass(59_999);
    expect(order).toEqual([]);
    await pass(1);
    expect(order).toEqual([1]);
    await pass(60_000);
    expect(order).toEqual([1, 2]);
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
  });

  test('each action takes one write and at most two reads, however many wait', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { interval: 20, maxInInterval: 10, commandTimeout: 5000 });
    const all = Promise.all(Array.from({ length: 100 }, () => limiter.wait('a')));
    await pass(1000);
    await all;
    expect(kv.calls.set).toBe(100);
    expect(kv.calls.get).toBeLessThanOrEqual(2 * 100);
  });
});
