// Options: each wrong one is an error with class, code and a message that says what came.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { KNOWN_OPTIONS } = require('../../lib/adapters/middleware/options');
const { LIMITER_NAMES } = require('../../lib/limiter/options');
const { errorOf } = require('../support/outcome');
const { catchError } = require('../support/set-up');

const GOOD = { interval: 1000, maxInInterval: 5 };

function expectRefusal(options, Class, message) {
  for (const make of [RateLimiter, RateLimiter.InMemoryRateLimiter]) {
    const error = catchError(() => new make(options));
    expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
  }
}

const INTERVAL = 'a finite number of ms > 0';
const COUNT = 'an integer >= 1';
const GAP = 'a finite number of ms >= 0';

/** For each option: values that are fine; values of the wrong type; values out of range. */
const OPTIONS = {
  interval: {
    expected: INTERVAL,
    good: [1, 0.001, 0.0001, 5e-324, 1000.5, 2 ** 31, 1e300, Number.MAX_VALUE],
    wrongType: ['1000', '60s', '', null, true, 1000n, {}, [1000], () => 1000, Symbol(), undefined],
    outOfRange: [0, -0, -1, Number.NaN, Infinity, -Infinity],
  },
  maxInInterval: {
    expected: COUNT,
    good: [1, 2, 1000, 2 ** 32, 2 ** 53, 1e300],
    wrongType: ['5', null, true, 5n, {}, [5], () => 5, Symbol('max'), undefined],
    outOfRange: [0, -1, 0.5, 1.5, Number.NaN, Infinity, -Infinity],
  },
  minDifference: {
    expected: GAP,
    good: [0, -0, 0.001, 1, 1e300, undefined],
    wrongType: ['1', null, false, 1n, {}, []],
    outOfRange: [-1, -0.001, Number.NaN, Infinity, -Infinity],
  },
  countBlocked: {
    expected: 'true or false',
    good: [true, false, undefined],
    wrongType: [0, 1, 'true', '', null, {}, Object(false)],
    outOfRange: [],
  },
  algorithm: {
    expected: `one of ${ALGORITHMS.join(', ')}`,
    good: [...ALGORITHMS, undefined],
    wrongType: ['', 'log', 'GCRA', 'fixed_window', 'toString', null, 1, true, {}, ['gcra']],
    outOfRange: [],
  },
  blockFor: {
    expected: INTERVAL,
    good: [1, 0.001, 5e-324, 1e300, [1], [0.5, 2, 1e300], Array(255).fill(1), undefined],
    wrongType: ['1000', '', null, true, 1000n, {}, () => 1000, new Set([1])],
    outOfRange: [0, -0, -1, Number.NaN, Infinity, -Infinity],
  },
  clock: {
    expected: 'a function that returns ms',
    good: [() => 0, Date.now, performance.now.bind(performance), undefined],
    wrongType: [0, Date.now(), 'now', null, true, {}, { now: () => 0 }],
    outOfRange: [],
  },
  maxKeys: {
    expected: COUNT,
    good: [1, 2, 1e6, 2 ** 53, 1e300, undefined],
    wrongType: ['5', null, true, 5n, {}, []],
    outOfRange: [0, -1, 1.5, Number.NaN, Infinity],
  },
  limits: {
    expected: 'a list of at least one limit',
    good: [[GOOD], [GOOD, { ...GOOD, minDifference: 5 }], Object.freeze([GOOD]), undefined],
    wrongType: [null, {}, GOOD, 'limits', 5, true, () => [GOOD], new Set([GOOD])],
    outOfRange: [],
  },
};

/** As the messages show it. */
function shown(value) {
  switch (typeof value) {
    case 'string':
      return `${JSON.stringify(value)} (string)`;
    case 'bigint':
      return `${value}n`;
    case 'function':
      return 'a function';
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? 'an array' : 'an object';
    default:
      return String(value);
  }
}

function rowsOf(list) {
  return Object.entries(OPTIONS).flatMap(([name, option]) =>
    option[list].map((value) => [name, value, option.expected]),
  );
}

test.each(rowsOf('good'))('%s: %p is fine', (name, value) => {
  const limiter = RateLimiter({ ...GOOD, [name]: value });
  expect([limiter('a'), limiter.stats().allowed]).toEqual([0, 1]);
});

test.each(rowsOf('wrongType'))('%s: %p is a TypeError', (name, value, expected) => {
  const message = `option '${name}': expected ${expected}, got ${shown(value)}`;
  expectRefusal({ ...GOOD, [name]: value }, TypeError, message);
});

test.each(rowsOf('outOfRange'))('%s: %p is a RangeError', (name, value, expected) => {
  const message = `option '${name}': expected ${expected}, got ${shown(value)}`;
  expectRefusal({ ...GOOD, [name]: value }, RangeError, message);
});

test("an algorithm's name in other packages is refused with its name here", () => {
  const message = /, gcra \(here probably gcra\), got "token-bucket"/;
  expect(() => RateLimiter({ ...GOOD, algorithm: 'token-bucket' })).toThrow(message);
});

const NO_OBJECTS = [undefined, null, 1000, '1000', true, [], [GOOD], () => GOOD, Symbol()];
test.each(NO_OBJECTS.map((options) => [options]))('options %p are a TypeError', (options) => {
  expectRefusal(options, TypeError, `option 'options': expected an object, got ${shown(options)}`);
});

describe('an unknown option', () => {
  test.each([
    ['minDiff', 'minDifference'],
    ['Redsi', 'redis'],
    ['points', 'maxInInterval'],
    ['tokensPerInterval', 'maxInInterval'],
    ['reservoir', 'maxInInterval'],
    ['duration', 'interval'],
    ['minTime', 'minDifference'],
    ['maxK', 'maxKeys'],
    ['k', 'kv'],
  ])('%s is refused with the hint %s', (name, nearest) => {
    const message = `unknown option "${name}"; did you mean '${nearest}'?`;
    expectRefusal({ ...GOOD, [name]: 5 }, TypeError, message);
  });

  test('without a near one is refused with all that are known', () => {
    const known = LIMITER_NAMES.join(', ');
    const message = `unknown option "ttl": expected one of ${known}`;
    expectRefusal({ ...GOOD, ttl: 5 }, TypeError, message);
  });

  test.each(['', '__proto__', 'constructor', 'z'.repeat(10_000)])('%s is refused', (name) => {
    const options = Object.defineProperty({ ...GOOD }, name, { value: 5, enumerable: true });
    const error = catchError(() => RateLimiter(options));
    expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_ROLLGATE_OPTION' });
    expect(error.message).toMatch(/^unknown option "/);
    expect(error.message.length).toBeLessThan(400);
  });

  test.each([
    ['windowMs', 'interval'],
    ['limit', 'maxInInterval'],
  ])('%s is refused as one of the middleware, with the hint %s', (name, own) => {
    const text = `option '${name}': belongs to the middleware, which is require('rollgate').rateLimit`;
    expectRefusal({ ...GOOD, [name]: 5 }, TypeError, `${text}; a limiter has '${own}'`);
  });

  const onlyOfMiddleware = KNOWN_OPTIONS.filter((name) => !LIMITER_NAMES.includes(name));
  test.each(onlyOfMiddleware)('%s of the middleware is known to be one', (name) => {
    const error = catchError(() => RateLimiter({ [name]: 5 }));
    expect(error.message).toContain("require('rollgate').rateLimit");
  });

  test('that is undefined is as good as left out', () => {
    const limiter = RateLimiter({ ...GOOD, redis: undefined, intervall: undefined });
    expect(limiter('a')).toBe(0);
  });
});

describe('limits', () => {
  const limits = [
    { interval: 10, maxInInterval: 1 },
    { interval: 100, maxInInterval: 2 },
  ];

  test('each is checked, and the message says which', () => {
    const ten = { ...limits[0], interval: '10' };
    const cases = [
      [ten, TypeError, `.interval': expected ${INTERVAL}, got "10" (string)`],
      [{ ...ten, interval: 0 }, RangeError, `.interval': expected ${INTERVAL}, got 0`],
      [{ interval: 1 }, TypeError, `.maxInInterval': expected ${COUNT}, got undefined`],
      [{ ...limits[0], minDifference: -1 }, RangeError, `.minDifference': expected ${GAP}, got -1`],
      [undefined, TypeError, "': expected an object, got undefined"],
      [{ windowMs: 0, limit: 5 }, RangeError, `.windowMs': expected ${INTERVAL}, got 0`],
      [{ windowMs: 1, limit: 0 }, RangeError, `.limit': expected ${COUNT}, got 0`],
      [{ ...ten, windowMs: 1 }, TypeError, `.interval': expected ${INTERVAL}, got "10" (string)`],
    ];
    for (const [wrong, Class, message] of cases) {
      expectRefusal({ limits: [limits[0], wrong] }, Class, `option 'limits[1]${message}`);
    }
    const empty = "option 'limits': expected a list of at least one limit, got an empty list";
    expectRefusal({ limits: [] }, TypeError, empty);
  });

  test('have no other options of their own', () => {
    expectRefusal(
      { limits: [limits[0], { ...GOOD, intervall: 1 }] },
      TypeError,
      'unknown option "intervall" in limits[1]; did you mean \'interval\'?',
    );
    for (const name of ['countBlocked', 'maxKeys', 'clock', 'limits']) {
      const error = catchError(() => RateLimiter({ limits: [{ ...GOOD, [name]: 5 }] }));
      expect(error).toMatchObject({ name: 'TypeError', code: 'ERR_ROLLGATE_OPTION' });
    }
  });
});

describe('names of limits', () => {
  const named = (...names) => ({ limits: names.map((name) => ({ ...GOOD, name })) });

  test.each(['"\\\\%', '🪙', 'constructor', 'x'.repeat(1000)])('%p is fine', (name) => {
    expect(RateLimiter(named(name, undefined)).peek().limits[0].name).toBe(name);
  });

  // Kills: a name that breaks headers or logs; one that an object as cost could not have.
  test.each([
    ['', RangeError],
    ['a\nb', RangeError],
    ['\x7f', RangeError],
    ['\ud800', RangeError],
    ['__proto__', RangeError],
    [null, TypeError],
  ])('%p is refused', (name, Class) => {
    const expected = 'a non-empty string of printable characters, not __proto__';
    const message = `option 'limits[1].name': expected ${expected}, got ${shown(name)}`;
    expectRefusal(named('a', name), Class, message);
  });

  test('no name twice, but several limits without one', () => {
    expectRefusal(
      named('a', undefined, 'b', 'a'),
      TypeError,
      `option 'limits[3].name': expected a name of its own, got "a" (string), the name of limits[0]`,
    );
    expect(RateLimiter(named(undefined, 'a', undefined))()).toBe(0);
  });
});

test('windowMs and limit in limits are interval and maxInInterval, and come first', () => {
  const windowOf = (limit) => RateLimiter({ limits: [limit] }).peek().limits[0];
  expect(windowOf({ windowMs: 1000, interval: 1, limit: 5, maxInInterval: 1 })).toMatchObject(GOOD);
  expect(windowOf({ ...GOOD, windowMs: undefined, limit: undefined })).toMatchObject(GOOD);
});

describe('blockFor as a list', () => {
  const expected = 'a number of ms > 0, or a list of 1 to 255 of them';

  test.each([
    [[], TypeError, `blockFor': expected ${expected}, got an empty list`],
    [Array(256).fill(1), RangeError, `blockFor': expected ${expected}, got an array`],
    [['1'], TypeError, `blockFor[0]': expected ${INTERVAL}, got "1" (string)`],
    [[1, 0], RangeError, `blockFor[1]': expected ${INTERVAL}, got 0`],
    [Array(2), TypeError, `blockFor[0]': expected ${INTERVAL}, got undefined`],
  ])('%p is refused, and the message says which', (blockFor, Class, message) => {
    expectRefusal({ ...GOOD, blockFor }, Class, `option '${message}`);
  });

  test('is copied as it is read', () => {
    const blockFor = [10_000];
    const limiter = RateLimiter({ ...GOOD, maxInInterval: 1, blockFor, clock: () => 0 });
    blockFor[0] = 1;
    expect([limiter('a'), limiter('a')]).toEqual([0, 10_000]);
  });
});

test('gcra above a billion actions per second is reported by new limiters and by setLimits', () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const most = { interval: 10, maxInInterval: 1e7 };
  const fast = { interval: 10, maxInInterval: 1e7 + 1 };
  const limiter = RateLimiter({ ...most, algorithm: 'gcra' });
  RateLimiter({ ...fast, algorithm: 'fixed-window' });
  expect(warn).not.toHaveBeenCalled();
  limiter.setLimits([fast]);
  RateLimiter({ limits: [{ interval: 1000, maxInInterval: 5 }, fast], algorithm: 'gcra' });
  const { calls } = warn.mock;
  warn.mockRestore();
  expect(calls.map(([, { code }]) => code)).toEqual(Array(2).fill('ROLLGATE_GCRA_RATE'));
  expect(calls[0][0]).toContain('10000001 in 10 ms');
});

test('countBlocked true is a TypeError with gcra, where no refusal counts', () => {
  expectRefusal(
    { ...GOOD, algorithm: 'gcra', countBlocked: true },
    TypeError,
    "option 'countBlocked': expected false or nothing with algorithm 'gcra', " +
      'which never counts a refusal, got true',
  );
});

test('an error thrown by a getter or a proxy is passed on as it is', () => {
  const mine = new Error('mine');
  const thrower = () => {
    throw mine;
  };
  for (const name of Object.keys(OPTIONS)) {
    const options = Object.defineProperty({ ...GOOD }, name, { get: thrower, enumerable: true });
    expect(catchError(() => RateLimiter(options))).toBe(mine);
  }
  for (const trap of ['ownKeys', 'get']) {
    expect(catchError(() => RateLimiter(new Proxy({ ...GOOD }, { [trap]: thrower })))).toBe(mine);
  }
});

describe('options of wait', () => {
  test.each([
    [{ deadline: '5' }, TypeError, /^option 'deadline': expected a number of ms .*got "5"/],
    [{ deadline: Date.now() + 5000 }, RangeError, /ms from the call on/],
    [{ signal: {} }, TypeError, /^option 'signal': expected an AbortSignal, got an object$/],
    [{ maxQueue: 0 }, RangeError, /^option 'maxQueue': expected an integer >= 1, got 0$/],
    [{ priority: 4 }, RangeError, /^option 'priority': expected an integer from 0 to 3, got 4$/],
    [{ timeout: 5 }, TypeError, /^unknown option "timeout" in wait options/],
    [5, TypeError, /^option 'wait options': expected an object, got 5$/],
  ])('%p are refused', async (options, kind, message) => {
    const clock = jest.fn();
    const error = await errorOf(RateLimiter({ ...GOOD, clock }).wait('a', options));
    expect(error).toBeInstanceOf(kind);
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
    expect(error.message).toMatch(message);
    expect(clock).not.toHaveBeenCalled();
  });

  test('that are undefined, or at the end of their range, are taken', async () => {
    const { signal } = new AbortController();
    for (const options of [
      { cost: undefined, signal: undefined, deadline: undefined, maxQueue: undefined },
      { priority: 3, signal, maxQueue: Number.MAX_VALUE, deadline: 1e11 },
    ]) {
      expect(await RateLimiter(GOOD).wait('a', options)).toMatchObject({ allowed: true });
    }
  });
});
