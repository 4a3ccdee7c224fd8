// Regions: private files that outlive their limiters, refuse other limits, and can be removed.
'use strict';

const fs = require('node:fs');
const RateLimiter = require('../..');
const { catchError, handClock } = require('../support/set-up');
const { filesOf, newName } = require('../support/shared-regions');

const SMALL = { interval: 60_000, maxInInterval: 2, maxKeys: 50 };

describe('a limiter attaches with the first call of any kind', () => {
  const CALLS = {
    'limiter(id)': (limiter) => limiter('a'),
    'limiter(id, callback)': (limiter) => limiter('a', () => {}),
    attempt: (limiter) => limiter.attempt('a'),
    peek: (limiter) => limiter.peek('a'),
    attemptMany: (limiter) => limiter.attemptMany([]),
    limit: (limiter) => limiter.limit('a'),
    wouldLimit: (limiter) => limiter.wouldLimit('a'),
    limitWithInfo: (limiter) => limiter.limitWithInfo('a'),
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

describe('a limiter with other options is refused, and both are named', () => {
  const first = {
    limits: [
      { interval: 1000, maxInInterval: 5 },
      { interval: 0.5, maxInInterval: 1 },
    ],
    blockFor: [10, 20],
    maxKeys: 50,
  };
  const named = [
    'limits: [{ interval: 1000, maxInInterval: 5 }, { interval: 0.5, maxInInterval: 1 }]',
    "algorithm: 'sliding-window-log'",
    'countBlocked: true',
    'blockFor: [10, 20]',
  ];
  const others = [
    [{ limits: [first.limits[0]] }, 'limits: [{ interval: 1000, maxInInterval: 5 }]'],
    [{ limits: first.limits.map((limit) => ({ ...limit, minDifference: 3 })) }, 'minDifference: 3'],
    [{ algorithm: 'gcra' }, "algorithm: 'gcra'"],
    [{ countBlocked: false }, 'countBlocked: false'],
    [{ blockFor: undefined }, 'countBlocked: true }'],
    [{ clock: () => 5 }, 'clock'],
  ];
  test.each(others)('%j', (other, text) => {
    const shared = newName();
    const limiter = RateLimiter({ ...first, shared });
    limiter('a');
    const error = catchError(() => RateLimiter({ ...first, shared, ...other })('a'));
    expect(error).toMatchObject({ name: 'Error', code: 'ERR_ROLLGATE_SHARED_MISMATCH' });
    for (const part of [...named, text, shared]) expect(error.message).toContain(part);
    expect(limiter.stats()).toMatchObject({ keys: 1, allowed: 1 });
  });

  test('but not for another maxKeys, or for the same options in other words', () => {
    const shared = newName();
    const clock = () => 5;
    RateLimiter({ shared, ...first, clock })('a');
    const same = {
      clock,
      interval: 77,
      limits: first.limits.map((limit) => ({ ...limit, minDifference: 0 })),
      blockFor: [10, 20],
      algorithm: 'sliding-window-log',
      countBlocked: true,
    };
    expect(RateLimiter({ ...same, shared, maxKeys: 9 })('a')).toBeGreaterThan(0);
  });
});

test('an error names the call that removes the region, with its directory', () => {
  const directory = fs.mkdtempSync('/dev/shm/rollgate-test-');
  try {
    const name = newName();
    const regions = [
      [name, `unlinkShared('${name}')`],
      [
        { name, directory: `${directory}/.` },
        `unlinkShared({ name: '${name}', directory: '${directory}' })`,
      ],
    ];
    for (const [shared, removal] of regions) {
      RateLimiter({ ...SMALL, shared })('a');
      const error = catchError(() => RateLimiter({ ...SMALL, shared, maxInInterval: 9 })('a'));
      expect(error.message).toContain(removal);
      expect(RateLimiter.unlinkShared(shared)).toBe(true);
    }
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
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
  const [file] = filesOf(shared);
  for (const text of ['', 'hello '.repeat(10_000)]) {
    fs.writeFileSync(file, text);
    const error = catchError(() => RateLimiter({ ...SMALL, shared })('a'));
    expect(error.code).toBe('ERR_ROLLGATE_SHARED_FILE');
    expect(error.message).toContain(`RateLimiter.unlinkShared('${shared}') removes it`);
    expect(RateLimiter.unlinkShared(shared)).toBe(true);
    expect(RateLimiter({ ...SMALL, shared }).attempt('a').actionsLeft).toBe(1);
  }
});

test('where the system refuses, the error says what it said', () => {
  for (const directory of ['/nowhere/at/all', '/proc']) {
    const shared = { name: newName(), directory };
    const error = catchError(() => RateLimiter({ ...SMALL, shared })('a'));
    expect(error.code).toBe('ERR_ROLLGATE_SHARED_SYSTEM');
    expect(error.message).toContain(directory);
  }
});

describe('unlinkShared', () => {
  test('tells whether there was one', () => {
    const shared = newName();
    expect(RateLimiter.unlinkShared(shared)).toBe(false);
    RateLimiter({ ...SMALL, shared })('a');
    expect(RateLimiter.unlinkShared(shared)).toBe(true);
    expect(RateLimiter.unlinkShared({ name: shared, maxKeys: 5 })).toBe(false);
    expect(filesOf(shared)).toEqual([]);
  });

  test('leaves those that are attached together, apart from later ones of any limits', () => {
    const shared = newName();
    const make = (maxInInterval) => RateLimiter({ ...SMALL, shared, maxInInterval });
    const [one, two] = [make(1), make(1)];
    expect([one('a'), two.peek('a').allowed]).toEqual([0, false]);
    RateLimiter.unlinkShared(shared);
    const later = make(7);
    expect(later.peek('a').actionsLeft).toBe(6);
    expect([two('b'), one.peek('b').allowed, later.peek('b').allowed]).toEqual([0, false, true]);
  });
});

describe('an id takes as many bytes as docs/shared-memory.md says', () => {
  const window = (maxInInterval, others) => ({ interval: 60_000, maxInInterval, ...others });
  const bytesFor = (options, maxKeys) => {
    const shared = newName();
    const { bytes } = RateLimiter({ ...options, shared: { name: shared, maxKeys } }).stats();
    RateLimiter.unlinkShared(shared);
    return bytes;
  };

  test.each([
    [97, window(5)],
    [97, window(1e6, { algorithm: 'fixed-window' })],
    [97, window(1e6, { algorithm: 'sliding-window-counter' })],
    [97, window(1e6, { algorithm: 'gcra' })],
    [139, window(5, { algorithm: 'gcra', minDifference: 1 })],
    [139, window(10)],
    [139, window(5, { blockFor: 1000 })],
    [139, window(5, { algorithm: 'fixed-window', blockFor: 1000 })],
    [609, window(100)],
    [609, { limits: [window(5), { interval: 1000, maxInInterval: 100 }] }],
    [5430, window(1000)],
  ])('%d: %j', (expected, options) => {
    const each = (bytesFor(options, 4000) - bytesFor(options, 1000)) / 3000;
    expect(Math.abs(each / expected - 1)).toBeLessThan(0.01);
  });
});

test('windows begin when the region says, whatever the time of day is now', () => {
  const shared = newName();
  const interval = 1e9;
  const options = { ...SMALL, shared, interval, algorithm: 'fixed-window' };
  const timeLeft = () => {
    const limiter = RateLimiter(options);
    return limiter.attempt('a').resetIn;
  };
  const before = timeLeft();
  const [file] = filesOf(shared);
  const descriptor = fs.openSync(file, 'r+');
  const offset = Buffer.alloc(8);
  const at = 88; // of `epoch_offset`: shared/layout.h
  fs.readSync(descriptor, offset, 0, 8, at);
  offset.writeBigInt64LE(offset.readBigInt64LE() + BigInt(interval / 4) * 1000n);
  fs.writeSync(descriptor, offset, 0, 8, at);
  fs.closeSync(descriptor);
  const later = (before - timeLeft() + interval) % interval;
  expect(Math.abs(later - interval / 4)).toBeLessThan(60_000);
});

describe('a clock of your own', () => {
  test('is asked by each, and none of them lets more through where they differ', () => {
    const shared = newName();
    const [early, late] = [handClock(1000), handClock(5000)];
    const make = ({ clock }) => RateLimiter({ ...SMALL, shared, interval: 1000, clock });
    const [one, other] = [make(early), make(late)];
    expect([other('a'), one('a'), one('a')]).toEqual([0, 0, expect.any(Number)]);
    expect(other('a')).toBeGreaterThan(0);
    late.advance(1000);
    expect(other.peek('a').allowed).toBe(true);
  });

  test('that fails is an error of that call', () => {
    const clock = jest.fn(() => Number.NaN);
    const limiter = RateLimiter({ ...SMALL, shared: newName(), clock });
    expect(() => limiter('a')).toThrow(expect.objectContaining({ code: 'ERR_ROLLGATE_CLOCK' }));
    clock.mockReturnValue(5);
    expect(limiter('a')).toBe(0);
    expect(limiter.stats()).toMatchObject({ keys: 1, allowed: 1, errors: 1 });
  });

  test('that closes the limiter, or calls it, does no harm', () => {
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
    expect(() => limiter('a')).toThrow(expect.objectContaining({ code: 'ERR_ROLLGATE_CLOSED' }));
    const unused = RateLimiter({ ...SMALL, shared, clock: () => unused.close() && 5 });
    expect(() => unused('a')).toThrow(expect.objectContaining({ code: 'ERR_ROLLGATE_CLOSED' }));
  });
});

describe('a region that is full', () => {
  let warn;
  beforeEach(() => {
    warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  });
  afterEach(() => warn.mockRestore());

  test('drops ids, counts them for who did it, and warns once', () => {
    const shared = newName();
    const [one, other] = [1, 2].map(() => RateLimiter({ ...SMALL, shared }));
    for (let i = 0; i < 1000; i++) one(i);
    const { keys, evicted } = one.stats();
    expect(keys + evicted).toBe(1000);
    expect(keys).toBeGreaterThanOrEqual(40);
    expect(keys).toBeLessThan(100);
    expect(other.stats()).toMatchObject({ keys, evicted: 0 });
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn).toHaveBeenCalledWith(expect.stringContaining(`'${shared}' is full (maxKeys)`), {
      type: 'RollgateWarning',
      code: 'ROLLGATE_EVICTED',
    });
    for (let i = 1000; i < 2000; i++) other(i);
    expect(warn).toHaveBeenCalledTimes(2);
  });

  test('forgets what has expired first, without a word', () => {
    const time = handClock();
    const limiter = RateLimiter({ ...SMALL, shared: newName(), interval: 10, clock: time.clock });
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 10; i++) expect(limiter(`${round} ${i}`)).toBe(0);
      time.advance(10);
    }
    expect(limiter.stats().evicted).toBe(0);
    expect(warn).not.toHaveBeenCalled();
  });
});
