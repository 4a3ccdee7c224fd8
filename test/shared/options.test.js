// The options of a limiter in shared memory: what is wrong is refused at construction, by name.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const RateLimiter = require('../..');
const { rateLimit } = RateLimiter;
const { SETS_MAX } = require('../../lib/internal-methods');
const { catchError } = require('../support/set-up');
const { filesOf, newName } = require('../support/shared-regions');

const LIMITS = { interval: 60_000, maxInInterval: 2 };

function refusalOf(options, make = RateLimiter) {
  const error = catchError(() => make(options));
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  return error;
}

test('a constructor makes no region, and neither does close', async () => {
  const name = newName();
  const limiter = RateLimiter({ ...LIMITS, shared: { name, maxKeys: 100 } });
  await limiter.close();
  expect(filesOf(name)).toEqual([]);
});

test.each([
  ['a number', 5, TypeError, 'got 5'],
  ['null', null, TypeError, 'got null'],
  ['a list', ['a'], TypeError, 'got an array'],
  ['true', true, TypeError, 'got true'],
  ['an empty name', '', RangeError, 'got "" (string)'],
  ['a name with a slash', 'a/b', RangeError, 'got "a/b" (string)'],
  ['a name with a dot in front', '.a', RangeError, 'got ".a" (string)'],
  ['two dots', '..', RangeError, 'got ".." (string)'],
  ['a name with a NUL', 'a\0', RangeError, 'got "a\\u0000" (string)'],
  ['a name with a line break', 'a\n', RangeError, 'got "a\\n" (string)'],
  ['a name in other letters', 'ä', RangeError, 'got "ä" (string)'],
  ['a long name', 'x'.repeat(201), RangeError, 'got "xxx'],
])('shared: %s', (_what, shared, Class, text) => {
  for (const wrong of [shared, ...(typeof shared === 'string' ? [{ name: shared }] : [])]) {
    const error = refusalOf({ ...LIMITS, shared: wrong });
    expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
    expect(error.message).toMatch(/^option 'shared(\.name)?': expected a name/);
    expect(error.message).toContain(text);
  }
});

test('names of every allowed character, and of any allowed length', () => {
  const names = ['a', '0', '-', '_x', 'A.b-c_9', 'x'.repeat(200)];
  for (const shared of names) expect(typeof RateLimiter({ ...LIMITS, shared })).toBe('function');
});

test.each([
  [{ name: 'a', size: 5 }, TypeError, 'unknown option "size" in shared'],
  [{}, TypeError, "'shared.name'"],
  [{ name: 'a', maxKeys: 0 }, RangeError, "'shared.maxKeys'"],
  [{ name: 'a', maxKeys: '5' }, TypeError, "'shared.maxKeys'"],
  [{ name: 'a', maxKeys: 2 ** 32 + 1 }, RangeError, "'shared.maxKeys'"],
  [{ name: 'a', directory: 5 }, TypeError, "'shared.directory'"],
  [{ name: 'a', directory: 'here' }, RangeError, "'shared.directory'"],
  [{ name: 'a', directory: '' }, RangeError, "'shared.directory'"],
  [{ name: 'a', directory: '/a\0b' }, RangeError, "'shared.directory'"],
  [{ name: 'a', directory: '/\ud800' }, RangeError, "'shared.directory'"],
])('shared: %j is refused', (shared, Class, text) => {
  const error = refusalOf({ ...LIMITS, shared });
  expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
  expect(error.message).toContain(text);
  expect(catchError(() => RateLimiter.unlinkShared(shared))?.message).toBe(error.message);
});

test('maxKeys stands inside or at the top, or is the same in both', () => {
  const keysThere = (options) => {
    const name = newName();
    const limiter = RateLimiter({ ...LIMITS, ...options(name) });
    return limiter.stats().bytes;
  };
  const bytes = keysThere((name) => ({ shared: { name, maxKeys: 5000 } }));
  expect(keysThere((shared) => ({ shared, maxKeys: 5000 }))).toBe(bytes);
  expect(keysThere((name) => ({ shared: { name, maxKeys: 5000 }, maxKeys: 5000 }))).toBe(bytes);
  expect(keysThere((shared) => ({ shared, maxKeys: 50 }))).toBeLessThan(bytes);
  const error = refusalOf({ ...LIMITS, shared: { name: 'a', maxKeys: 7 }, maxKeys: 8 });
  expect(error.message).toBe(
    "options 'maxKeys' and 'shared.maxKeys': expected one of them, which mean the same, got 8 and 7",
  );
});

test.each([
  ['redis', 'redis://localhost', "option 'shared': conflicts with 'redis'"],
  ['kv', { get() {}, set() {} }, "option 'kv': conflicts with 'shared'"],
  ['client', {}, "option 'shared': conflicts with 'client'"],
  ['namespace', 'n', "option 'namespace': requires 'redis' or 'kv'"],
  ['onError', 'allow', "option 'onError': requires 'redis' or 'kv'"],
  ['commandTimeout', 5, "option 'commandTimeout': requires 'kv'"],
])('%s beside it is refused', (name, value, text) => {
  const error = refusalOf({ ...LIMITS, shared: 'a', [name]: value });
  expect(error).toBeInstanceOf(TypeError);
  expect(error.message).toContain(text);
});

test('a limiter that is called one in memory has no shared one', () => {
  const error = refusalOf(
    { ...LIMITS, shared: 'a' },
    (options) => new RateLimiter.InMemoryRateLimiter(options),
  );
  expect(error.message).toBe("option 'shared': not allowed for a limiter in memory");
});

describe('a log', () => {
  const tooMany = { interval: 1000, maxInInterval: 2 ** 20 };

  test('has a longest length, beyond which other algorithms are named', () => {
    const error = refusalOf({ ...tooMany, shared: 'a' });
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toMatch(/^option 'maxInInterval': expected an integer from 1 to 1048575/);
    expect(error.message).toContain("'gcra', 'sliding-window-counter' and 'fixed-window'");
    const limits = [{ interval: 1, maxInInterval: 1 }, tooMany];
    expect(refusalOf({ limits, shared: 'a' }).message).toContain("'limits[1].maxInInterval'");
    expect(refusalOf({ windowMs: 1000, limit: 2 ** 20, shared: 'a' }, rateLimit)).toBeInstanceOf(
      RangeError,
    );
    expect(typeof RateLimiter({ ...tooMany, maxInInterval: 2 ** 20 - 1, shared: 'a' })).toBe(
      'function',
    );
  });

  test.each(['gcra', 'sliding-window-counter', 'fixed-window'])(
    'is what %s has none of',
    (algorithm) => {
      const limiter = RateLimiter({
        ...tooMany,
        maxInInterval: Number.MAX_SAFE_INTEGER,
        algorithm,
        shared: newName(),
        maxKeys: 10,
      });
      expect(limiter('a')).toBe(0);
    },
  );

  test('is kept for a limit that varies up to 1000, a larger one fails that call', async () => {
    const options = { windowMs: 60_000, limit: (req) => req.limit, maxKeys: 10, logger: console };
    const make = (others) =>
      rateLimit({ ...options, shared: newName(), keyGenerator: () => 'a', ...others });
    const ask = (middleware, limit) =>
      new Promise((resolve) =>
        middleware({ limit }, { setHeader() {}, headersSent: false }, resolve),
      );
    for (const passOnStoreError of [false, true]) {
      const middleware = make({ passOnStoreError });
      expect(await ask(middleware, 1000)).toBeUndefined();
      const error = await ask(middleware, 1001);
      expect(error).toBeInstanceOf(RangeError);
      expect(error.code).toBe('ERR_ROLLGATE_LIMIT');
      expect(error.message).toMatch(/^limit: expected .* from 0 to 1000, .* got 1001$/);
      expect(await middleware.getKey('a')).toMatchObject({ totalHits: 1 });
    }
    const counting = make({ algorithm: 'fixed-window' });
    expect(await ask(counting, 1e9)).toBeUndefined();
  });
});

test('another directory holds other regions', () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-shared-'));
  try {
    const name = newName();
    const here = RateLimiter({ ...LIMITS, shared: { name, maxKeys: 10 } });
    const there = RateLimiter({ ...LIMITS, shared: { name, maxKeys: 10, directory } });
    const again = RateLimiter({
      ...LIMITS,
      shared: { name, maxKeys: 10, directory: `${directory}/` },
    });
    expect([here('a'), there('a'), again('a')]).toEqual([0, 0, 0]);
    expect([here.peek('a').actionsLeft, there.peek('a').allowed]).toEqual([0, false]);
    expect(filesOf(name, directory)).toHaveLength(1);
    expect(RateLimiter.unlinkShared({ name, directory })).toBe(true);
    expect(RateLimiter.unlinkShared({ name, directory })).toBe(false);
    expect(filesOf(name)).toHaveLength(1);
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
});

test('where the addon was built without it, construction says what it needs', () => {
  jest.isolateModules(() => {
    jest.doMock('../../lib/native', () => ({ loadAddon: () => ({}) }));
    const Without = require('../../lib/limiter');
    const { unlinkShared } = require('../../lib/shared/region');
    for (const call of [
      () => Without({ ...LIMITS, shared: 'a' }),
      () => Without({ ...LIMITS, shared: 'a', [SETS_MAX]: true }),
      () => unlinkShared('a'),
    ]) {
      const error = catchError(call);
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_UNSUPPORTED' });
      expect(error.message).toContain('needs Linux');
    }
    jest.dontMock('../../lib/native');
  });
});
