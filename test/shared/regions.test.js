// Regions: the option shared; private files that outlive their limiters, refuse other limits, and can be removed.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const RateLimiter = require('../..');
const { catchError } = require('../support/set-up');
const { filesOf, newName } = require('../support/shared-regions');

const { rateLimit } = RateLimiter;
const LIMITS = { interval: 60_000, maxInInterval: 2 };
const SMALL = { ...LIMITS, maxKeys: 50 };

function refusalOf(options, make = RateLimiter) {
  const error = catchError(() => make(options));
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  return error;
}

const ROOM = "'shared.room': expected an integer from 1 to 1048575";

test.each([
  [5, TypeError, "'shared': expected a name, or {"],
  [['a'], TypeError, 'got an array'],
  ['', RangeError, 'got "" (string)'],
  ['a/b', RangeError, 'got "a/b" (string)'],
  ['.a', RangeError, 'got ".a" (string)'],
  ['\u00e4', RangeError, 'got "\u00e4" (string)'],
  ['x'.repeat(201), RangeError, "'shared': expected a name of 1 to 200 letters"],
  [{ name: 'a/b' }, RangeError, "'shared.name': expected a name"],
  [{ name: 'a', size: 5 }, TypeError, 'unknown option "size" in shared'],
  [{}, TypeError, "'shared.name'"],
  [{ name: 'a', maxKeys: 0 }, RangeError, "'shared.maxKeys'"],
  [{ name: 'a', maxKeys: '5' }, TypeError, "'shared.maxKeys'"],
  [{ name: 'a', maxKeys: 200_000_001 }, RangeError, "'shared.maxKeys'"],
  [{ name: 'a', room: 0 }, RangeError, ROOM],
  [{ name: 'a', room: 2 ** 20 }, RangeError, ROOM],
  [{ name: 'a', room: '200' }, TypeError, ROOM],
  [{ name: 'a', directory: 5 }, TypeError, "'shared.directory'"],
  [{ name: 'a', directory: 'here' }, RangeError, "'shared.directory'"],
  [{ name: 'a', directory: '/a\0b' }, RangeError, "'shared.directory'"],
  [{ name: 'a', directory: '/\ud800' }, RangeError, "'shared.directory'"],
])('shared: %j is refused', (shared, Class, text) => {
  const error = refusalOf({ ...LIMITS, shared });
  expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
  expect(error.message).toContain(text);
  expect(catchError(() => RateLimiter.unlinkShared(shared))?.message).toBe(error.message);
});

test.each([
  [{ redis: 'redis://localhost' }, "option 'shared': conflicts with 'redis'"],
  [{ kv: { get() {}, set() {} } }, "option 'kv': conflicts with 'shared'"],
  [{ namespace: 'n' }, "option 'namespace': requires 'redis' or 'kv'"],
  [{ commandTimeout: 5 }, "option 'commandTimeout': requires 'kv'"],
  [
    { shared: { name: 'a', maxKeys: 7 }, maxKeys: 8 },
    "options 'maxKeys' and 'shared.maxKeys': expected one of them, which mean the same, got 8 and 7",
  ],
])('beside it, %j is refused', (others, text) => {
  const error = refusalOf({ ...LIMITS, shared: 'a', ...others });
  expect(error).toBeInstanceOf(TypeError);
  expect(error.message).toContain(text);
});

test('names may have every allowed character, and any allowed length', () => {
  const names = ['0', '-', '_x', 'A.b-c_9', 'x'.repeat(200)];
  for (const shared of names) expect(typeof RateLimiter({ ...LIMITS, shared })).toBe('function');
});

test('maxKeys stands inside or at the top, or is the same in both', () => {
  const bytesOf = (inside, top) => {
    const shared = { name: newName(), ...inside };
    return RateLimiter({ ...LIMITS, shared, ...top }).stats().bytes;
  };
  const many = { maxKeys: 5000 };
  const bytes = bytesOf(many);
  expect([bytesOf({}, many), bytesOf(many, many)]).toEqual([bytes, bytes]);
  expect(bytesOf({}, { maxKeys: 50 })).toBeLessThan(bytes);
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
    RateLimiter({ ...tooMany, maxInInterval: 2 ** 20 - 1, shared: 'a' });
    for (const algorithm of ['gcra', 'sliding-window-counter', 'fixed-window']) {
      const most = { interval: 1000, maxInInterval: Number.MAX_SAFE_INTEGER };
      expect(RateLimiter({ ...most, algorithm, shared: newName(), maxKeys: 10 })('a')).toBe(0);
    }
  });

  test('is kept for limits of requests up to 1024, a larger one fails that call', async () => {
    const middleware = rateLimit({
      windowMs: 60_000,
      limit: (req) => req.limit,
      keyGenerator: () => 'a',
      shared: { name: newName(), maxKeys: 10 },
      logger: console,
    });
    const response = { setHeader() {}, headersSent: false };
    const ask = (limit) => new Promise((resolve) => middleware({ limit }, response, resolve));
    expect(await ask(1024)).toBeUndefined();
    const error = await ask(1025);
    expect(error.code).toBe('ERR_ROLLGATE_SHARED_MISMATCH');
    expect(error.message).toMatch(/ has no room for a limit of 1025: .* room for 1024 actions/);
    expect(await middleware.getKey('a')).toMatchObject({ totalHits: 1 });
  });
});

test('another directory holds other regions', () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-shared-'));
  try {
    const name = newName();
    const at = (where) => RateLimiter({ ...LIMITS, shared: { name, maxKeys: 10, ...where } });
    const [here, there, again] = [at(), at({ directory }), at({ directory: `${directory}/` })];
    expect([here('a'), there('a'), again('a')]).toEqual([0, 0, 0]);
    expect([here.peek('a').actionsLeft, there.peek('a').allowed]).toEqual([0, false]);
    expect(filesOf(name, directory)).toHaveLength(1);
    const removals = [1, 2].map(() => RateLimiter.unlinkShared({ name, directory }));
    expect(removals).toEqual([true, false]);
    expect(filesOf(name)).toHaveLength(1);
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
});

test('a limiter that is called one in memory has none', () => {
  const make = (options) => new RateLimiter.InMemoryRateLimiter(options);
  const { message } = refusalOf({ ...LIMITS, shared: 'a' }, make);
  expect(message).toBe("option 'shared': not allowed for a limiter in memory");
});

// On macOS and Windows, every build is one without it.
// Kills: createSharedSlots === undefined without a refusal
test('where the addon was built without it, construction says what it needs', () => {
  jest.isolateModules(() => {
    jest.doMock('../../lib/native/addon', () => ({ loadAddon: () => ({}) }));
    const Without = require('../../lib/limiter');
    const ConcurrencyLimiter = require('../../lib/concurrency');
    const { unlinkShared } = require('../../lib/stores/shared/region');
    const calls = [
      () => Without({ ...LIMITS, shared: 'a' }),
      () => new ConcurrencyLimiter({ max: 1, shared: 'a' }),
      () => unlinkShared('a'),
    ];
    for (const call of calls) {
      const error = catchError(call);
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_UNSUPPORTED' });
      expect(error.message).toContain('needs Linux');
    }
    jest.dontMock('../../lib/native/addon');
  });
});

describe('a limiter attaches with the first call of any kind', () => {
  const CALLS = {
    'limiter(id)': (limiter) => limiter('a'),
    'limiter(id, callback)': (limiter) => limiter('a', () => {}),
    attempt: (limiter) => limiter.attempt('a'),
    attemptMany: (limiter) => limiter.attemptMany([]),
    clear: (limiter) => limiter.clear('a'),
    clearAll: (limiter) => limiter.clearAll(),
    stats: (limiter) => limiter.stats(),
  };

  test.each(Object.entries(CALLS))('%s', async (name, call) => {
    const shared = newName();
    const limiter = RateLimiter({ ...SMALL, shared });
    expect(filesOf(shared)).toEqual([]);
    await call(limiter);
    const [file, ...others] = filesOf(shared);
    expect(others).toEqual([]);
    expect(fs.statSync(file).size).toBe(limiter.stats().bytes);

    // It fails where it cannot, and tries again.
    const other = RateLimiter({ ...SMALL, shared, maxInInterval: 9 });
    const attempt = name.includes('callback')
      ? () => new Promise((_resolve, reject) => other('a', reject))
      : async () => call(other);
    for (let i = 0; i < 2; i++) {
      await expect(attempt()).rejects.toMatchObject({ code: 'ERR_ROLLGATE_SHARED_MISMATCH' });
    }
    RateLimiter.unlinkShared(shared);
    await call(other);
    expect(other.stats().errors).toBe(2);
  });
});

test('nonsense in a region is an error that names it', () => {
  const shared = newName();
  const limiter = RateLimiter({ ...SMALL, shared });
  limiter('a');
  const { bytes } = limiter.stats();
  const file = fs.openSync(filesOf(shared)[0], 'r+');
  const header = 8448; // checked at the first call, and not again
  fs.writeSync(file, Buffer.alloc(bytes - header, 0xa7), 0, bytes - header, header);
  fs.closeSync(file);
  expect(catchError(() => limiter('b'))).toMatchObject({
    code: 'ERR_ROLLGATE_SHARED_CORRUPT',
    message: expect.stringContaining(shared),
  });
});

test('what the message advises removes a file that is no region', () => {
  const shared = newName();
  RateLimiter({ ...SMALL, shared })('a');
  fs.writeFileSync(filesOf(shared)[0], 'hello');
  const error = catchError(() => RateLimiter({ ...SMALL, shared })('a'));
  expect(error.code).toBe('ERR_ROLLGATE_SHARED_FILE');
  expect(error.message).toContain(`RateLimiter.unlinkShared('${shared}') removes it`);
  expect(RateLimiter.unlinkShared(shared)).toBe(true);
  expect(RateLimiter({ ...SMALL, shared }).attempt('a').actionsLeft).toBe(1);
});

describe('an id takes as many bytes as docs/shared-memory.md says', () => {
  const window = (maxInInterval, others) => ({ interval: 60_000, maxInInterval, ...others });
  const bytesFor = (options, maxKeys) => {
    const shared = newName();
    const limiter = RateLimiter({ ...options, shared: { name: shared, maxKeys } });
    const { bytes } = limiter.stats();
    limiter.close();
    RateLimiter.unlinkShared(shared);
    return bytes;
  };

  test.each([
    [97, window(4)],
    [139, window(8)],
    [97, window(1e6, { algorithm: 'sliding-window-counter' })],
    [139, window(1e6, { algorithm: 'gcra' })],
    [139, { algorithm: 'fixed-window', limits: [{ calendar: 'month', maxInInterval: 1e6 }] }],
    [780, { limits: [window(5), { interval: 1000, maxInInterval: 100 }] }],
    [5565, window(1000)],
  ])('%d: %j', (expected, options) => {
    const keys = Math.min(4000, Math.ceil(4e6 / expected)); // a container has 64 MB for all regions
    const few = Math.ceil(keys / 4);
    const each = (bytesFor(options, keys) - bytesFor(options, few)) / (keys - few);
    expect(Math.abs(each / expected - 1)).toBeLessThan(0.01);
  });
});

test('windows are those of the time of day, and the region says how far it is ahead of the clock', () => {
  const shared = newName();
  const interval = 1e9;
  const options = { ...SMALL, shared, interval, algorithm: 'fixed-window' };
  const isAligned = () => {
    const { resetIn } = RateLimiter(options).attempt('a');
    const late = (Date.now() + resetIn) % interval;
    return Math.min(late, interval - late) < 60_000;
  };
  expect(isAligned()).toBe(true);
  const [file] = filesOf(shared);
  const descriptor = fs.openSync(file, 'r+');
  const offset = Buffer.alloc(8);
  const at = 8368; // of `alignment`: shared/layout.h
  const readOffset = () => {
    fs.readSync(descriptor, offset, 0, 8, at);
    return Number(offset.readBigInt64LE()) / 1000;
  };
  const before = readOffset();
  expect(Math.abs(before + os.uptime() * 1000 - Date.now())).toBeLessThan(60_000);
  // As if the time of day had been set back meanwhile.
  offset.writeBigInt64LE(offset.readBigInt64LE() + BigInt(interval / 4) * 1000n);
  fs.writeSync(descriptor, offset, 0, 8, at);
  expect(isAligned()).toBe(true);
  expect(Math.abs(readOffset() - before)).toBeLessThan(60_000);
  fs.closeSync(descriptor);
});

test('a clock of your own that closes the limiter, or calls it, does no harm', () => {
  const shared = newName();
  let act = () => {};
  const clock = () => {
    act();
    return 5;
  };
  const limiter = RateLimiter({ ...SMALL, shared, clock });
  act = () => {
    act = () => {};
    limiter('a');
  };
  expect([limiter('a'), limiter.peek('a').allowed]).toEqual([0, false]);
  act = () => limiter.close();
  const unused = RateLimiter({ ...SMALL, shared, clock: () => unused.close() && 5 });
  for (const each of [limiter, unused]) {
    expect(catchError(() => each('a'))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
  }
});

test('a region that is full drops ids, counts them for who did it, and warns once', () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const shared = newName();
  const [one, other] = [1, 2].map(() => RateLimiter({ ...SMALL, shared }));
  for (let i = 0; i < 1000; i++) one(i);
  const warnings = warn.mock.calls.slice();
  warn.mockRestore();
  const { keys, evicted } = one.stats();
  expect(keys + evicted).toBe(1000);
  expect(keys).toBeGreaterThanOrEqual(40);
  expect(keys).toBeLessThan(100);
  expect(other.stats()).toMatchObject({ keys, evicted: 0 });
  expect(warnings).toEqual([
    [
      expect.stringContaining(`'${shared}' is full (maxKeys)`),
      { type: 'RollgateWarning', code: 'ROLLGATE_EVICTED' },
    ],
  ]);
});
