// What users give a limiter besides options: which values are one id and which are two, and a clock that fails,
// jumps or calls the limiter.
'use strict';

const fc = require('fast-check');
const RateLimiter = require('../..');
const { catchError } = require('../support/set-up');
const { casesOf } = require('../support/tiers');

const runs = (count) => ({ numRuns: casesOf(count) });

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
  /** Whether an action of the one blocks the other, in both orders. */
  function expectOne(one, other) {
    const [limiter, reversed] = [limiterOfOnes(), limiterOfOnes()];
    expect([limiter(one), limiter(other)]).toEqual([0, 1000]);
    expect([reversed(other), reversed(one)]).toEqual([0, 1000]);
  }

  test.each([
    ['0n and -0', 0n, -0],
    ['no id and ""', undefined, ''],
    ['a long bigint and its digits', 10n ** 400n + 7n, `1${'0'.repeat(399)}7`],
  ])('%s', (_name, one, other) => expectOne(one, other));

  const numbers = [0.1, 1 / 3, 5e-324, 1e-7, 1e-6, 123456.789, -(2 ** 31), 2 ** 32, 2 ** 53 - 1];
  const large = [2 ** 53 + 2, -(2 ** 53), 2 ** 63, 1e20, 1e21, -1e21, 999999999999999900000];
  test.each([...numbers, ...large, Number.MAX_VALUE])(
    'the number %d and String of it',
    (number) => {
      expectOne(number, String(number));
    },
  );

  test('any finite number or bigint and String of it', () => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 1 });
    const number = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.maxSafeInteger(),
      fc.bigInt(),
      fc.integer({ min: -1100, max: 1100 }).map((power) => Math.sign(power) * 2 ** (power / 2)),
    );
    fc.assert(
      fc.property(number, fc.boolean(), (id, numberFirst) => {
        limiter.clearAll();
        expect(limiter(numberFirst ? id : String(id))).toBe(0);
        expect(limiter(numberFirst ? String(id) : id)).toBeGreaterThan(0);
      }),
      runs(5000),
    );
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
  test('characters that share a low byte, a high byte or a UTF-8 form', () => {
    const low = ['A', '\u0141', '\u1141', '\uff41', '\u4100', '\u0100', '\u0100\u0100', '\u0001'];
    const forms = ['\u00c5', '\u00c3\u0085', '\u00c3']; // Å, and its UTF-8 read as Latin-1
    expectAllApart([...low, ...forms, '\ufffd', '\ufeff', '\ufeffA']);
  });

  test('lone surrogates, their replacement character and whole pairs', () => {
    const alone = [
      '\ud800',
      '\ud801',
      '\udbff',
      '\udc00',
      '\udfff',
      'a\ud800',
      'a\udc00',
      '\ud800a',
    ];
    const pairs = ['\udc00\ud800', '\ud800\udc00', '\ud800\ud800', '\ufffd', '\ufffd\ufffd'];
    const long = ['\ud800', '\udfff', '\ufffd'].map((last) => 'x'.repeat(200) + last);
    expectAllApart([...alone, ...pairs, ...long]);
  });

  test('numbers next to each other', () => {
    const numbers = [0, 5e-324, 1e-323, 0.1, 0.1 + 2 ** -55, 0.30000000000000004, 0.3, 1, -1];
    const large = [2 ** 53 - 1, 2 ** 53, 2 ** 53 + 2, 1e21, 1e22, 2e22];
    expectAllApart([...numbers, ...large]);
    expectAllApart([2n ** 53n, 2n ** 53n + 1n, 2n ** 64n, 2n ** 64n + 1n, -(2n ** 64n)]);
    expectAllApart(['1', '01', '1.0', '+1', '1e0', '0x1', ' 1', '\uff11']);
  });

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

  test('ids of a megabyte', () => {
    const megabyte = 'm'.repeat(2 ** 20);
    const ids = [megabyte, `${megabyte}\0`, `${megabyte}n`, megabyte.slice(1), `n${megabyte}`];
    const wide = ids.map((id) => `${id}漢`);
    const limiter = limiterOfOnes();
    const bytesBefore = limiter.stats().bytes;
    expect([...ids, ...wide].map((id) => limiter(id))).toEqual(Array(10).fill(0));
    expect([...ids, ...wide].map((id) => limiter(id))).toEqual(Array(10).fill(1000));
    expect(limiter.stats().bytes - bytesBefore).toBeLessThan(100_000); // the text is not kept
  });

  const units = fc.oneof(
    fc.integer({ min: 0, max: 0xffff }),
    fc.constantFrom(0, 0x41, 0x141, 0xff, 0x100, 0xd800, 0xdc00, 0xfffd, 0xffff),
  );
  const anyText = fc.array(units, { maxLength: 24 }).map((list) => String.fromCharCode(...list));

  test('any string and the same with one unit changed, added or taken away', () => {
    fc.assert(
      fc.property(anyText, fc.nat(), units, fc.nat({ max: 2 }), (text, place, unit, change) => {
        const at = text.length === 0 ? 0 : place % text.length;
        const tail = text.slice(change === 1 ? at : at + 1);
        const other = text.slice(0, at) + (change === 2 ? '' : String.fromCharCode(unit)) + tail;
        fc.pre(other !== text);
        const limiter = limiterOfOnes();
        expect([limiter(text), limiter(other)]).toEqual([0, 0]);
      }),
      runs(2000),
    );
  });

  test('very many of them at once', () => {
    const count = casesOf(200_000);
    const limiter = limiterOfOnes();
    let wrong = 0;
    for (let i = 0; i < count; i++) wrong += limiter(i) === 0 ? 0 : 1;
    for (let i = 0; i < count; i++) wrong += limiter(`${i}`) === 1000 ? 0 : 1;
    for (let i = 0; i < count; i++) wrong += limiter(`user:${i}:of:a:longer:name`) === 0 ? 0 : 1;
    expect(wrong).toBe(0);
    expect(limiter.stats().keys).toBe(2 * count);
  });
});

test('the message for what is no id shows it in short, and never asks it', () => {
  const asked = () => expect(1).toBe('never asked');
  const messageOf = (value) => catchError(() => limiterOfOnes()(value)).message;
  const expected = 'id: expected a string, a finite number, a bigint, undefined or null, got';
  expect(messageOf(true)).toBe(`${expected} true`);
  expect(messageOf(Number.NaN)).toBe(`${expected} NaN`);
  expect(messageOf(new Proxy({}, { get: asked }))).toBe(`${expected} an object`);
  expect(messageOf({ toString: asked, valueOf: asked })).toBe(`${expected} an object`);
  expect(messageOf(['a'])).toBe(`${expected} an array`);
  expect(messageOf(Symbol('s'.repeat(500))).length).toBeLessThan(200);
});

/** A limiter on `time.clock`, which may be exchanged. */
function withClock(options) {
  const time = { clock: () => 0 };
  const limiter = RateLimiter({
    interval: 10,
    maxInInterval: 1,
    clock: () => time.clock(),
    ...options,
  });
  return { limiter, time };
}

describe('the clock', () => {
  test.each([
    [undefined],
    [Infinity],
    ['5'],
    [5n],
    [Object(5)],
    [{ valueOf: () => 5 }],
    [Promise.resolve(5)],
  ])('that gives %p fails that call, whatever its form', async (reading) => {
    const { limiter, time } = withClock();
    limiter('a');
    time.clock = () => reading;
    const calls = [
      () => limiter('a'),
      () => limiter(),
      () => limiter.peek('a'),
      () => limiter.attemptMany(['a', 'b']),
    ];
    const errors = calls.map(catchError);
    errors.push(await new Promise((resolve) => limiter('a', resolve)));
    for (const name of ['limit', 'wouldLimit', 'limitWithInfo', 'wouldLimitWithInfo']) {
      errors.push(await limiter[name]('a').catch((error) => error));
    }
    for (const error of errors) {
      expect(error).toBeInstanceOf(Error);
      expect(error.code).toBe('ERR_ROLLGATE_CLOCK');
      expect(error.message).toMatch(/^the clock: expected a finite number of ms, got ./);
    }
    const { length } = errors;
    expect(limiter.stats()).toMatchObject({ keys: 1, allowed: 1, blocked: 0, errors: length });
    time.clock = () => 4;
    expect([limiter('a'), limiter('b')]).toEqual([10, 0]);
  });

  test('that throws is the cause of the error, whatever it throws', () => {
    for (const thrown of [new Error('mine'), 'text', null, 0, Symbol('thrown'), { code: 'MINE' }]) {
      const { limiter, time } = withClock();
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

  test('is not read by a call that needs no time', async () => {
    const { limiter, time } = withClock();
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

  test('is read once in a call, without arguments and without this', () => {
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

  test('that jumps to huge readings lets no more through, and every answer is a count of ms', () => {
    const far = [1e300, -1e300, Number.MAX_VALUE, 2 ** 53, 2 ** 63, -(2 ** 63), 1e15];
    for (const interval of [0.001, 10, 1e12, 1e300]) {
      const { limiter, time } = withClock({ interval, maxInInterval: 3 });
      let newest = -Infinity;
      let allowed = 0;
      for (const reading of [...far, 0, ...far.reverse(), 5, -5, ...far]) {
        time.clock = () => reading;
        for (let i = 0; i < 2; i++) {
          const decision = limiter.attempt('a');
          for (const duration of [decision.timeLeft, decision.resetIn]) {
            expect(duration).toBeGreaterThanOrEqual(0);
            expect(Number.isInteger(duration)).toBe(true);
          }
          if (reading > newest) [newest, allowed] = [reading, 0];
          if (decision.allowed) allowed += 1;
          expect(allowed).toBeLessThanOrEqual(3);
        }
      }
    }
  });

  test('that steps back brings back what an expired id has done, and leaves other ids alone', () => {
    const { limiter, time } = withClock();
    limiter('a');
    time.clock = () => 1e6;
    for (let i = 0; i < 1000; i++) limiter(`other ${i}`);
    time.clock = () => 5;
    expect(limiter('a')).toBeGreaterThan(0);
    expect([limiter('b'), limiter('b')]).toEqual([0, 10]);
  });
});

describe('a clock that calls the limiter', () => {
  test('by calling it makes whole attempts, one inside the other', () => {
    const { limiter, time } = withClock({ maxInInterval: 3, countBlocked: false });
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
    const { limiter, time } = withClock({ maxInInterval: 50 });
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
    const { limiter, time } = withClock();
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
      const { limiter, time } = withClock();
      limiter('a');
      time.clock = () => {
        limiter.close();
        return 0;
      };
      expect(catchError(() => call(limiter))).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
    }
  });

  test('by clearing it judges an id that is new', () => {
    const { limiter, time } = withClock();
    limiter('a');
    time.clock = () => {
      limiter.clearAll();
      return 0;
    };
    expect([limiter('a'), limiter('a')]).toEqual([0, 0]);
  });
});
