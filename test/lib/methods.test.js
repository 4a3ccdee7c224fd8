// The methods about the limiter itself: forgetting, counting, closing.
'use strict';

const RateLimiter = require('../..');
const { catchError, setUp } = require('../support/set-up');

describe('clear and clearAll', () => {
  test('clear forgets one id and resolves to undefined', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    limiter.attemptMany(['a', 'b', undefined]);
    expect(await limiter.clear('a')).toBeUndefined();
    expect([limiter('a'), limiter('b'), limiter()]).toEqual([0, 10, 10]);
    expect(await limiter.clear('never seen')).toBeUndefined();
  });

  test('clear without an id forgets the bucket of callers without one, and no other', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    for (const clear of [() => limiter.clear(), () => limiter.clear(null)]) {
      limiter.attemptMany(['a', undefined]);
      await clear();
      expect([limiter('a'), limiter()]).toEqual([10, 0]);
    }
  });

  test('clear forgets 1 and "1" together', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    limiter(1);
    await limiter.clear('1');
    expect(limiter(1)).toBe(0);
  });

  test('clearAll forgets every id and resolves to undefined', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    const ids = Array.from({ length: 5000 }, (_, i) => i);
    limiter.attemptMany(ids);
    expect(await limiter.clearAll()).toBeUndefined();
    expect(limiter.stats().keys).toBe(0);
    expect(limiter.attemptMany(ids).every((decision) => decision.allowed)).toBe(true);
  });

  test('clearAll touches no other limiter', async () => {
    const one = setUp({ maxInInterval: 1 }).limiter;
    const other = setUp({ maxInInterval: 1 }).limiter;
    other('a');
    await one.clearAll();
    expect(other('a')).toBe(10);
  });

  test('have cleared when they return', () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    limiter('a');
    limiter.clear('a');
    expect(limiter('a')).toBe(0);
    limiter.clearAll();
    expect(limiter('a')).toBe(0);
  });
});

describe('stats', () => {
  test('count what the limiter holds and has done', async () => {
    const { limiter, time } = setUp({ maxInInterval: 1 });
    expect(limiter.stats()).toEqual({
      keys: 0,
      allowed: 0,
      blocked: 0,
      evicted: 0,
      errors: 0,
      bytes: expect.any(Number),
    });
    limiter('a');
    limiter('a', () => {});
    limiter.attempt('b');
    limiter.attemptMany(['b', 'c']);
    limiter.peek('d');
    await limiter.limit('a');
    await limiter.wouldLimit('a');
    expect(limiter.stats()).toMatchObject({ keys: 3, allowed: 3, blocked: 3, evicted: 0 });
    await limiter.clear('a');
    expect(limiter.stats()).toMatchObject({ keys: 2, allowed: 3, blocked: 3 });
    time.advance(1000);
    await limiter.clearAll();
    expect(limiter.stats()).toMatchObject({ keys: 0, allowed: 3, blocked: 3 });
  });

  test('give a fresh object each time', () => {
    const { limiter } = setUp();
    const before = limiter.stats();
    limiter('a');
    expect(before.keys).toBe(0);
    expect(limiter.stats()).not.toBe(before);
  });

  test('bytes grow with the ids and shrink with clearAll', async () => {
    const { limiter } = setUp();
    const { bytes } = limiter.stats();
    for (let i = 0; i < 50_000; i++) limiter(i);
    expect(limiter.stats().bytes).toBeGreaterThan(bytes + 50_000 * 16);
    await limiter.clearAll();
    expect(limiter.stats().bytes).toBeLessThanOrEqual(bytes);
  });

  test('memory of one id does not grow with refusals', () => {
    const { limiter } = setUp({ maxInInterval: 100 });
    for (let i = 0; i < 200; i++) limiter('a');
    const { bytes } = limiter.stats();
    for (let i = 0; i < 50_000; i++) limiter('a');
    expect(limiter.stats()).toMatchObject({ bytes, keys: 1, blocked: 50_100 });
  });

  test('ids that have expired are forgotten while others come', () => {
    const limiter = RateLimiter({ interval: 1, maxInInterval: 1 });
    for (let i = 0; i < 1000; i++) limiter(i);
    const expiredMs = performance.now() + 2;
    while (performance.now() < expiredMs);
    for (let i = 0; i < 1000; i++) limiter(`other ${i}`);
    expect(limiter.stats().keys).toBeLessThanOrEqual(1000);
  });
});

describe('close', () => {
  const CALLS = {
    limit: ['a'],
    wouldLimit: ['a'],
    limitWithInfo: ['a'],
    wouldLimitWithInfo: ['a'],
    clear: ['a'],
    clearAll: [],
  };

  function expectClosed(error) {
    expect(error).toBeInstanceOf(Error);
    expect(error.code).toBe('ERR_ROLLGATE_CLOSED');
    expect(error.message).toBe('the limiter is closed');
  }

  test('resolves to undefined, again and again', async () => {
    const { limiter } = setUp();
    limiter('a');
    expect([await limiter.close(), await limiter.close()]).toEqual([undefined, undefined]);
    await Promise.all([limiter.close(), limiter.close()]);
  });

  test('afterwards synchronous calls throw', async () => {
    const { limiter } = setUp();
    const decision = limiter.attempt('a');
    await limiter.close();
    for (const call of [
      () => limiter('a'),
      () => limiter(),
      () => limiter.attempt('a'),
      () => limiter.peek('a'),
      () => limiter.attemptMany(['a']),
      () => limiter.attemptMany([]),
      () => limiter.refund(decision),
      () => limiter.stats(),
    ]) {
      expectClosed(catchError(call));
    }
  });

  test.each(Object.entries(CALLS))(
    'afterwards %s rejects and does not throw',
    async (name, args) => {
      const { limiter } = setUp();
      await limiter.close();
      const promise = limiter[name](...args);
      expect(promise).toBeInstanceOf(Promise);
      expectClosed(await promise.catch((error) => error));
    },
  );

  test('afterwards callbacks get the error, later', async () => {
    const { limiter } = setUp();
    await limiter.close();
    const events = [];
    const error = await new Promise((resolve) => {
      limiter('a', resolve);
      events.push('returned');
    });
    expectClosed(error);
    expect(events).toEqual(['returned']);
  });

  test('has closed when it returns', () => {
    const { limiter } = setUp();
    limiter.close();
    expectClosed(catchError(() => limiter('a')));
  });

  test('a closed limiter says so whatever its clock does, and does not ask it', async () => {
    const clock = jest.fn(() => Number.NaN);
    const { limiter } = setUp({ clock });
    await limiter.close();
    expectClosed(catchError(() => limiter('a')));
    expectClosed(catchError(() => limiter.peek('a')));
    expectClosed(catchError(() => limiter.attemptMany(['a'])));
    expect(clock).not.toHaveBeenCalled();
  });

  test('touches no other limiter', async () => {
    const { limiter } = setUp();
    const other = setUp({ maxInInterval: 1 }).limiter;
    other('a');
    await limiter.close();
    expect(other('a')).toBe(10);
  });
});

describe('every method', () => {
  const methods = [
    'limit',
    'wouldLimit',
    'limitWithInfo',
    'wouldLimitWithInfo',
    'attempt',
    'peek',
    'attemptMany',
    'refund',
    'clear',
    'clearAll',
    'stats',
    'close',
  ];

  test.each(methods)('%s is inherited, not enumerable, and can be replaced', (name) => {
    const { limiter } = setUp();
    expect(Object.keys(limiter)).toEqual([]);
    expect(limiter).not.toHaveProperty(['constructor', 'prototype', name, 'own']);
    expect(Object.hasOwn(limiter, name)).toBe(false);
    expect(limiter[name]).toBe(RateLimiter.prototype[name]);
    const mine = jest.fn();
    limiter[name] = mine;
    limiter[name]('a');
    expect(mine).toHaveBeenCalledWith('a');
  });

  test('counts on one state with the call itself', async () => {
    const { limiter } = setUp({ maxInInterval: 5 });
    limiter('a');
    limiter('a', () => {});
    limiter.attempt('a');
    await limiter.limit('a');
    limiter.attemptMany(['a']);
    expect(limiter('a')).toBe(10);
  });
});
