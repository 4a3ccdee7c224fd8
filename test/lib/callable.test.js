// The limiter as a function: what it returns, what it calls back with, and when.
'use strict';

const RateLimiter = require('../..');
const { handClock } = require('../support/hand-clock');
const { runProgram } = require('../support/run-program');

const START_MS = 1_000_000;

function limiterAt(time, options) {
  return RateLimiter({ interval: 10, maxInInterval: 2, clock: time.clock, ...options });
}

/** What a callback form calls back with, and how the call itself ended. */
function callBack(limiter, ...args) {
  return new Promise((resolve) => {
    limiter(...args, (...answer) => resolve(answer));
  });
}

describe('construction', () => {
  test.each([
    ['without new', (options) => RateLimiter(options)],
    ['with new', (options) => new RateLimiter(options)],
    ['through the named export', (options) => new RateLimiter.RateLimiter(options)],
    ['as a method of something else', (options) => ({ make: RateLimiter }).make(options)],
    ['through Reflect.construct', (options) => Reflect.construct(RateLimiter, [options])],
  ])('makes the same limiter %s', (_way, make) => {
    const limiter = make({ interval: 10, maxInInterval: 1, clock: () => 0 });
    expect(typeof limiter).toBe('function');
    expect(limiter).toBeInstanceOf(RateLimiter);
    expect(limiter).toBeInstanceOf(Function);
    expect(limiter.constructor).toBe(RateLimiter);
    expect([limiter('a'), limiter('a')]).toEqual([0, 10]);
  });

  test('takes the options as they are then', () => {
    const options = { interval: 10, maxInInterval: 1, clock: () => 0 };
    const limiter = RateLimiter(options);
    options.interval = 1000;
    options.maxInInterval = 5;
    options.clock = () => Number.NaN;
    expect([limiter('a'), limiter('a')]).toEqual([0, 10]);
  });

  test('reads a frozen object, one without a prototype, and inherited options', () => {
    const plain = { interval: 10, maxInInterval: 1, clock: () => 0 };
    const bare = Object.assign(Object.create(null), plain);
    for (const options of [Object.freeze({ ...plain }), bare, Object.create(plain)]) {
      const limiter = RateLimiter(options);
      expect([limiter('a'), limiter('a')]).toEqual([0, 10]);
    }
  });
});

describe('the synchronous form', () => {
  test('allows maxInInterval actions, then says how long to wait', () => {
    const time = handClock();
    const limiter = limiterAt(time, { countBlocked: false });
    const answers = [limiter('a'), limiter('a'), limiter('a')];
    time.advance(4);
    answers.push(limiter('a'));
    expect(answers).toEqual([0, 0, 10, 6]);
  });

  test('counts a blocked attempt towards the wait', () => {
    const time = handClock();
    const limiter = limiterAt(time);
    const answers = [];
    for (const step of [0, 1, 1, 1]) {
      time.advance(step);
      answers.push(limiter('a'));
    }
    // Recorded at 0, 1, 2 and 3 ms: the wait of each refusal is until the one before it leaves.
    expect(answers).toEqual([0, 0, 9, 9]);
  });

  test('does not count a blocked attempt with countBlocked: false', () => {
    const time = handClock();
    const limiter = limiterAt(time, { countBlocked: false });
    limiter('a');
    time.advance(1);
    limiter('a');
    for (let wait = 9; wait > 0; wait--) {
      expect(limiter('a')).toBe(wait);
      time.advance(1);
    }
    expect(limiter('a')).toBe(0);
  });

  test('keeps ids apart and has one bucket for calls without an id', () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1 });
    expect([limiter('a'), limiter('b'), limiter(), limiter('a'), limiter()]).toEqual([
      0, 0, 0, 10, 10,
    ]);
  });

  test('needs no this', () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1 });
    const free = { limiter }.limiter;
    expect([free('a'), limiter.call(null, 'a'), Reflect.apply(limiter, {}, ['a'])]).toEqual([
      0, 10, 10,
    ]);
    expect(['a', 'b', 'c'].map((id) => limiter(id))).toEqual([10, 0, 0]);
  });

  test('treats an undefined callback as none', () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1 });
    expect([limiter('a', undefined), limiter('a', undefined)]).toEqual([0, 10]);
  });

  test('uses a monotonic clock of its own when none is given', () => {
    const limiter = RateLimiter({ interval: 3_600_000, maxInInterval: 1, countBlocked: false });
    const before = performance.now();
    expect(limiter('a')).toBe(0);
    const timeLeft = limiter('a');
    const elapsed = performance.now() - before;
    expect(timeLeft).toBeLessThanOrEqual(3_600_000);
    expect(timeLeft).toBeGreaterThanOrEqual(Math.floor(3_600_000 - elapsed));
  });
});

describe('timeLeft', () => {
  test.each([
    [0, 10],
    [0.001, 10],
    [0.4, 10],
    [1, 9],
    [1.5, 9],
    [9, 1],
    [9.001, 1],
    [9.6, 1],
    [9.999, 1],
    [9.9994, 1],
    [10, 0],
    [10.001, 0],
  ])('is rounded up: after %d of 10 ms it is %d', (elapsed, expected) => {
    const time = handClock();
    const limiter = limiterAt(time, { maxInInterval: 1, countBlocked: false });
    limiter('a');
    time.set(START_MS + elapsed);
    expect(limiter('a')).toBe(expected);
  });

  test('is never 0 on a refusal, however little is left', () => {
    for (let micros = 1; micros <= 10_000; micros += 7) {
      const time = handClock(0);
      const limiter = limiterAt(time, { maxInInterval: 1, countBlocked: false });
      limiter('a');
      time.set((10_000 - micros) / 1000);
      expect(limiter('a')).toBe(Math.ceil(micros / 1000));
    }
  });

  test('is a whole number, also above 2 ** 31 and with fractions in the options', () => {
    for (const interval of [0.001, 0.5, 1.0001, 1e3, 2 ** 31 / 1000, 1e10, 1e15, 1e300]) {
      const limiter = limiterAt(handClock(0), { interval, maxInInterval: 1 });
      limiter('a');
      const timeLeft = limiter('a');
      expect(Number.isSafeInteger(timeLeft)).toBe(true);
      expect(timeLeft).toBeGreaterThanOrEqual(1);
      if (interval <= 1e15) expect(timeLeft).toBe(Math.ceil(Number(interval.toFixed(3))));
    }
  });

  test('never limits nothing because an interval or minDifference is long', () => {
    for (const long of [2 ** 31, 2 ** 32, 30 * 86_400_000, 1e13, 1e18, 1e300, Number.MAX_VALUE]) {
      const byCount = limiterAt(handClock(), { interval: long, maxInInterval: 1 });
      expect([byCount('a'), byCount('a') > 1e9]).toEqual([0, true]);
      const byGap = limiterAt(handClock(), { minDifference: long, maxInInterval: 5 });
      expect([byGap('a'), byGap('a') > 1e9]).toEqual([0, true]);
    }
  });

  test('never blocks because maxInInterval is huge', () => {
    for (const maxInInterval of [2 ** 31, 2 ** 32, 2 ** 53, 2 ** 64, 1e300]) {
      const limiter = limiterAt(handClock(), { maxInInterval });
      expect([limiter('a'), limiter('a'), limiter('a')]).toEqual([0, 0, 0]);
      expect(limiter.attempt('a').limits[0].used).toBe(4);
    }
  });
});

describe('boundaries', () => {
  test('an action leaves the window exactly interval after it happened', () => {
    const time = handClock();
    const limiter = limiterAt(time, { maxInInterval: 1, countBlocked: false });
    limiter('a');
    time.set(START_MS + 9.999);
    expect(limiter('a')).toBe(1);
    time.set(START_MS + 10);
    expect(limiter('a')).toBe(0);
  });

  test('the gap minDifference itself is enough', () => {
    const time = handClock();
    const limiter = limiterAt(time, { maxInInterval: 9, minDifference: 3, countBlocked: false });
    limiter('a');
    time.set(START_MS + 2.999);
    expect(limiter('a')).toBe(1);
    time.set(START_MS + 3);
    expect(limiter('a')).toBe(0);
  });

  test('a refusal with countBlocked starts minDifference anew', () => {
    const time = handClock();
    const limiter = limiterAt(time, { maxInInterval: 9, minDifference: 3 });
    const answers = [limiter('a')];
    for (let i = 0; i < 3; i++) {
      time.advance(2);
      answers.push(limiter('a'));
    }
    time.advance(3);
    answers.push(limiter('a'));
    expect(answers).toEqual([0, 3, 3, 3, 0]);
  });

  test('several windows must all let an action pass', () => {
    const time = handClock();
    const limiter = limiterAt(time, {
      limits: [
        { interval: 10, maxInInterval: 2 },
        { interval: 100, maxInInterval: 3 },
      ],
      countBlocked: false,
    });
    const answers = [limiter('a'), limiter('a'), limiter('a')];
    time.advance(10);
    answers.push(limiter('a'), limiter('a'));
    expect(answers).toEqual([0, 0, 10, 0, 90]);
  });
});

describe('the callback form', () => {
  test.each([
    ['limiter(id, callback)', ['a']],
    ['limiter(callback)', []],
    ['limiter(undefined, callback)', [undefined]],
    ['limiter(null, callback)', [null]],
  ])('%s gives null, the time left and the actions left', async (_form, args) => {
    const limiter = limiterAt(handClock());
    expect(await callBack(limiter, ...args)).toEqual([null, 0, 1]);
    expect(await callBack(limiter, ...args)).toEqual([null, 0, 0]);
    expect(await callBack(limiter, ...args)).toEqual([null, 10, 0]);
    expect(limiter(...args)).toBe(10);
  });

  test('limiter(callback, undefined) is limiter(callback)', async () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1 });
    const answer = await new Promise((resolve) => {
      limiter((...results) => resolve(results), undefined);
    });
    expect([answer, limiter()]).toEqual([[null, 0, 0], 10]);
  });

  test('returns undefined and never calls back in the same tick', async () => {
    const limiter = limiterAt(handClock());
    const events = [];
    const called = new Promise((resolve) => {
      const results = [
        limiter('a', () => events.push('first')),
        limiter(() => events.push('second')),
        limiter(true, () => events.push('error')),
        limiter('a', () => {
          events.push('last');
          resolve();
        }),
      ];
      events.push(results);
    });
    await called;
    const nothing = [undefined, undefined, undefined, undefined];
    expect(events).toEqual([nothing, 'first', 'second', 'error', 'last']);
  });

  test('makes the attempt before the call returns', () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1 });
    limiter('a', () => {});
    expect(limiter('a')).toBe(10);
  });

  test('calls back with the answer of its own attempt, whatever happens until then', async () => {
    const time = handClock();
    const limiter = limiterAt(time, { countBlocked: false });
    const answers = [callBack(limiter, 'a'), callBack(limiter, 'a'), callBack(limiter, 'a')];
    limiter.attempt('b');
    limiter.stats();
    time.advance(1000);
    await limiter.clearAll();
    await limiter.close();
    expect(await Promise.all(answers)).toEqual([
      [null, 0, 1],
      [null, 0, 0],
      [null, 10, 0],
    ]);
  });

  test('may be called from its own callback', async () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1 });
    const answer = await new Promise((resolve) => {
      limiter('a', () => limiter('a', (...results) => resolve(results)));
    });
    expect(answer).toEqual([null, 10, 0]);
  });

  test('hands every failure of the attempt to the callback', async () => {
    let reading = 0;
    const limiter = limiterAt({ clock: () => reading });
    const [idError, ...none] = await callBack(limiter, { no: 'id' });
    expect(idError).toBeInstanceOf(TypeError);
    expect(idError.code).toBe('ERR_ROLLGATE_ID');
    expect(none).toEqual([]);

    reading = Number.NaN;
    const [clockError] = await callBack(limiter, 'a');
    expect(clockError).toBeInstanceOf(Error);
    expect(clockError.code).toBe('ERR_ROLLGATE_CLOCK');

    reading = 0;
    await limiter.close();
    const [closedError] = await callBack(limiter, 'a');
    expect(closedError).toBeInstanceOf(Error);
    expect(closedError.code).toBe('ERR_ROLLGATE_CLOSED');
    const [closedWithoutId] = await callBack(limiter);
    expect(closedWithoutId.code).toBe('ERR_ROLLGATE_CLOSED');
  });

  test('refuses two functions: the first is no id', async () => {
    const limiter = limiterAt(handClock());
    const never = jest.fn();
    const [error] = await callBack(limiter, never);
    expect(error.code).toBe('ERR_ROLLGATE_ID');
    expect(never).not.toHaveBeenCalled();
  });

  test.each([[null], ['callback'], [0], [{}], [[]], [true], [Symbol('callback')], [5n]])(
    'throws ERR_ROLLGATE_CALLBACK for %p and records nothing',
    (callback) => {
      const limiter = limiterAt(handClock(), { maxInInterval: 1 });
      let thrown;
      try {
        limiter('a', callback);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(TypeError);
      expect(thrown.code).toBe('ERR_ROLLGATE_CALLBACK');
      expect(thrown.message).toMatch(/^callback: expected a function or undefined, got ./);
      expect(limiter.stats()).toMatchObject({ keys: 0, allowed: 0, blocked: 0 });
      expect(limiter('a')).toBe(0);
    },
  );

  test('an exception that the callback throws is an uncaught exception', async () => {
    const { stdout, code } = await runProgram(`
      const limiter = require('rollgate')({ interval: 60_000, maxInInterval: 1 });
      process.on('uncaughtException', (error, origin) => {
        console.log(origin, error.message);
        limiter('a', (none, timeLeft) => console.log(none, timeLeft > 0));
      });
      try {
        limiter('a', () => { throw new Error('mine'); });
        console.log('returned');
      } catch {
        console.log('caught');
      }
    `);
    expect(stdout).toBe('returned\nuncaughtException mine\nnull true\n');
    expect(code).toBe(0);
  });

  test('without a handler that exception ends the process', async () => {
    const { stderr, code } = await runProgram(`
      const limiter = require('rollgate')({ interval: 1000, maxInInterval: 1 });
      limiter(() => { throw new Error('mine'); });
    `);
    expect(code).not.toBe(0);
    expect(stderr).toContain('Error: mine');
  });
});
