// Behaviours: which ids are one and which are not, and lists of ids.
'use strict';

const { codeOf, failureOf } = require('./support');

const WRONG_IDS = [{}, [], ['a'], true, false, Symbol('a'), Number.NaN, Infinity, -Infinity];

const DIFFERENT_IDS = [
  '',
  '0',
  '-0',
  '1',
  '01',
  '1.0',
  ' ',
  'a',
  'A',
  'a ',
  '\0',
  'a\0',
  '\0a',
  'a\0b',
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  'toString',
  'null',
  'undefined',
  'NaN',
  '{a}',
  '{',
  '}',
  'a}',
  '}{a',
  '*',
  'a*',
  '[a]',
  '\\',
  'a\nb',
  'a\r\nb',
  '\u00e9',
  'e\u0301',
  '\u00ff',
  '\u0100',
  '\ufffd',
  '\uffff',
  '日本語',
  '日本',
  'привет',
  '💥',
  '👩‍👩‍👧',
  'x'.repeat(16),
  'x'.repeat(17),
  'x'.repeat(1_000_000),
  `${'x'.repeat(999_999)}y`,
  `y${'x'.repeat(999_999)}`,
];

/** Each of them has an action of its own under a limit of one. */
async function areOne(limiter, ids) {
  const [first, ...others] = ids;
  await limiter.clearAll();
  expect(await limiter.attempt(first)).toMatchObject({ allowed: true });
  for (const id of others) expect(await limiter.attempt(id)).toMatchObject({ allowed: false });
}

module.exports = {
  async 'a number, a bigint and the string of it are one id'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    await areOne(limiter, [1, '1', 1n]);
    await areOne(limiter, ['-7', -7n, -7]);
    await areOne(limiter, [0, '0', 0n, -0]);
    await areOne(limiter, [1.5, '1.5']);
    await areOne(limiter, [1e21, '1e+21']);
    await areOne(limiter, [2n ** 64n, '18446744073709551616']);
  },

  async 'undefined, null and the empty string are the one bucket of callers without an id'({
    make,
  }) {
    const limiter = make({ maxInInterval: 1 });
    await areOne(limiter, [undefined, null, '']);
    expect([await limiter(), await limiter('0'), await limiter('undefined')]).toEqual([
      expect.any(Number),
      0,
      0,
    ]);
    expect(await limiter()).toBeGreaterThan(0);
  },

  async 'different strings never share a bucket'({ make }) {
    const limiter = make({ maxInInterval: 1, countBlocked: false });
    for (const id of DIFFERENT_IDS) expect(await limiter(id)).toBe(0);
    for (const id of DIFFERENT_IDS) expect(await limiter(id)).toBeGreaterThan(0);
    await limiter.clear('__proto__');
    expect([await limiter('__proto__'), await limiter('constructor')]).toEqual([
      0,
      expect.any(Number),
    ]);
    expect(await limiter('constructor')).toBeGreaterThan(0);
  },

  async 'a lone surrogate is an id of its own or refused, never another one'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    await limiter('\ufffd');
    for (const id of ['\ud800', '\udc00', 'a\ud800', '\udc00\ud800']) {
      const came = await Promise.resolve()
        .then(() => limiter(id))
        .catch(({ code }) => code);
      expect([0, 'ERR_ROLLGATE_ID']).toContain(came);
    }
  },

  async 'what is no id is a TypeError, and nothing is recorded'({ make }) {
    const limiter = make();
    const names = ['attempt', 'peek', 'limit', 'wouldLimit', 'limitWithInfo', 'clear'];
    for (const id of WRONG_IDS) {
      for (const name of names) {
        const error = await failureOf(() => limiter[name](id));
        expect(error).toBeInstanceOf(TypeError);
        expect(error.code).toBe('ERR_ROLLGATE_ID');
      }
      expect(await codeOf(() => limiter(id))).toBe('ERR_ROLLGATE_ID');
    }
    expect(await codeOf(() => limiter.attempt(() => {}))).toBe('ERR_ROLLGATE_ID');
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0 });
  },

  async 'attemptMany decides one behind the other, the same id twice included'({ make }) {
    const limiter = make({ maxInInterval: 2 });
    const many = await limiter.attemptMany(['a', 'b', 'a', 1, 'a', '1', 'b', undefined]);
    expect(many.map(({ allowed }) => allowed)).toEqual([
      true,
      true,
      true,
      true,
      false,
      true,
      true,
      true,
    ]);
    expect(many.map(({ actionsLeft }) => actionsLeft)).toEqual([1, 1, 0, 1, 0, 0, 0, 1]);
  },

  async 'attemptMany answers as attempts would'({ make, at }) {
    const options = { maxInInterval: 3, minDifference: 1, blockFor: [50, 100] };
    const [together, alone] = [make(options), make(options)];
    for (const ms of [0, 1, 2, 60, 200]) {
      at(ms * 1000);
      const ids = ['a', 'b', 'a', 'a', 'c'];
      const expected = [];
      for (const id of ids) expected.push({ ...(await alone.attempt(id)) });
      const many = await together.attemptMany(ids);
      expect(many.map((decision) => ({ ...decision }))).toEqual(expected);
    }
  },

  async 'attemptMany takes an empty list and a long one'({ make, store }) {
    const limiter = make({ maxInInterval: 1, countBlocked: false });
    expect(await limiter.attemptMany([])).toEqual([]);
    const ids = Array.from({ length: store.pace < 1000 ? 30 : 1500 }, (_, i) => i);
    const first = await limiter.attemptMany(ids);
    expect(first.every(({ allowed }) => allowed)).toBe(true);
    const second = await limiter.attemptMany([...ids, 'new']);
    expect(second.filter(({ allowed }) => allowed).length).toBe(1);
    expect(second.at(-1).allowed).toBe(true);
  },

  async 'a wrong id among many changes nothing at all'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    for (const id of WRONG_IDS) {
      expect(await codeOf(() => limiter.attemptMany(['a', 'b', id, 'c']))).toBe('ERR_ROLLGATE_ID');
    }
    for (const ids of ['abc', undefined, null, { 0: 'a', length: 1 }, new Set(['a'])]) {
      expect(await codeOf(() => limiter.attemptMany(ids))).toBe('ERR_ROLLGATE_ID');
    }
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0 });
    for (const id of ['a', 'b', 'c']) expect(await limiter(id)).toBe(0);
  },
};
