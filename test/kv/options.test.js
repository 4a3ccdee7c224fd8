// The options of a limiter over a key-value store: what is wrong is refused at construction, by name.
'use strict';

const { createClient } = require('redis');
const RateLimiter = require('../..');
const { createPlainKv, openDenoKv } = require('../support/kv-stores');
const { catchError } = require('../support/set-up');

const kv = createPlainKv();
const GOOD = { interval: 1000, maxInInterval: 1, kv, namespace: 'n' };

function refusalOf(options, Class = RateLimiter) {
  const error = catchError(() => new Class(options));
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  return error;
}

test('a good one does not touch the store', () => {
  const calls = { ...kv.calls };
  expect(typeof RateLimiter({ ...GOOD, commandTimeout: 1, onError: 'allow' })).toBe('function');
  expect(kv.calls).toEqual(calls);
});

test.each([
  ['null', null, 'got null'],
  ['a string', 'file.db', 'got "file.db" (string)'],
  ['a list', [], 'got an array'],
  ['an object without set', { get() {} }, 'got an object'],
  ['an object without get', { set() {} }, 'got an object'],
  ['a Map', new Map(), 'got a Map, which has no compare-and-set'],
  ['a promise', Promise.resolve(kv), 'got a promise: await it first'],
  ['a client of Redis', createClient(), "got a client of Redis, which belongs in 'redis'"],
])('kv: %s', (_name, wrong, text) => {
  const error = refusalOf({ ...GOOD, kv: wrong });
  expect(error).toBeInstanceOf(TypeError);
  expect(error.message).toContain("option 'kv': expected an open Deno KV, or an object");
  expect(error.message).toContain(text);
});

test('kv: an instance of a class and a function with properties will do', () => {
  class Kv {
    get() {}
    set() {}
  }
  for (const good of [new Kv(), Object.assign(() => {}, createPlainKv())]) {
    expect(typeof RateLimiter({ ...GOOD, kv: good })).toBe('function');
  }
});

test.each([
  [undefined, TypeError, 'got undefined'],
  [5, TypeError, 'got 5'],
  ['', RangeError, 'non-empty'],
  ['a{b', RangeError, 'without braces'],
  ['\ud800', RangeError, 'well-formed'],
  ['ä'.repeat(257), RangeError, 'at most 512 bytes'],
])('namespace: %j', (namespace, Class, text) => {
  const error = refusalOf({ ...GOOD, namespace });
  expect(error).toBeInstanceOf(Class);
  expect(error.message).toMatch(/^option 'namespace': expected /);
  expect(error.message).toContain(text);
});

test.each([
  ['commandTimeout', '500', TypeError],
  ['commandTimeout', 0, RangeError],
  ['commandTimeout', 1.5, RangeError],
  ['commandTimeout', 2 ** 31, RangeError],
  ['onError', 'ignore', TypeError],
])('%s: %j', (name, value, Class) => {
  const error = refusalOf({ ...GOOD, [name]: value });
  expect(error).toBeInstanceOf(Class);
  expect(error.message).toMatch(new RegExp(`^option '${name}': expected `));
});

test.each([
  [{ redis: 'redis://localhost' }, "option 'kv': not allowed beside 'redis'"],
  [{ client: createClient() }, "option 'kv': not allowed beside 'client'"],
  [{ kv: undefined, commandTimeout: 5, namespace: undefined }, "only beside 'kv'"],
  [
    { kv: undefined, redis: 'redis://localhost', commandTimeout: 5 },
    "option 'commandTimeout': expected inside of 'redis'",
  ],
])('a combination that makes no sense: %#', (more, text) => {
  const error = refusalOf({ ...GOOD, ...more });
  expect(error).toBeInstanceOf(TypeError);
  expect(error.message).toContain(text);
});

test('the classes of other stores refuse it', () => {
  const inMemory = refusalOf(GOOD, RateLimiter.InMemoryRateLimiter);
  expect(inMemory.message).toBe("option 'kv': not allowed for a limiter in memory");
  expect(refusalOf(GOOD, RateLimiter.RedisRateLimiter).message).toMatch(/^option 'client'/);
});

describe('a log that may outgrow a value of Deno KV', () => {
  let store;
  beforeAll(async () => {
    store = await openDenoKv();
  });
  afterAll(() => store.close());

  const hour = 3_600_000;
  const onDeno = (options) => ({ ...GOOD, interval: 2 * hour, kv: store.kv, ...options });

  test('is refused there, and only there', () => {
    const error = refusalOf(onDeno({ maxInInterval: 10_000 }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toMatch(
      /^option 'maxInInterval': expected a log that fits .* got one of \d+;/,
    );
    const limits = [
      { interval: 2 * hour, maxInInterval: 10_000 },
      { interval: 5, maxInInterval: 1 },
    ];
    refusalOf({ ...GOOD, kv: store.kv, limits });
    RateLimiter({ ...GOOD, interval: 2 * hour, maxInInterval: 10_000 });
    for (const algorithm of ['sliding-window-counter', 'fixed-window', 'gcra']) {
      RateLimiter(onDeno({ maxInInterval: 10_000, algorithm }));
    }
  });

  test.each([
    ['days', 2 * hour],
    ['minutes', hour],
  ])('is taken where it fits, and the fullest one can be written: %s', async (_name, interval) => {
    const fits = (maxInInterval) => {
      return catchError(() => RateLimiter(onDeno({ interval, maxInInterval }))) === undefined;
    };
    let [most, tooMany] = [1, 1e6];
    while (tooMany - most > 1) {
      const middle = Math.floor((most + tooMany) / 2);
      if (fits(middle)) most = middle;
      else tooMany = middle;
    }
    expect(most).toBeGreaterThan(8000);
    const limiter = RateLimiter(onDeno({ interval, maxInInterval: most, commandTimeout: 5000 }));
    expect((await limiter.attempt(String(interval), { cost: most })).allowed).toBe(true);
    expect((await limiter.attempt(String(interval))).allowed).toBe(false);
  });
});
