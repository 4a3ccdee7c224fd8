// The limiter as a function and its methods in memory: how it is made, what each form of a call gives, and when.
'use strict';

const mockTime = { us: 5_000_000_001 };
jest.mock('microtime', () => ({ __esModule: true, default: { now: () => mockTime.us } }));

const { inspect, promisify } = require('node:util');
const theirs = require('rolling-rate-limiter');
const RateLimiter = require('../..');
const { expectEqual } = require('../support/outcome');
const { runProgram } = require('../support/run-program');
const { catchError, setUp } = require('../support/set-up');
const { casesOf } = require('../support/tiers');
const { randomFrom, randomStep } = require('../support/traces');

const ONE = { maxInInterval: 1 };

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

  test('copies the options, also frozen, inherited and those of an object without a prototype', () => {
    const plain = { interval: 10, maxInInterval: 1, clock: () => 0 };
    const bare = Object.assign(Object.create(null), plain);
    for (const options of [Object.freeze({ ...plain }), bare, Object.create(plain)]) {
      const limiter = RateLimiter(options);
      Reflect.set(options, 'maxInInterval', 5);
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
    for (const name of Object.getOwnPropertyNames(RateLimiter.prototype)) {
      expect(limiter[name]).toBe(RateLimiter.prototype[name]);
    }
    expect([Object.keys(limiter), Object.keys(RateLimiter.prototype)]).toEqual([[], []]);
    limiter.attempt = jest.fn();
    limiter.attempt('a');
    expect(limiter.attempt).toHaveBeenCalledWith('a');
    const { attempt, limit } = RateLimiter.prototype;
    expect(() => attempt('a')).toThrow(TypeError);
    await expect(limit('a')).rejects.toThrow(TypeError);
  });
});

describe('the callback form', () => {
  test.each([
    ['limiter(callback, undefined)', (limiter, callback) => limiter(callback, undefined), []],
    ['limiter(null, callback)', (limiter, callback) => limiter(null, callback), [null]],
  ])('%s gives null, the time left and the actions left', async (_form, call, args) => {
    const { limiter } = setUp(ONE);
    const ask = () => new Promise((resolve) => call(limiter, (...answer) => resolve(answer)));
    expect([await ask(), await ask()]).toEqual([
      [null, 0, 0],
      [null, 10, 0],
    ]);
    expect([limiter(...args), limiter(args[0], undefined)]).toEqual([10, 10]);
  });

  test.each([[null], ['callback'], [Symbol('callback')]])(
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

test('attemptMany reads the clock once, and the array before that', () => {
  const ids = ['a', 'b', 'c'];
  const clock = jest.fn(() => {
    ids.length = 0;
    return 0;
  });
  expect(setUp({ clock }).limiter.attemptMany(ids)).toHaveLength(3);
  expect(clock).toHaveBeenCalledTimes(1);
});

describe('refund', () => {
  test('refuses what is no Decision, and that of a limiter just alike', () => {
    const { limiter } = setUp();
    const decision = setUp().limiter.attempt('a');
    const forged = [Object.create(decision), new Proxy(decision, {})];
    for (const value of forged) {
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

test('limit, clear, clearAll and close have acted when they return', () => {
  const { limiter } = setUp(ONE);
  limiter.limit('a');
  expect(limiter('a')).toBe(10);
  limiter.clear('a');
  expect(limiter('a')).toBe(0);
  limiter.clearAll();
  expect(limiter('a')).toBe(0);
  limiter.close();
  expect(catchError(() => limiter('a')).code).toBe('ERR_ROLLGATE_CLOSED');
});

describe('beside rolling-rate-limiter 0.4.2', () => {
  // It forgets ids by timers of real time.
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const METHODS = ['limit', 'wouldLimit', 'limitWithInfo', 'wouldLimitWithInfo', 'clear'];

  test('the methods of its names give the same answers on random traces', async () => {
    for (let seed = 1; seed <= casesOf(100); seed++) {
      const random = randomFrom(seed);
      const unit = random.pick([1, 1000]);
      const steps = random.between(1, 40);
      // It forgets actions after `interval`, and so does not keep a minDifference that is longer.
      const gapSteps = random.chance(40) ? random.between(1, Math.min(steps, 12)) : 0;
      const options = {
        interval: (steps * unit) / 1000,
        maxInInterval: random.between(1, 7),
        minDifference: (gapSteps * unit) / 1000,
      };
      const clock = () => mockTime.us / 1000;
      const limiters = [
        new theirs.InMemoryRateLimiter(options),
        new RateLimiter.InMemoryRateLimiter({ ...options, clock }),
      ];
      for (let step = 0; step < 100; step++) {
        mockTime.us += randomStep(random, unit);
        const id = random.pick(['a', 'b', 1, '1']);
        const method = random.chance(3) ? 'clear' : random.pick(METHODS.slice(0, 4));
        const answers = await Promise.all(limiters.map((limiter) => limiter[method](id)));
        expectEqual(answers[1], answers[0], { seed, step, method });
      }
    }
  });
});
