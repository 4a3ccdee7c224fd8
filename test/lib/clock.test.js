// The user's clock: whatever it does, that call alone fails, and the limiter lives on.
'use strict';

const RateLimiter = require('../..');
const { catchError } = require('../support/set-up');

/** A limiter on `clock`, which may be exchanged. */
function setUp(options) {
  const time = { clock: () => 0 };
  const limiter = RateLimiter({
    interval: 10,
    maxInInterval: 1,
    clock: () => time.clock(),
    ...options,
  });
  return { limiter, time };
}

const noReadings = [
  [undefined],
  [null],
  [Number.NaN],
  [Infinity],
  [-Infinity],
  ['5'],
  [''],
  [5n],
  [true],
  [Symbol('now')],
  [new Date(0)],
  [Object(5)],
  [[5]],
  [{ valueOf: () => 5 }],
  [Promise.resolve(5)],
];

test.each(noReadings)(
  'a reading of %p is ERR_ROLLGATE_CLOCK, in every form of call',
  async (reading) => {
    const { limiter, time } = setUp();
    limiter('a');
    time.clock = () => reading;
    const errors = [
      catchError(() => limiter('a')),
      catchError(() => limiter()),
      catchError(() => limiter.attempt('a')),
      catchError(() => limiter.peek('a')),
      catchError(() => limiter.attemptMany(['a', 'b'])),
      await new Promise((resolve) => limiter('a', resolve)),
      await limiter.limit('a').catch((error) => error),
      await limiter.wouldLimit('a').catch((error) => error),
      await limiter.limitWithInfo('a').catch((error) => error),
      await limiter.wouldLimitWithInfo('a').catch((error) => error),
    ];
    for (const error of errors) {
      expect(error).toBeInstanceOf(Error);
      expect(error.code).toBe('ERR_ROLLGATE_CLOCK');
      expect(error.message).toMatch(/^the clock: expected a finite number of ms, got ./);
    }
    expect(limiter.stats()).toMatchObject({
      keys: 1,
      allowed: 1,
      blocked: 0,
      errors: errors.length,
    });
    time.clock = () => 4;
    expect([limiter('a'), limiter('b')]).toEqual([10, 0]);
  },
);

test('an error of the clock is the cause of ERR_ROLLGATE_CLOCK, whatever was thrown', () => {
  for (const thrown of [new Error('mine'), 'text', null, 0, Symbol('thrown'), { code: 'MINE' }]) {
    const { limiter, time } = setUp();
    time.clock = () => {
      throw thrown;
    };
    const error = catchError(() => limiter('a'));
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      code: 'ERR_ROLLGATE_CLOCK',
      message: 'the clock threw an error',
    });
    expect(error.cause).toBe(thrown);
    time.clock = () => 0;
    expect([limiter('a'), limiter('a'), limiter.stats().errors]).toEqual([0, 10, 1]);
  }
});

test('a call that needs no time does not read the clock', async () => {
  const { limiter, time } = setUp();
  const decision = limiter.attempt('a');
  time.clock = () => {
    throw new Error('not needed');
  };
  expect(limiter.refund(decision)).toBe(true);
  await limiter.clear('a');
  await limiter.clearAll();
  expect(limiter.stats().errors).toBe(0);
  catchError(() => limiter({ no: 'id' }));
  expect(limiter.stats().errors).toBe(0);
  await limiter.close();
});

test('the clock is read once in a call, without arguments and without this', () => {
  const readings = [];
  const limiter = RateLimiter({
    interval: 10,
    maxInInterval: 1,
    clock(...args) {
      readings.push([this, ...args]);
      return 0;
    },
  });
  limiter('a');
  limiter.attempt('a');
  limiter.peek('a');
  limiter('a', () => {});
  expect(readings).toEqual([[undefined], [undefined], [undefined], [undefined]]);
});

test('a fraction is taken to the microsecond', () => {
  const { limiter, time } = setUp({ interval: 1, countBlocked: false });
  time.clock = () => 0.0004;
  limiter('a');
  time.clock = () => 0.9994;
  expect(limiter('a')).toBe(1);
  time.clock = () => 0.9996;
  expect(limiter('a')).toBe(0);
});

describe('huge readings', () => {
  const huge = [
    1e300,
    -1e300,
    Number.MAX_VALUE,
    -Number.MAX_VALUE,
    2 ** 53,
    2 ** 63,
    -(2 ** 63),
    1e15,
  ];

  test.each(huge)('of %d count and limit as any other', (reading) => {
    const { limiter, time } = setUp({ maxInInterval: 2 });
    time.clock = () => reading;
    expect([limiter('a'), limiter('a')]).toEqual([0, 0]);
    expect(limiter('a')).toBeGreaterThanOrEqual(1);
    expect(limiter.attempt('a').allowed).toBe(false);
  });

  test('in any order never let more through, and every answer is a count of ms', () => {
    for (const interval of [0.001, 10, 1e12, 1e300]) {
      const { limiter, time } = setUp({ interval, maxInInterval: 3 });
      const newest = { us: -Infinity, allowed: 0 };
      for (const reading of [...huge, 0, ...huge.reverse(), 5, -5, ...huge]) {
        time.clock = () => reading;
        const decision = limiter.attempt('a');
        for (const duration of [decision.timeLeft, decision.resetIn]) {
          expect(duration).toBeGreaterThanOrEqual(0);
          expect(Number.isInteger(duration)).toBe(true);
        }
        if (reading <= newest.us && decision.allowed) newest.allowed += 1;
        if (reading > newest.us) Object.assign(newest, { us: reading, allowed: 0 });
        expect(newest.allowed).toBeLessThanOrEqual(3);
      }
    }
  });
});

describe('a step backwards', () => {
  test('is taken for no earlier than the newest action, but timeLeft runs from the reading', () => {
    const { limiter, time } = setUp({ countBlocked: false });
    time.clock = () => 100;
    expect(limiter('a')).toBe(0);
    time.clock = () => 40;
    expect(limiter('a')).toBe(70);
    time.clock = () => 109;
    expect(limiter('a')).toBe(1);
    time.clock = () => 110;
    expect(limiter('a')).toBe(0);
  });

  test('leaves other ids alone', () => {
    const { limiter, time } = setUp();
    time.clock = () => 1e9;
    limiter('a');
    time.clock = () => 0;
    expect([limiter('b'), limiter('b')]).toEqual([0, 10]);
  });

  test('brings back what an expired id has done', () => {
    const { limiter, time } = setUp();
    limiter('a');
    time.clock = () => 1e6;
    for (let i = 0; i < 1000; i++) limiter(`other ${i}`);
    time.clock = () => 5;
    expect(limiter('a')).toBeGreaterThan(0);
  });
});

describe('a clock that turns on the limiter', () => {
  test('by calling it makes whole attempts, one inside the other', () => {
    const { limiter, time } = setUp({ maxInInterval: 3, countBlocked: false });
    const inner = [];
    let depth = 0;
    time.clock = () => {
      if (depth < 2) {
        depth += 1;
        inner.push(limiter.attempt('a').actionsLeft);
      }
      return 0;
    };
    const outer = limiter.attempt('a');
    expect([...inner, outer.actionsLeft]).toEqual([2, 1, 0]);
    expect(limiter('a')).toBe(10);
  });

  test('by every method leaves answers and state whole', () => {
    const { limiter, time } = setUp({ maxInInterval: 50 });
    const decision = limiter.attempt('a');
    let isInside = false;
    time.clock = () => {
      if (isInside) return 0;
      isInside = true;
      limiter('a');
      limiter('b', () => {});
      limiter.peek('a');
      limiter.attemptMany(['a', 'b', 'c']);
      limiter.refund(decision);
      limiter.stats();
      limiter.clear('c');
      isInside = false;
      return 0;
    };
    expect(limiter.attempt('a').limits[0].used).toBe(3); // one refunded, two in the clock, this one
    expect(limiter.attemptMany(['d', 'd']).map(({ actionsLeft }) => actionsLeft)).toEqual([49, 48]);
    expect(limiter.stats()).toMatchObject({ keys: 3, errors: 0 });
  });

  test('without end is a clock that threw, and the limiter lives on', () => {
    const { limiter, time } = setUp();
    time.clock = () => limiter('a');
    const error = catchError(() => limiter('a'));
    expect(error).toBeInstanceOf(Error);
    time.clock = () => 0;
    expect([limiter('b'), limiter('b')]).toEqual([0, 10]);
  });

  test('by closing it ends that call with ERR_ROLLGATE_CLOSED', () => {
    const calls = [
      (limiter) => limiter('a'),
      (limiter) => limiter.attempt('a'),
      (limiter) => limiter.peek('a'),
      (limiter) => limiter.attemptMany(['a', 'b']),
    ];
    for (const call of calls) {
      const { limiter, time } = setUp();
      limiter('a');
      time.clock = () => {
        limiter.close();
        return 0;
      };
      expect(catchError(() => call(limiter))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
    }
  });

  test('by clearing it judges an id that is new', () => {
    const { limiter, time } = setUp();
    limiter('a');
    time.clock = () => {
      limiter.clearAll();
      return 0;
    };
    expect([limiter('a'), limiter('a')]).toEqual([0, 0]);
  });
});
