// attempt, peek and attemptMany: what a Decision tells, records and costs.
'use strict';

const RateLimiter = require('../..');
const { catchError, setUp } = require('../support/set-up');

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
