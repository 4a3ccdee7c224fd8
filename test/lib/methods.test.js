// The methods of a limiter in memory: what each answers, records, takes back and forgets.
'use strict';

const RateLimiter = require('../..');
const { handClock } = require('../support/hand-clock');

const { InMemoryRateLimiter } = RateLimiter;

const INFO_KEYS = [
  'blocked',
  'blockedDueToCount',
  'blockedDueToMinDifference',
  'millisecondsUntilAllowed',
  'actionsRemaining',
];

function setUp(options) {
  const time = handClock();
  const limiter = new InMemoryRateLimiter({
    interval: 10,
    maxInInterval: 2,
    clock: time.clock,
    ...options,
  });
  return { limiter, time };
}

function catchError(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe('limit and wouldLimit', () => {
  test('resolve to whether the action is blocked', async () => {
    const { limiter } = setUp();
    const answers = [await limiter.limit('a'), await limiter.limit('a'), await limiter.limit('a')];
    expect(answers).toEqual([false, false, true]);
    expect(limiter.limit('b')).toBeInstanceOf(Promise);
  });

  test('make the attempt before they return', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    const answer = limiter.limit('a');
    expect(limiter('a')).toBe(10);
    expect(await answer).toBe(false);
  });

  test('wouldLimit tells what limit would, without a trace', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    for (let i = 0; i < 3; i++) expect(await limiter.wouldLimit('a')).toBe(false);
    expect(limiter.stats()).toMatchObject({ keys: 0, allowed: 0, blocked: 0 });
    await limiter.limit('a');
    for (let i = 0; i < 3; i++) expect(await limiter.wouldLimit('a')).toBe(true);
    expect(limiter.stats()).toMatchObject({ keys: 1, allowed: 1, blocked: 0 });
  });

  test('serve the one bucket of callers without an id', async () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    expect([
      await limiter.limit(),
      await limiter.limit(null),
      await limiter.wouldLimit(''),
    ]).toEqual([false, true, true]);
  });
});

describe('limitWithInfo and wouldLimitWithInfo', () => {
  test('resolve to exactly the five facts of rolling-rate-limiter', async () => {
    const { limiter } = setUp();
    for (const method of ['limitWithInfo', 'wouldLimitWithInfo']) {
      const info = await limiter[method]('a');
      expect(Object.keys(info)).toEqual(INFO_KEYS);
      expect(Object.getPrototypeOf(info)).toBe(Object.prototype);
    }
  });

  test('count the current attempt: filling the window tells the wait for the next', async () => {
    const { limiter, time } = setUp();
    expect(await limiter.limitWithInfo('a')).toEqual({
      blocked: false,
      blockedDueToCount: false,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 0,
      actionsRemaining: 1,
    });
    time.advance(4);
    expect(await limiter.wouldLimitWithInfo('a')).toEqual({
      blocked: false,
      blockedDueToCount: false,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 6,
      actionsRemaining: 0,
    });
    await limiter.limit('a');
    expect(await limiter.limitWithInfo('a')).toEqual({
      blocked: true,
      blockedDueToCount: true,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 10,
      actionsRemaining: 0,
    });
  });

  test('tell both reasons and the whole minDifference', async () => {
    const { limiter, time } = setUp({ minDifference: 3 });
    expect(await limiter.limitWithInfo('a')).toMatchObject({ millisecondsUntilAllowed: 3 });
    time.advance(1);
    expect(await limiter.wouldLimitWithInfo('a')).toEqual({
      blocked: true,
      blockedDueToCount: false,
      blockedDueToMinDifference: true,
      millisecondsUntilAllowed: 9,
      actionsRemaining: 0,
    });
    await limiter.limitWithInfo('a');
    expect(await limiter.limitWithInfo('a')).toMatchObject({
      blocked: true,
      blockedDueToCount: true,
      blockedDueToMinDifference: true,
    });
  });

  test('with countBlocked: false a refusal is not part of the answer', async () => {
    const { limiter, time } = setUp({ maxInInterval: 5, minDifference: 3, countBlocked: false });
    await limiter.limit('a');
    time.advance(1);
    const refusal = {
      blocked: true,
      blockedDueToCount: false,
      blockedDueToMinDifference: true,
      millisecondsUntilAllowed: 2,
      actionsRemaining: 4,
    };
    expect(await limiter.limitWithInfo('a')).toEqual(refusal);
    expect(await limiter.wouldLimitWithInfo('a')).toEqual(refusal);
  });
});

describe('attempt and peek', () => {
  test('answer synchronously with exactly the facts of a Decision', () => {
    const { limiter, time } = setUp();
    expect({ ...limiter.attempt('a') }).toEqual({
      allowed: true,
      timeLeft: 0,
      actionsLeft: 1,
      resetIn: 10,
      blockedBy: null,
      limits: [{ interval: 10, maxInInterval: 2, used: 1, remaining: 1, resetIn: 10 }],
    });
    time.advance(4);
    limiter.attempt('a');
    expect({ ...limiter.attempt('a') }).toEqual({
      allowed: false,
      timeLeft: 10,
      actionsLeft: 0,
      resetIn: 10,
      blockedBy: 'count',
      limits: [{ interval: 10, maxInInterval: 2, used: 2, remaining: 0, resetIn: 10 }],
    });
  });

  test('a Decision survives JSON and later calls', () => {
    const { limiter, time } = setUp();
    const decision = limiter.attempt('a');
    const text = JSON.stringify(decision);
    time.advance(5);
    limiter.attempt('a');
    limiter.attemptMany(['a', 'b']);
    limiter.stats();
    expect(JSON.stringify(decision)).toBe(text);
  });

  test('name what blocks: minDifference, the count, and the count where both do', () => {
    const { limiter, time } = setUp({ minDifference: 3, countBlocked: false });
    expect(limiter.attempt('a').blockedBy).toBe(null);
    expect(limiter.attempt('a')).toMatchObject({ blockedBy: 'minDifference', timeLeft: 3 });
    time.advance(3);
    expect(limiter.attempt('a').blockedBy).toBe(null);
    expect(limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft: 7 });
    time.advance(3);
    expect(limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft: 4 });
  });

  test('tell each window apart, in the order of the options', () => {
    const { limiter, time } = setUp({
      limits: [
        { interval: 100, maxInInterval: 3 },
        { interval: 10, maxInInterval: 2 },
      ],
      countBlocked: false,
    });
    limiter.attempt('a');
    time.advance(10);
    expect(limiter.attempt('a')).toMatchObject({
      allowed: true,
      actionsLeft: 1,
      resetIn: 90, // of several windows with as little left, the one that takes longest
      limits: [
        { interval: 100, maxInInterval: 3, used: 2, remaining: 1, resetIn: 90 },
        { interval: 10, maxInInterval: 2, used: 1, remaining: 1, resetIn: 10 },
      ],
    });
    limiter.attempt('a');
    expect(limiter.attempt('a')).toMatchObject({
      allowed: false,
      timeLeft: 90,
      resetIn: 90,
      actionsLeft: 0,
      limits: [
        { used: 3, remaining: 0, resetIn: 90 },
        { used: 2, remaining: 0, resetIn: 10 },
      ],
    });
  });

  test('peek tells what attempt would, and leaves no trace', () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    const peeked = limiter.peek('a');
    expect(limiter.stats()).toMatchObject({ keys: 0, allowed: 0, blocked: 0 });
    expect({ ...limiter.attempt('a') }).toEqual({ ...peeked });
    const peekedAgain = limiter.peek('a');
    expect(limiter.stats()).toMatchObject({ keys: 1, allowed: 1, blocked: 0 });
    expect({ ...limiter.attempt('a') }).toEqual({ ...peekedAgain });
  });

  test('a cost counts for as many actions, all or none', () => {
    const { limiter, time } = setUp({ maxInInterval: 5, countBlocked: false });
    expect(limiter.attempt('a', { cost: 3 })).toMatchObject({ allowed: true, actionsLeft: 2 });
    expect(limiter.attempt('a', { cost: 3 })).toMatchObject({ allowed: false, timeLeft: 10 });
    time.advance(4);
    expect(limiter.peek('a', { cost: 2 }).allowed).toBe(true);
    expect(limiter.attempt('a', { cost: 2 })).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(limiter.attempt('a', { cost: 3 })).toMatchObject({ allowed: false, timeLeft: 6 });
    expect(limiter.attempt('a', { cost: 4 })).toMatchObject({ allowed: false, timeLeft: 10 });
    time.advance(6);
    expect(limiter.attempt('a', { cost: 3 }).allowed).toBe(true);
  });

  test('a blocked cost is counted in full with countBlocked', () => {
    const { limiter } = setUp({ maxInInterval: 5 });
    limiter.attempt('a', { cost: 2 });
    expect(limiter.attempt('a', { cost: 4 })).toMatchObject({ allowed: false, actionsLeft: 0 });
    expect(limiter('a')).toBe(10);
  });

  test('minDifference is a gap between attempts, whatever they cost', () => {
    const { limiter, time } = setUp({ maxInInterval: 5, minDifference: 3 });
    expect(limiter.attempt('a', { cost: 2 }).allowed).toBe(true);
    time.advance(3);
    expect(limiter.attempt('a', { cost: 3 }).allowed).toBe(true);
  });

  test('no options, empty options and an undefined cost mean 1', () => {
    const { limiter } = setUp({ maxInInterval: 9 });
    const used = [undefined, {}, { cost: undefined }, { cost: 1 }].map(
      (options) => limiter.attempt('a', options).limits[0].used,
    );
    expect(used).toEqual([1, 2, 3, 4]);
  });

  const wrongCosts = [
    [0, RangeError],
    [-1, RangeError],
    [1.5, RangeError],
    [4, RangeError],
    [2 ** 53, RangeError],
    [Number.NaN, RangeError],
    [Infinity, RangeError],
    ['1', TypeError],
    [1n, TypeError],
    [null, TypeError],
    [true, TypeError],
    [{}, TypeError],
  ];
  test.each(wrongCosts)('cost %p is refused, and nothing is recorded', (cost, Class) => {
    const { limiter } = setUp({
      limits: [
        { interval: 10, maxInInterval: 5 },
        { interval: 20, maxInInterval: 3 },
      ],
    });
    for (const method of ['attempt', 'peek']) {
      const error = catchError(() => limiter[method]('a', { cost }));
      expect(error).toBeInstanceOf(Class);
      expect(error.code).toBe('ERR_ROLLGATE_COST');
      expect(error.message).toMatch(
        /^cost: expected an integer from 1 to 3, the smallest maxInInterval, got ./,
      );
    }
    expect(limiter.stats().keys).toBe(0);
    expect(limiter.attempt('a', { cost: 3 }).allowed).toBe(true);
  });

  test.each([[null], [3], ['cost'], [[]], [() => {}], [{ costs: 2 }], [{ Cost: 2 }]])(
    'attempt options %p are refused, and nothing is recorded',
    (options) => {
      const { limiter } = setUp();
      for (const method of ['attempt', 'peek']) {
        const error = catchError(() => limiter[method]('a', options));
        expect(error).toBeInstanceOf(TypeError);
        expect(error.code).toBe('ERR_ROLLGATE_OPTION');
      }
      expect(limiter.stats().keys).toBe(0);
    },
  );

  test('an error thrown by a getter of the options is passed on', () => {
    const { limiter } = setUp();
    const mine = new Error('mine');
    const options = {
      get cost() {
        throw mine;
      },
    };
    expect(catchError(() => limiter.attempt('a', options))).toBe(mine);
    expect(limiter.stats().keys).toBe(0);
  });
});

describe('attemptMany', () => {
  test('decides every id in order, as that many attempts at one moment would', () => {
    const ids = ['a', 'b', 'a', 1, '1', undefined, null, 'a', 2n];
    const many = setUp();
    const single = setUp();
    const decisions = many.limiter.attemptMany(ids);
    expect(decisions.map((decision) => ({ ...decision }))).toEqual(
      ids.map((id) => ({ ...single.limiter.attempt(id) })),
    );
    expect(many.limiter.stats()).toEqual(single.limiter.stats());
  });

  test('reads the clock once', () => {
    const clock = jest.fn(() => 0);
    const limiter = RateLimiter({ interval: 10, maxInInterval: 2, clock });
    limiter.attemptMany(['a', 'b', 'c']);
    expect(clock).toHaveBeenCalledTimes(1);
  });

  test('of no ids makes no decisions', () => {
    const { limiter } = setUp();
    expect(limiter.attemptMany([])).toEqual([]);
    expect(limiter.stats().keys).toBe(0);
  });

  test('handles more ids than fit in one chunk of anything', () => {
    const { limiter } = setUp();
    const ids = Array.from({ length: 20_000 }, (_, i) => `id ${i % 7000}`);
    const decisions = limiter.attemptMany(ids);
    expect(decisions.filter((decision) => decision.allowed)).toHaveLength(14_000);
    expect(limiter.stats()).toMatchObject({ keys: 7000, allowed: 14_000, blocked: 6000 });
  });

  test('refuses the whole call for one wrong id, and records nothing', () => {
    for (const wrong of [true, {}, Number.NaN, Symbol('a'), () => {}]) {
      for (const ids of [[wrong], ['a', 'b', wrong], [wrong, 'a'], ['a', wrong, wrong, 'b']]) {
        const { limiter } = setUp({ maxInInterval: 1 });
        const error = catchError(() => limiter.attemptMany(ids));
        expect(error).toBeInstanceOf(TypeError);
        expect(error.code).toBe('ERR_ROLLGATE_ID');
        expect(limiter.stats()).toMatchObject({ keys: 0, allowed: 0, blocked: 0 });
        expect([limiter('a'), limiter('b')]).toEqual([0, 0]);
      }
    }
  });

  test('records nothing when the clock fails', () => {
    let reading = 'none';
    const limiter = RateLimiter({ interval: 10, maxInInterval: 1, clock: () => reading });
    const error = catchError(() => limiter.attemptMany(['a', 'b']));
    expect(error.code).toBe('ERR_ROLLGATE_CLOCK');
    reading = 0;
    expect([limiter.stats().keys, limiter('a')]).toEqual([0, 0]);
  });

  test.each([[undefined], [null], ['ab'], [1], [{ length: 1, 0: 'a' }], [new Set(['a'])]])(
    'refuses %p, which is no list',
    (ids) => {
      const error = catchError(() => setUp().limiter.attemptMany(ids));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_ROLLGATE_ID');
      expect(error.message).toMatch(/^attemptMany: expected a list of ids, got ./);
    },
  );

  test('takes a hole in the list for a caller without an id', () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    const holes = new Array(2);
    expect(limiter.attemptMany(holes).map((decision) => decision.allowed)).toEqual([true, false]);
  });

  test('a list that changes while the clock is read changes nothing', () => {
    const ids = ['a', 'b'];
    const clock = () => {
      ids.length = 0;
      return 0;
    };
    const limiter = RateLimiter({ interval: 10, maxInInterval: 1, clock });
    expect(limiter.attemptMany(ids)).toHaveLength(2);
  });
});

describe('refund', () => {
  test('takes back what an allowed attempt recorded, once', () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    const decision = limiter.attempt('a');
    expect(limiter.refund(decision)).toBe(true);
    expect(limiter('a')).toBe(0);
    expect(limiter.refund(decision)).toBe(false);
    expect(limiter('a')).toBe(10);
  });

  test('forgets an id that has nothing left', () => {
    const { limiter } = setUp();
    limiter.refund(limiter.attempt('a'));
    expect(limiter.stats().keys).toBe(0);
  });

  test('takes back that very record, not the newest', () => {
    const { limiter, time } = setUp({ countBlocked: false });
    const first = limiter.attempt('a');
    time.advance(4);
    limiter.attempt('a');
    expect(limiter.refund(first)).toBe(true);
    expect(limiter('a')).toBe(0);
    expect(limiter('a')).toBe(10); // until the second, made at 4, leaves at 14
    time.advance(9.999);
    expect(limiter('a')).toBe(1);
  });

  test('gives back the whole cost', () => {
    const { limiter } = setUp({ maxInInterval: 5 });
    const decision = limiter.attempt('a', { cost: 4 });
    limiter.attempt('a');
    expect(limiter.refund(decision)).toBe(true);
    expect(limiter.peek('a').limits[0].used).toBe(2);
    expect(limiter.attempt('a', { cost: 4 }).allowed).toBe(true);
  });

  test('works on each of the decisions of attemptMany', () => {
    const { limiter } = setUp({ countBlocked: false });
    const decisions = limiter.attemptMany(['a', 'b', 'a', 'a']);
    expect(decisions.map((decision) => limiter.refund(decision))).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(limiter.stats().keys).toBe(0);
  });

  test('has nothing to take back of a refusal, with and without countBlocked', () => {
    for (const countBlocked of [true, false]) {
      const { limiter } = setUp({ maxInInterval: 1, countBlocked });
      limiter.attempt('a');
      expect(limiter.refund(limiter.attempt('a'))).toBe(false);
      expect(limiter('a')).toBe(10);
    }
  });

  test('has nothing to take back of a peek', () => {
    const { limiter } = setUp();
    const peeked = limiter.peek('a');
    limiter.attempt('a');
    expect(limiter.refund(peeked)).toBe(false);
    expect(limiter.peek('a').limits[0].used).toBe(2);
  });

  test('after clear, clearAll or expiry there is nothing to take back', async () => {
    const { limiter, time } = setUp({ maxInInterval: 1 });
    const cleared = limiter.attempt('a');
    await limiter.clear('a');
    limiter.attempt('a'); // at the very same moment
    expect(limiter.refund(cleared)).toBe(false);
    expect(limiter('a')).toBe(10);

    const clearedWithAll = limiter.attempt('b');
    await limiter.clearAll();
    limiter.attempt('b');
    expect(limiter.refund(clearedWithAll)).toBe(false);
    expect(limiter('b')).toBe(10);

    const old = limiter.attempt('c');
    time.advance(1000);
    for (let i = 0; i < 100; i++) limiter(`other ${i}`);
    limiter.attempt('c');
    expect(limiter.refund(old)).toBe(false);
    expect(limiter('c')).toBe(10);
  });

  test('does not make room that counted refusals have taken', () => {
    const { limiter, time } = setUp({ maxInInterval: 1 });
    const first = limiter.attempt('a');
    time.advance(1);
    limiter.attempt('a');
    limiter.refund(first);
    expect(limiter('a')).toBeGreaterThan(0);
  });

  test('refuses a Decision of another limiter, also of one just alike', () => {
    const { limiter } = setUp();
    const other = setUp().limiter;
    const decision = other.attempt('a');
    limiter.attempt('a');
    const error = catchError(() => limiter.refund(decision));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.code).toBe('ERR_ROLLGATE_DECISION');
    expect(error.message).toMatch(/another limiter's$/);
    expect(other.refund(decision)).toBe(true);
  });

  const forged = setUp().limiter.attempt('a');
  test.each([
    ['undefined', undefined],
    ['null', null],
    ['a string', 'a'],
    ['an empty object', {}],
    ['a copy', { ...forged }],
    ['an heir', Object.create(forged)],
    ['a proxy', new Proxy(forged, {})],
    ['a promise', Promise.resolve(forged)],
    ['a function', () => forged],
  ])('refuses %s, which is no Decision', (_name, value) => {
    const error = catchError(() => setUp().limiter.refund(value));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.code).toBe('ERR_ROLLGATE_DECISION');
    expect(error.message).toMatch(/^refund: expected a Decision that this limiter made, got ./);
  });

  test('is not deceived by a Decision that was written to', () => {
    const { limiter } = setUp({ maxInInterval: 1 });
    limiter.attempt('a');
    const refusal = limiter.attempt('a');
    refusal.allowed = true;
    expect(limiter.refund(refusal)).toBe(false);
  });
});

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
    const endMs = performance.now() + 100;
    let count = 0;
    while (performance.now() < endMs) limiter(count++);
    expect(limiter.stats().keys).toBeLessThan(count / 2);
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
