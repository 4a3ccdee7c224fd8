// Which values are one id, which are two, and which are none.
'use strict';

const fc = require('fast-check');
const RateLimiter = require('../..');
const { catchError } = require('../support/set-up');

const runs = (numRuns) => ({ numRuns: process.env.ROLLGATE_SANITIZED ? numRuns / 10 : numRuns });

function limiterOfOnes(options) {
  return RateLimiter({ interval: 1000, maxInInterval: 1, clock: () => 0, ...options });
}

/** Whether an action of the one blocks the other, in both orders. */
function share(one, other) {
  const limiter = limiterOfOnes();
  const answers = [limiter(one), limiter(other)];
  const reversed = limiterOfOnes();
  answers.push(reversed(other), reversed(one));
  expect([answers[0], answers[2]]).toEqual([0, 0]);
  expect(answers[1]).toBe(answers[3]);
  return answers[1] !== 0;
}

/** Every id is allowed once, however many others there are, and only once. */
function expectAllApart(ids) {
  const limiter = limiterOfOnes();
  for (const id of ids) expect([id, limiter(id)]).toEqual([id, 0]);
  expect(limiter.stats().keys).toBe(ids.length);
  for (const id of ids) expect([id, limiter(id)]).toEqual([id, 1000]);
}

describe('one id', () => {
  test.each([
    ['1 and "1"', 1, '1'],
    ['1n and "1"', 1n, '1'],
    ['1 and 1n', 1, 1n],
    ['0 and "0"', 0, '0'],
    ['0 and -0', 0, -0],
    ['-0 and "0"', -0, '0'],
    ['0n and 0', 0n, 0],
    ['-1n and "-1"', -1n, '-1'],
    ['undefined and null', undefined, null],
    ['undefined and ""', undefined, ''],
    ['null and ""', null, ''],
    ['a long bigint and its digits', 10n ** 400n + 7n, `1${'0'.repeat(399)}7`],
    ['a 64-bit bigint and its digits', 2n ** 64n, '18446744073709551616'],
  ])('%s', (_name, one, other) => {
    expect(share(one, other)).toBe(true);
  });

  test('no argument at all and undefined', () => {
    const limiter = limiterOfOnes();
    expect([limiter(), limiter(undefined)]).toEqual([0, 1000]);
  });

  const numbers = [
    1,
    -1,
    0.1,
    0.5,
    1 / 3,
    5e-324,
    1e-7,
    1e-6,
    123456.789,
    2 ** 31,
    -(2 ** 31),
    2 ** 32,
    2 ** 53,
    2 ** 53 - 1,
    2 ** 53 + 2,
    -(2 ** 53),
    -9007199254740991,
    2 ** 63,
    2 ** 64,
    1e20,
    1e21,
    -1e21,
    1e22,
    999999999999999900000,
    Number.MAX_VALUE,
    Number.MIN_SAFE_INTEGER,
    Number.EPSILON,
  ];
  test.each(numbers)('the number %d and String of it', (number) => {
    expect(share(number, String(number))).toBe(true);
  });

  test('any finite number and String of it', () => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 1 });
    const finite = fc.oneof(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.maxSafeInteger(),
      fc.integer(),
      fc.integer({ min: -1100, max: 1100 }).map((power) => Math.sign(power) * 2 ** (power / 2)),
    );
    fc.assert(
      fc.property(finite, fc.boolean(), (number, numberFirst) => {
        limiter.clearAll();
        expect(limiter(numberFirst ? number : String(number))).toBe(0);
        expect(limiter(numberFirst ? String(number) : number)).toBeGreaterThan(0);
      }),
      runs(5000),
    );
  });

  test('any bigint and its digits', () => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 1 });
    fc.assert(
      fc.property(fc.bigInt(), (number) => {
        limiter.clearAll();
        expect(limiter(number)).toBe(0);
        expect(limiter(String(number))).toBeGreaterThan(0);
      }),
      runs(1000),
    );
  });

  test('the same text, however the engine stores it', () => {
    for (const unit of ['x', 'é', 'Ł', '\ud83d']) {
      for (const length of [13, 16, 17, 40, 127, 128, 129, 600_000, 1_100_000]) {
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
  test('text that differs in case, space, form of Unicode or a trailing NUL', () => {
    expectAllApart([
      'a',
      'A',
      ' a',
      'a ',
      'a\0',
      'a\0\0',
      '\0a',
      '\0',
      '\0\0',
      ' ',
      '',
      '\u00e9', // é in one
      'e\u0301', // and in two
      '\u00c5', // the letter Å
      '\u212b', // the unit Å
      '\ufb01', // a ligature
      'fi',
    ]);
  });

  test('characters that share a low byte, a high byte or a UTF-8 form', () => {
    expectAllApart([
      'A',
      '\u0141', // Ł
      '\u1141',
      '\uff41',
      '\u4100',
      '\u0100',
      '\u0100\u0100',
      '\u0001',
      '\ufffd',
      '\ufeff',
      '\ufeffA',
      '\u00c5',
      '\u00c3\u0085', // Å as UTF-8 read as Latin-1
      '\u00c3',
    ]);
  });

  test('lone surrogates, their replacement character and whole pairs', () => {
    expectAllApart([
      '\ud800',
      '\ud801',
      '\udbff',
      '\udc00',
      '\udfff',
      '\udc00\ud800',
      '\ud800\udc00',
      '\ud800\ud800',
      '\ufffd',
      '\ufffd\ufffd',
      'a\ud800',
      'a\udc00',
      '\ud800a',
      `${'x'.repeat(200)}\ud800`,
      `${'x'.repeat(200)}\udfff`,
      `${'x'.repeat(200)}\ufffd`,
    ]);
  });

  test('the names that objects have anyway', () => {
    const names = Object.getOwnPropertyNames(Object.prototype);
    expect(names).toContain('__proto__');
    expectAllApart([...names, 'prototype', 'length', 'name', 'then', 'NaN', 'Infinity', '-0']);
  });

  test('the words for nothing and nothing itself', () => {
    expectAllApart(['undefined', 'null', 'false', 'NaN', '0', '', '[object Object]']);
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

  test('any two different strings', () => {
    fc.assert(
      fc.property(fc.uniqueArray(anyText, { minLength: 2, maxLength: 60 }), (ids) => {
        const limiter = limiterOfOnes();
        for (const id of ids) expect(limiter(id)).toBe(0);
        for (const id of ids) expect(limiter(id)).toBe(1000);
        expect(limiter.stats().keys).toBe(ids.length);
      }),
      runs(500),
    );
  });

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

  test('two hundred thousand of them at once', () => {
    const count = process.env.ROLLGATE_SANITIZED ? 20_000 : 200_000;
    const limiter = limiterOfOnes();
    let wrong = 0;
    for (let i = 0; i < count; i++) wrong += limiter(i) === 0 ? 0 : 1;
    for (let i = 0; i < count; i++) wrong += limiter(`${i}`) === 1000 ? 0 : 1;
    for (let i = 0; i < count; i++) wrong += limiter(`user:${i}:of:a:longer:name`) === 0 ? 0 : 1;
    expect(wrong).toBe(0);
    expect(limiter.stats().keys).toBe(2 * count);
  });
});

describe('no id', () => {
  class Stringy {
    toString() {
      throw new Error('must not be asked');
    }
    valueOf() {
      throw new Error('must not be asked');
    }
  }
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const trap = new Proxy({}, { get: () => expect(1).toBe('never asked') });
  const values = [
    ['true', true],
    ['false', false],
    ['NaN', Number.NaN],
    ['Infinity', Infinity],
    ['-Infinity', -Infinity],
    ['an object', {}],
    ['an array', ['a']],
    ['a symbol', Symbol('a')],
    ['a well-known symbol', Symbol.iterator],
    ['a String object', Object('a')],
    ['a Number object', Object(1)],
    ['a BigInt object', Object(1n)],
    ['a Date', new Date(0)],
    ['a regular expression', /a/],
    ['a Buffer', Buffer.from('a')],
    ['a promise', Promise.resolve('a')],
    ['an object without a prototype', Object.create(null)],
    ['an object whose toString throws', new Stringy()],
    ['a proxy', trap],
    ['a revoked proxy', revoked.proxy],
  ];

  function expectRefusal(error) {
    expect(error).toBeInstanceOf(TypeError);
    expect(error.code).toBe('ERR_ROLLGATE_ID');
    expect(error.message).toMatch(
      /^id: expected a string, a finite number, a bigint, undefined or null, got ./,
    );
  }

  test.each(values)('%s is refused by every call, and nothing changes', async (_name, value) => {
    const limiter = limiterOfOnes();
    limiter('kept');
    const before = limiter.stats();
    expectRefusal(catchError(() => limiter(value)));
    expectRefusal(catchError(() => limiter.attempt(value)));
    expectRefusal(catchError(() => limiter.peek(value)));
    expectRefusal(catchError(() => limiter.attemptMany(['fine', value])));
    expectRefusal(await new Promise((resolve) => limiter(value, resolve)));
    for (const name of ['limit', 'wouldLimit', 'limitWithInfo', 'wouldLimitWithInfo', 'clear']) {
      expectRefusal(await limiter[name](value).catch((error) => error));
    }
    expect(limiter.stats()).toEqual(before);
    expect([limiter('kept'), limiter('fine'), limiter('[object Object]')]).toEqual([1000, 0, 0]);
  });

  test('a function is no id for the methods', async () => {
    const limiter = limiterOfOnes();
    const callback = jest.fn();
    expectRefusal(catchError(() => limiter.attempt(callback)));
    expectRefusal(await limiter.limit(callback).catch((error) => error));
    expect(callback).not.toHaveBeenCalled();
  });

  test('the message shows what came, in short', () => {
    const limiter = limiterOfOnes();
    const messageFor = (value) => catchError(() => limiter(value)).message;
    expect(messageFor(true)).toMatch(/got true$/);
    expect(messageFor(Number.NaN)).toMatch(/got NaN$/);
    expect(messageFor({ toString: () => 'mine' })).toMatch(/got an object$/);
    expect(messageFor(['a'])).toMatch(/got an array$/);
    expect(messageFor(Symbol('s'.repeat(500))).length).toBeLessThan(200);
  });
});
