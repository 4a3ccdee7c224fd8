// The limiter as a function and its methods in memory: how it is made, what each form of a call gives, and when.
'use strict';

const { inspect, promisify } = require('node:util');
const RateLimiter = require('../..');
const { runProgram } = require('../support/run-program');
const { catchError, setUp } = require('../support/set-up');

const ONE = { maxInInterval: 1 };

/** The arguments that a call gives its callback. */
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

  test('copies the options', () => {
    const options = { interval: 10, maxInInterval: 1, clock: () => 0 };
    const limiter = RateLimiter(options);
    Object.assign(options, { interval: 1000, maxInInterval: 5, clock: () => Number.NaN });
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

describe('a limiter is a function', () => {
  test('that needs no this and goes where functions go', async () => {
    const { limiter } = setUp({ maxInInterval: 2 });
    const free = { limiter }.limiter;
    expect([free('a'), limiter.call(null, 'a'), limiter.apply({}, ['a'])]).toEqual([0, 0, 10]);
    expect([limiter.bind(null, 'a')(), Reflect.apply(limiter, null, ['a'])]).toEqual([10, 10]);
    expect(['b', 'c'].map((id) => limiter(id))).toEqual([0, 0]);
    expect(await promisify(limiter)('a')).toBe(10);
    await expect(promisify(limiter)(true)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_ID' });
    expect(Object.prototype.toString.call(limiter)).toBe('[object Function]');
    expect(typeof limiter.toString()).toBe('string');
  });

  test('that carries properties, can be frozen and shown, and is no promise', async () => {
    const { limiter } = setUp(ONE);
    limiter.label = 'login';
    Object.freeze(limiter);
    expect([limiter('a'), limiter('a'), limiter.label]).toEqual([0, 10, 'login']);
    expect(inspect(limiter)).toContain('login');
    expect(JSON.stringify({ limiter })).toBe('{}');
    expect(await (async () => limiter)()).toBe(limiter);
  });

  test('whose methods are inherited, not enumerable, and can be replaced', async () => {
    const limiter = RateLimiter({ interval: 10, maxInInterval: 1 });
    const names = Object.getOwnPropertyNames(RateLimiter.prototype);
    expect(names).toHaveLength(14); // thirteen methods and the constructor
    for (const name of names) {
      expect(Object.hasOwn(limiter, name)).toBe(false);
      expect(limiter[name]).toBe(RateLimiter.prototype[name]);
    }
    expect(Object.keys(limiter)).toEqual([]);
    expect(Object.keys(RateLimiter.prototype)).toEqual([]);
    limiter.attempt = jest.fn();
    limiter.attempt('a');
    expect(limiter.attempt).toHaveBeenCalledWith('a');
    const { attempt, limit } = RateLimiter.prototype;
    expect(() => attempt('a')).toThrow(TypeError);
    await expect(limit('a')).rejects.toThrow(TypeError);
  });
});

describe('timeLeft', () => {
  test('counts real ms where no clock is given', () => {
    const limiter = RateLimiter({ interval: 3_600_000, maxInInterval: 1, countBlocked: false });
    const before = performance.now();
    expect(limiter('a')).toBe(0);
    const timeLeft = limiter('a');
    const elapsed = performance.now() - before;
    expect(timeLeft).toBeLessThanOrEqual(3_600_000);
    expect(timeLeft).toBeGreaterThanOrEqual(Math.floor(3_600_000 - elapsed));
  });

  test('is a safe integer from 1, whatever the durations', () => {
    for (const interval of [0.0001, 0.5, 1.0001, 2 ** 31 / 1000, 2 ** 31, 2 ** 32, 1e15, 1e300]) {
      const { limiter } = setUp({ interval, maxInInterval: 1 });
      expect(limiter('a')).toBe(0);
      const timeLeft = limiter('a');
      expect(Number.isSafeInteger(timeLeft)).toBe(true);
      if (interval <= 1e15)
        expect(timeLeft).toBe(Math.ceil(Math.max(0.001, Number(interval.toFixed(3)))));
      else expect(timeLeft).toBeGreaterThan(1e15);
      const byGap = setUp({ minDifference: interval, maxInInterval: 5 }).limiter;
      expect([byGap('a'), byGap('a')]).toEqual([0, timeLeft]);
    }
  });

  test('is 0 however large maxInInterval is', () => {
    for (const maxInInterval of [2 ** 31, 2 ** 32, 2 ** 53, 2 ** 64, 1e300]) {
      const { limiter } = setUp({ maxInInterval });
      expect([limiter('a'), limiter('a'), limiter('a')]).toEqual([0, 0, 0]);
      expect(limiter.attempt('a').limits[0].used).toBe(4);
    }
  });
});

describe('the callback form', () => {
  test.each([
    ['limiter(id, callback)', (limiter, callback) => limiter('a', callback), ['a']],
    ['limiter(callback)', (limiter, callback) => limiter(callback), []],
    ['limiter(callback, undefined)', (limiter, callback) => limiter(callback, undefined), []],
    ['limiter(null, callback)', (limiter, callback) => limiter(null, callback), [null]],
    ['limiter(undefined, callback)', (limiter, callback) => limiter(undefined, callback), []],
  ])('%s gives null, the time left and the actions left', async (_form, call, args) => {
    const { limiter } = setUp(ONE);
    const answers = [];
    for (let i = 0; i < 2; i++) {
      answers.push(await new Promise((resolve) => call(limiter, (...all) => resolve(all))));
    }
    expect(answers).toEqual([
      [null, 0, 0],
      [null, 10, 0],
    ]);
    expect([limiter(...args), limiter(args[0], undefined)]).toEqual([10, 10]);
  });

  test('attempts before it returns, and calls back in order in a later tick', async () => {
    const { limiter } = setUp();
    const events = [];
    await new Promise((resolve) => {
      const results = [
        limiter('a', () => events.push('first')),
        limiter(() => events.push('second')),
        limiter(true, () => events.push('error')),
        limiter('a', () => {
          events.push('last');
          resolve();
        }),
        limiter('a'),
      ];
      events.push(results);
    });
    const nothing = [undefined, undefined, undefined, undefined];
    expect(events).toEqual([[...nothing, 10], 'first', 'second', 'error', 'last']);
  });

  test('gives the answer of its own attempt, whatever happens until then', async () => {
    const { limiter, time } = setUp({ countBlocked: false });
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
    const closed = [expect.objectContaining({ code: 'ERR_ROLLGATE_CLOSED' })];
    expect([await callBack(limiter, 'a'), await callBack(limiter)]).toEqual([closed, closed]);
  });

  test('may call the limiter from the callback', async () => {
    const { limiter } = setUp(ONE);
    const answer = await new Promise((resolve) => {
      limiter('a', () => limiter('a', (...results) => resolve(results)));
    });
    expect(answer).toEqual([null, 10, 0]);
  });

  test('refuses two functions: the first is no id', async () => {
    const never = jest.fn();
    const [error] = await callBack(setUp().limiter, never);
    expect(error.code).toBe('ERR_ROLLGATE_ID');
    expect(never).not.toHaveBeenCalled();
  });

  test.each([[null], ['callback'], [0], [{}], [[]], [true], [Symbol('callback')], [5n]])(
    'throws ERR_ROLLGATE_CALLBACK for %p and records nothing',
    (callback) => {
      const { limiter } = setUp(ONE);
      const error = catchError(() => limiter('a', callback));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_ROLLGATE_CALLBACK');
      expect(error.message).toMatch(/^callback: expected a function or undefined, got ./);
      expect(limiter.stats()).toMatchObject({ keys: 0, allowed: 0, blocked: 0 });
    },
  );

  test('an exception that the callback throws is an uncaught exception', async () => {
    const load = "const limiter = require('rollgate')({ interval: 60_000, maxInInterval: 1 });";
    const handled = await runProgram(`
      ${load}
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
    expect(handled.stdout).toBe('returned\nuncaughtException mine\nnull true\n');
    expect(handled.code).toBe(0);
    const ended = await runProgram(`${load} limiter(() => { throw new Error('mine'); });`);
    expect(ended.code).not.toBe(0);
    expect(ended.stderr).toContain('Error: mine');
  });
});

describe('attempt, peek and attemptMany', () => {
  test('a Decision survives later calls', () => {
    const { limiter, time } = setUp();
    const decision = limiter.attempt('a');
    const before = JSON.stringify(decision);
    time.advance(5);
    limiter.attempt('a');
    limiter.attemptMany(['a', 'b']);
    limiter.stats();
    expect(JSON.stringify(decision)).toBe(before);
  });

  test('no options, empty options and an undefined cost mean 1', () => {
    const { limiter } = setUp({ maxInInterval: 9 });
    const used = [undefined, {}, { cost: undefined }, { cost: 1 }].map(
      (options) => limiter.attempt('a', options).limits[0].used,
    );
    expect(used).toEqual([1, 2, 3, 4]);
  });

  test('the error of a wrong cost names the range; one of a getter is passed on', () => {
    const { limiter } = setUp();
    const { message } = catchError(() => limiter.attempt('a', { cost: 3 }));
    expect(message).toBe(
      'cost: expected an integer from 1 to 2, the smallest maxInInterval, got 3',
    );
    const mine = new Error('mine');
    const options = {
      get cost() {
        throw mine;
      },
    };
    expect(catchError(() => limiter.attempt('a', options))).toBe(mine);
    expect(limiter.stats().keys).toBe(0);
  });

  test('attemptMany reads the clock once, and the array before that', () => {
    const ids = ['a', 'b', 'c'];
    const clock = jest.fn(() => {
      ids.length = 0;
      return 0;
    });
    const { limiter } = setUp({ clock });
    expect(limiter.attemptMany(ids)).toHaveLength(3);
    expect(clock).toHaveBeenCalledTimes(1);
  });

  test('attemptMany handles more ids than fit in one chunk of anything', () => {
    const { limiter } = setUp();
    const ids = Array.from({ length: 20_000 }, (_, i) => `id ${i % 7000}`);
    const decisions = limiter.attemptMany(ids);
    expect(decisions.filter((decision) => decision.allowed)).toHaveLength(14_000);
    expect(limiter.stats()).toMatchObject({ keys: 7000, allowed: 14_000, blocked: 6000 });
  });

  test('attemptMany takes a hole for a caller without an id, and no set for an array', () => {
    const { limiter } = setUp(ONE);
    const allowed = limiter.attemptMany(new Array(2)).map((decision) => decision.allowed);
    expect(allowed).toEqual([true, false]);
    expect(catchError(() => limiter.attemptMany(new Set())).message).toMatch(
      /^attemptMany: expected a list of ids, got ./,
    );
  });
});

describe('refund', () => {
  test('forgets an id that has nothing left', () => {
    const { limiter } = setUp();
    limiter.refund(limiter.attempt('a'));
    expect(limiter.stats().keys).toBe(0);
  });

  test('refuses what is no Decision, and that of a limiter just alike', () => {
    const { limiter } = setUp();
    const decision = setUp().limiter.attempt('a');
    const forged = [Object.create(decision), new Proxy(decision, {}), { ...decision }];
    for (const value of [...forged, Promise.resolve(decision), () => decision]) {
      const error = catchError(() => limiter.refund(value));
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_ROLLGATE_DECISION');
      expect(error.message).toMatch(/^refund: expected a Decision that this limiter made, got ./);
    }
    expect(catchError(() => limiter.refund(decision)).message).toMatch(/another limiter's$/);
  });

  test('is not deceived by a Decision that was written to', () => {
    const { limiter } = setUp(ONE);
    limiter.attempt('a');
    const refusal = limiter.attempt('a');
    refusal.allowed = true;
    expect(limiter.refund(refusal)).toBe(false);
  });
});

describe('limit, clear and clearAll', () => {
  test('have acted when they return', () => {
    const { limiter } = setUp(ONE);
    limiter.limit('a');
    expect(limiter('a')).toBe(10);
    limiter.clear('a');
    expect(limiter('a')).toBe(0);
    limiter.clearAll();
    expect(limiter('a')).toBe(0);
  });

  test('clear without an id forgets the bucket of callers without one, and no other', () => {
    const { limiter } = setUp(ONE);
    for (const args of [[], [null]]) {
      limiter.attemptMany(['a', undefined]);
      limiter.clear(...args);
      expect([limiter('a'), limiter()]).toEqual([10, 0]);
    }
    limiter(1);
    limiter.clear('1');
    expect(limiter(1)).toBe(0);
  });
});

describe('stats', () => {
  test('are a fresh object of six numbers', () => {
    const { limiter } = setUp();
    const before = limiter.stats();
    limiter('a');
    const zeros = { keys: 0, allowed: 0, blocked: 0, evicted: 0, errors: 0 };
    expect(before).toEqual({ ...zeros, bytes: expect.any(Number) });
  });

  test('bytes grow with the ids and shrink with clearAll', () => {
    const { limiter } = setUp();
    const { bytes } = limiter.stats();
    for (let i = 0; i < 50_000; i++) limiter(i);
    expect(limiter.stats().bytes).toBeGreaterThan(bytes + 50_000 * 16);
    limiter.clearAll();
    expect(limiter.stats().bytes).toBeLessThanOrEqual(bytes);
  });

  test('ids that have expired are forgotten while others come', () => {
    const limiter = RateLimiter({ interval: 1, maxInInterval: 1 });
    for (let i = 0; i < 1000; i++) limiter(i);
    const expired = performance.now() + 2;
    while (performance.now() < expired);
    for (let i = 0; i < 1000; i++) limiter(`other ${i}`);
    expect(limiter.stats().keys).toBeLessThanOrEqual(1000);
  });
});

describe('close', () => {
  test('has closed when it returns; promises then reject, and other calls throw', async () => {
    const clock = jest.fn(() => Number.NaN);
    const { limiter } = setUp({ clock });
    expect(await Promise.all([limiter.close(), limiter.close()])).toEqual([undefined, undefined]);
    const calls = [
      () => limiter('a'),
      () => limiter(),
      () => limiter.attempt('a'),
      () => limiter.peek('a'),
      () => limiter.attemptMany([]),
      () => limiter.stats(),
    ];
    const errors = calls.map(catchError);
    for (const name of ['limit', 'wouldLimit', 'limitWithInfo', 'clear', 'clearAll', 'wait']) {
      const promise = limiter[name]('a');
      expect(promise).toBeInstanceOf(Promise);
      errors.push(await promise.catch((error) => error));
    }
    for (const error of errors) {
      expect(error).toBeInstanceOf(Error);
      expect(error).toMatchObject({
        code: 'ERR_ROLLGATE_CLOSED',
        message: 'the limiter is closed',
      });
    }
    expect(clock).not.toHaveBeenCalled();
    const { limiter: another } = setUp();
    another.close();
    expect(catchError(() => another('a'))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
  });
});
