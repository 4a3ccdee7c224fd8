// What users give a limiter: which values are one id and which are two, a clock that fails, jumps or calls the
// limiter, and any value anywhere.
'use strict';

const fc = require('fast-check');
const RateLimiter = require('../..');
const { catchError, setUp } = require('../support/set-up');
const { casesOf } = require('../support/tiers');

const check = (...args) => fc.assert(fc.property(...args), { numRuns: casesOf(2000) });

function limiterOfOnes(options) {
  return RateLimiter({ interval: 1000, maxInInterval: 1, clock: () => 0, ...options });
}

/** Every id is allowed once, however many others there are, and only once. */
function expectAllApart(ids) {
  const limiter = limiterOfOnes();
  for (const id of ids) expect([id, limiter(id)]).toEqual([id, 0]);
  expect(limiter.stats().keys).toBe(ids.length);
  for (const id of ids) expect([id, limiter(id)]).toEqual([id, 1000]);
}

describe('one id', () => {
  test('any finite number or bigint and String of it', () => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 1 });
    const number = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.maxSafeInteger(),
      fc.bigInt(),
      fc.integer({ min: -1100, max: 1100 }).map((power) => Math.sign(power) * 2 ** (power / 2)),
    );
    check(number, fc.boolean(), (id, numberFirst) => {
      limiter.clearAll();
      expect(limiter(numberFirst ? id : String(id))).toBe(0);
      expect(limiter(numberFirst ? String(id) : id)).toBeGreaterThan(0);
    });
  });

  test('the same text, however the engine stores it', () => {
    const lengths = [13, 16, 17, 40, 127, 128, 129];
    for (const unit of ['x', 'é', 'Ł', '\ud83d']) {
      for (const length of unit === 'Ł' ? [...lengths, 1_100_000] : lengths) {
        const flat = unit.repeat(length - 2) + [...'yz'].join('');
        Object(flat).at(1); // a look inside flattens it
        const half = length >> 1;
        const cons = flat.slice(0, half) + flat.slice(half);
        const sliced = `--${flat}--`.slice(2, 2 + length);
        const joined = Array.from(flat, (c) => c).join('');
        const external = Buffer.from(flat, 'utf16le').toString('utf16le');
        for (const same of [cons, sliced, joined, external]) {
          const limiter = limiterOfOnes();
          expect([limiter(same), limiter(flat)]).toEqual([0, 1000]);
        }
      }
    }
    const bytes = Buffer.alloc(1_100_000, 'a');
    const limiter = limiterOfOnes();
    expect([limiter(bytes.toString('latin1')), limiter('a'.repeat(1_100_000))]).toEqual([0, 1000]);
  });
});

describe('two ids', () => {
  test.each([
    1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 126, 127, 128, 129, 130, 255, 256, 1000, 65_537,
  ])('ids of %d characters that differ in one of them', (length) => {
    for (const unit of ['x', 'ÿ', 'Ł']) {
      const text = unit.repeat(length);
      const places = [0, length >> 1, length - 1].filter((n, i, all) => all.indexOf(n) === i);
      const variants = places.flatMap((place) =>
        ['y', 'þ', '\0', '漢'].map((other) => text.slice(0, place) + other + text.slice(place + 1)),
      );
      expectAllApart([text, `${text}${unit}`, `${text}\0`, ...variants]);
    }
  });
});

test('the message for what is no id shows it in short, and never asks it', () => {
  const asked = () => expect(1).toBe('never asked');
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const messageOf = (value) => catchError(() => limiterOfOnes()(value)).message;
  const expected = 'id: expected a string, a finite number, a bigint, undefined or null, got';
  expect(messageOf(true)).toBe(`${expected} true`);
  expect(messageOf(Number.NaN)).toBe(`${expected} NaN`);
  expect(messageOf(new Proxy({}, { get: asked }))).toBe(`${expected} an object`);
  expect(messageOf({ toString: asked, valueOf: asked })).toBe(`${expected} an object`);
  expect(messageOf(proxy)).toBe(`${expected} an object`);
  expect(messageOf(['a'])).toBe(`${expected} an array`);
  expect(messageOf(Symbol('s'.repeat(500))).length).toBeLessThan(200);
});

describe('the clock', () => {
  test('is not read by a call that needs no time', async () => {
    const { limiter, time } = setUp();
    const decision = limiter.attempt('a');
    time.onNextReading(() => {
      throw new Error('not needed');
    });
    expect(limiter.refund(decision)).toBe(true);
    await limiter.clear('a');
    await limiter.clearAll();
    catchError(() => limiter({ no: 'id' }));
    expect(limiter.stats().errors).toBe(0);
    await limiter.close();
  });

  test('is read once in a call, without arguments and without this', () => {
    const readings = [];
    const limiter = limiterOfOnes({
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
});

describe('a clock that calls the limiter', () => {
  test('by every method leaves answers and state whole', () => {
    const { limiter, time } = setUp({ maxInInterval: 50 });
    const decision = limiter.attempt('a');
    const callAll = () => {
      limiter('a');
      limiter('b', () => {});
      limiter.peek('a');
      limiter.attemptMany(['a', 'b', 'c']);
      limiter.refund(decision);
      limiter.stats();
      limiter.clear('c');
    };
    time.onNextReading(callAll);
    expect(limiter.attempt('a').limits[0].used).toBe(3); // one refunded, two in the clock, this one
    time.onNextReading(callAll);
    expect(limiter.attemptMany(['d', 'd']).map(({ actionsLeft }) => actionsLeft)).toEqual([49, 48]);
    expect(limiter.stats()).toMatchObject({ keys: 3, errors: 0 });
  });

  test('without end is a clock that threw, and the limiter lives on', () => {
    const { limiter, time } = setUp({ maxInInterval: 1 });
    const callAgain = () => {
      time.onNextReading(callAgain);
      limiter('a');
    };
    expect(catchError(callAgain)).toBeInstanceOf(Error);
    time.onNextReading(() => {});
    expect([limiter('b'), limiter('b')]).toEqual([0, 10]);
  });

  test('by closing it ends that call with ERR_ROLLGATE_CLOSED', () => {
    const calls = [
      (limiter) => limiter('a'),
      (limiter) => limiter.attempt('a'),
      (limiter) => limiter.peek('a'),
      (limiter) => limiter.attemptMany(['a', 'b']),
    ];
    for (const [i, call] of calls.entries()) {
      const { limiter, time } = setUp();
      if (i > 0) limiter('a'); // else it has no store yet
      time.onNextReading(() => limiter.close());
      expect(catchError(() => call(limiter))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
    }
  });

  // Kills: room for the costs of the first of several limiters of the module.
  test('with more windows, by costs that are others', () => {
    const names = Array.from({ length: 40 }, (_, i) => `n${i}`);
    const limits = names.map((name) => ({ name, interval: 1000, maxInInterval: 50 }));
    const { limiter, time } = setUp({ limits: limits.slice(0, 2) });
    const other = RateLimiter({ limits, clock: () => 0 });
    const costs = Object.fromEntries(names.map((name, i) => [name, i]));
    const usedOf = ({ limits }) => limits.map(({ used }) => used);
    const longId = 'an id that needs the area of bytes';
    time.onNextReading(() => other.attempt(longId, { cost: costs }));
    const decision = limiter.attempt('a', { cost: { n0: 7, n1: 9 } });
    expect(usedOf(decision)).toEqual([7, 9]);
    expect(usedOf(other.usage(longId))).toEqual(Object.values(costs));
    expect(limiter.settle(decision, { n0: 1, n1: 2 })).toBe(true);
    expect(usedOf(limiter.usage('a'))).toEqual([1, 2]);
  });

  test('by clearing it judges an id that is new', () => {
    const { limiter, time } = setUp({ maxInInterval: 1 });
    for (let i = 0; i < 3; i++) {
      time.onNextReading(() => limiter.clearAll());
      expect(limiter('a')).toBe(0);
    }
  });
});

const kinds = 'BigInt BoxedValues Date Map NullPrototype ObjectString Set SparseArray TypedArray';
const withAll = Object.fromEntries(kinds.split(' ').map((kind) => [`with${kind}`, true]));
const oddities = [Symbol('any'), () => 5, new Proxy(() => 5, {}), Promise.resolve('a')];
const anyValue = fc.oneof(
  fc.anything({ ...withAll, maxDepth: 2 }),
  fc.constantFrom(...oddities, undefined, null, '', 0, -0, Number.NaN),
);

const OPTIONS = 'interval maxInInterval minDifference maxKeys limits countBlocked algorithm'.split(
  ' ',
);

/** Calls that get `value` in each place where a user may put one. */
const callsWith = (value, limiter) => [
  () => limiter.attempt(value),
  () => limiter.peek(value),
  () => limiter.attemptMany([value]),
  () => limiter.attemptMany(value),
  () => limiter.attempt('a', value),
  () => limiter.attempt('a', { cost: value }),
  () => limiter.refund(value),
  () => RateLimiter(value),
  ...OPTIONS.map((name) => () => limiterOfOnes({ [name]: value })('a')),
  () => limiterOfOnes({ clock: () => value })('a'),
  () => {
    limiterOfOnes({
      clock() {
        throw value;
      },
    })('a');
  },
];

test('any value in any place is used, or refused with a code, and no other id is counted', () => {
  check(anyValue, (given) => {
    const limiter = limiterOfOnes({ maxInInterval: 5 });
    limiter('the one that is kept');
    for (const call of callsWith(given, limiter)) {
      const error = catchError(call);
      if (error !== undefined) expect(error.code).toMatch(/^ERR_ROLLGATE_[A-Z]+$/);
    }
    expect(limiter.peek('the one that is kept').limits[0].used).toBe(2);
  });
});
