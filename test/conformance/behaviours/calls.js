// Behaviours: what each call answers, which ids are one, what is wrong with a call, what observers see.
'use strict';

const diagnostics = require('node:diagnostics_channel');

const WRONG_IDS = [{}, [], ['a'], true, false, Symbol('a'), Number.NaN, Infinity, -Infinity];

const DIFFERENT_IDS = [
  ...'0 -0 1 01 1.0 a A \0 a\0 \0a a\0b __proto__ constructor prototype hasOwnProperty'.split(' '),
  ...'toString null undefined NaN {a} { } a} }{a * a* [a] \\ a\nb a\r\nb'.split(' '),
  ...'\u00e9 e\u0301 \u00ff \u0100 \ufffd \uffff 日本語 日本 привет 💥 👩‍👩‍👧'.split(' '),
  ...['', ' ', 'a ', 'x'.repeat(16), 'x'.repeat(17), 'x'.repeat(1_000_000)],
  ...[`${'x'.repeat(999_999)}y`, `y${'x'.repeat(999_999)}`],
];

/** One limit of one: each id after the first is refused. */
async function expectOneId(limiter, ids) {
  await limiter.clearAll();
  for (const [i, id] of ids.entries()) {
    expect(await limiter.attempt(id)).toMatchObject({ allowed: i === 0 });
  }
}

/** The arguments of the callback, then what the call returned and whether it called back at once. */
function calledBack(limiter, ...args) {
  return new Promise((resolve) => {
    let isSameTick = true;
    const returned = limiter(...args, (...answer) => resolve([...answer, returned, isSameTick]));
    isSameTick = false;
  });
}

const rejecting = (limiter, id) => async () => {
  const [error] = await calledBack(limiter, id);
  throw error;
};

module.exports = {
  async 'a wrong cost or option is an error, and nothing is recorded'({ make, failureOf, codeOf }) {
    const limits = [
      { interval: 60_000, maxInInterval: 9 },
      { interval: 1000, maxInInterval: 2 },
    ];
    const limiter = make({ limits });
    const outOfRange = [0, -1, 1.5, 3, 9, 2 ** 53, Number.NaN, Infinity, -Infinity];
    for (const call of ['attempt', 'peek']) {
      for (const cost of [...outOfRange, '1', null, 1n, {}, [1], true, Symbol('1')]) {
        const error = await failureOf(() => limiter[call]('a', { cost }));
        expect(error).toBeInstanceOf(typeof cost === 'number' ? RangeError : TypeError);
        expect(error.code).toBe('ERR_ROLLGATE_COST');
      }
      for (const options of [1, null, [], 'cost', { price: 1 }]) {
        expect(await codeOf(() => limiter[call]('a', options))).toBe('ERR_ROLLGATE_OPTION');
      }
    }
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0 });
    expect(await limiter.attempt('a', { cost: undefined })).toMatchObject({ actionsLeft: 1 });
    expect(await limiter.attempt('a', undefined)).toMatchObject({ actionsLeft: 0 });
  },

  async 'peeks write nothing and create nothing'({ make, stateOf }) {
    const limiter = make({ maxInInterval: 1, blockFor: 1000 });
    const look = async () => {
      await limiter.peek('a');
      await limiter.wouldLimit('a');
      await limiter.wouldLimitWithInfo('a');
    };
    const before = limiter.stats();
    await look();
    expect(limiter.stats().keys).toBe(before.keys);
    expect(await stateOf('a')).toBeFalsy();
    await limiter('a');
    const [state, { keys, allowed, blocked }] = [await stateOf('a'), limiter.stats()];
    await look();
    expect(await stateOf('a')).toEqual(state);
    expect(limiter.stats()).toMatchObject({ keys, allowed, blocked });
  },

  async 'limit and wouldLimit promise whether it is blocked'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    const calls = [];
    for (const name of ['wouldLimit', 'wouldLimit', 'limit', 'wouldLimit', 'limit']) {
      const answer = limiter[name]('a');
      expect(answer).toBeInstanceOf(Promise);
      calls.push(await answer);
    }
    expect(calls).toEqual([false, false, false, true, true]);
  },

  async 'decisions come at once or as promises, by the store'({ make, store }) {
    const limiter = make();
    const answers = [
      limiter('a'),
      limiter.attempt('a'),
      limiter.peek('a'),
      limiter.attemptMany([]),
    ];
    const arePromises = answers.map((answer) => answer instanceof Promise);
    expect(arePromises).toEqual(Array(4).fill(!store.isSync));
    await Promise.all(answers);
    for (const answer of [limiter.clear('a'), limiter.clearAll()]) {
      expect(answer).toBeInstanceOf(Promise);
      expect(await answer).toBeUndefined();
    }
  },

  async 'calls back with timeLeft and actionsLeft or an error, never in the same tick'(suite) {
    const { make, failureOf, fullFor } = suite;
    const limiter = make();
    const calls = [['a'], ['a'], ['a'], [], [{}]].map((args) => calledBack(limiter, ...args));
    const answers = await Promise.all(calls);
    const [ofA, [alone, wrong]] = [answers.slice(0, 3), answers.slice(3)];
    const timeLeft = Math.ceil(fullFor(2) / 1000);
    ofA.sort((a, b) => a[1] - b[1] || b[2] - a[2]);
    expect(ofA).toEqual([
      [null, 0, 1, undefined, false],
      [null, 0, 0, undefined, false],
      [null, timeLeft, 0, undefined, false],
    ]);
    expect(alone).toEqual([null, 0, 1, undefined, false]);
    const idError = expect.objectContaining({ code: 'ERR_ROLLGATE_ID' });
    expect(wrong).toEqual([idError, undefined, false]);
    for (const noCallback of [5, {}]) {
      expect(await failureOf(() => limiter('a', noCallback))).toBeInstanceOf(TypeError);
    }
  },

  async 'stats count attempts and not peeks'({ make }) {
    const limiter = make();
    for (let i = 0; i < 3; i++) await limiter('a');
    await limiter.peek('a');
    await limiter.attempt('b');
    await limiter.attemptMany(['b', 'b', 'c']);
    await limiter.wouldLimit('c');
    expect(limiter.stats()).toMatchObject({ allowed: 5, blocked: 2, errors: 0, evicted: 0 });
    expect([3, null]).toContain(limiter.stats().keys);
  },

  async 'a closed limiter refuses every call, and closing twice is fine'({ make, codeOf }) {
    const limiter = make();
    const decision = await limiter.attempt('a');
    await Promise.all([limiter.close(), limiter.close()]);
    await limiter.close();
    const names =
      'attempt peek limit wouldLimit limitWithInfo wouldLimitWithInfo clear clearAll stats';
    const calls = [
      ...names.split(' ').map((name) => () => limiter[name]('a')),
      () => limiter('a'),
      () => limiter.attemptMany(['a']),
      () => limiter.refund(decision),
      rejecting(limiter, 'a'),
    ];
    for (const call of calls) expect(await codeOf(call)).toBe('ERR_ROLLGATE_CLOSED');
  },

  async 'a number, a bigint and their string are one id; undefined, null and "" are another'({
    make,
  }) {
    const limiter = make({ maxInInterval: 1 });
    await expectOneId(limiter, [1, '1', 1n]);
    await expectOneId(limiter, ['-7', -7n, -7]);
    await expectOneId(limiter, [0, '0', 0n, -0]);
    await expectOneId(limiter, [1.5, '1.5']);
    await expectOneId(limiter, [1e21, '1e+21']);
    await expectOneId(limiter, [2n ** 64n, '18446744073709551616']);
    await expectOneId(limiter, [undefined, null, '']);
    expect(await limiter()).toBeGreaterThan(0);
    expect([await limiter('0'), await limiter('undefined')]).toEqual([0, 0]);
  },

  async 'different strings are different ids'({ make, store }) {
    const limiter = make({ maxInInterval: 1 });
    for (const id of DIFFERENT_IDS) expect(await limiter(id)).toBe(0);
    for (const id of DIFFERENT_IDS) expect(await limiter(id)).toBeGreaterThan(0);
    await limiter.clear('__proto__');
    expect(await limiter('__proto__')).toBe(0);
    expect(await limiter('constructor')).toBeGreaterThan(0);
    // A store in this process keeps lone surrogates; no other store can write them.
    await limiter.clear('\ufffd');
    for (const id of ['\ud800', '\udc00', 'a\ud800', '\udc00\ud800']) {
      const came = await Promise.resolve()
        .then(() => limiter(id))
        .catch(({ code }) => code);
      expect(came).toBe(store.isSync ? 0 : 'ERR_ROLLGATE_ID');
    }
    expect(await limiter('\ufffd')).toBe(0);
  },

  async 'a wrong id is a TypeError, and nothing is recorded'({ make, failureOf, codeOf }) {
    const limiter = make({ maxInInterval: 1 });
    const names = ['attempt', 'peek', 'limit', 'wouldLimit', 'limitWithInfo', 'clear'];
    for (const id of WRONG_IDS) {
      for (const name of names) {
        const error = await failureOf(() => limiter[name](id));
        expect(error).toBeInstanceOf(TypeError);
        expect(error.code).toBe('ERR_ROLLGATE_ID');
      }
      expect(await codeOf(() => limiter(id))).toBe('ERR_ROLLGATE_ID');
      expect(await codeOf(() => limiter.attemptMany(['a', 'b', id]))).toBe('ERR_ROLLGATE_ID');
    }
    expect(await codeOf(() => limiter.attempt(() => {}))).toBe('ERR_ROLLGATE_ID');
    for (const ids of ['abc', undefined, null, { 0: 'a', length: 1 }, new Set(['a'])]) {
      expect(await codeOf(() => limiter.attemptMany(ids))).toBe('ERR_ROLLGATE_ID');
    }
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0 });
    expect([await limiter('a'), await limiter('b')]).toEqual([0, 0]);
  },

  async 'attemptMany decides one id after the other, as attempts would'({ make, at, store }) {
    const options = { maxInInterval: 3, minDifference: 1, blockFor: [50, 100] };
    const [together, alone] = [make(options), make(options)];
    for (const ms of [0, 1, 2, 60, 200]) {
      at(ms * 1000);
      const ids = ['a', 'b', 'a', 1, 'a', '1', 'c', undefined];
      const expected = [];
      for (const id of ids) expected.push({ ...(await alone.attempt(id)) });
      const many = await together.attemptMany(ids);
      expect(many.map((decision) => ({ ...decision }))).toEqual(expected);
    }
    const limiter = make({ maxInInterval: 1 });
    expect(await limiter.attemptMany([])).toEqual([]);
    const ids = Array.from({ length: store.pace < 1000 ? 30 : 500 }, (_, i) => i);
    const first = await limiter.attemptMany(ids);
    expect(first.every(({ allowed }) => allowed)).toBe(true);
    const second = await limiter.attemptMany([...ids, 'new']);
    expect(second.findIndex(({ allowed }) => allowed)).toBe(ids.length);
  },

  async 'a clock that fails or gives no finite number fails that call only'(suite) {
    const { make, startMs, failureOf } = suite;
    const mine = new Error('the clock is broken');
    let read = () => startMs;
    const limiter = make({ clock: () => read() });
    await limiter('a');
    const calls = [
      () => limiter('a'),
      () => limiter.attempt('a'),
      () => limiter.peek('a'),
      () => limiter.limit('a'),
      () => limiter.attemptMany(['b', 'a']),
      rejecting(limiter, 'a'),
    ];
    read = () => {
      throw mine;
    };
    for (const call of calls) {
      expect(await failureOf(call)).toMatchObject({ code: 'ERR_ROLLGATE_CLOCK', cause: mine });
    }
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 0, errors: calls.length });
    for (const reading of [NaN, Infinity, -Infinity, undefined, null, '5', 5n, {}, new Date()]) {
      read = () => reading;
      expect((await failureOf(calls[0])).code).toBe('ERR_ROLLGATE_CLOCK');
    }
    read = () => startMs;
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.attempt('b')).toMatchObject({ allowed: true, actionsLeft: 1 });
  },

  async 'without a clock, time is real'({ make }) {
    const limiter = make({ clock: undefined, interval: 86_400_000 });
    const [first, second, third] = [await limiter('a'), await limiter('a'), await limiter('a')];
    expect([first, second]).toEqual([0, 0]);
    expect(third).toBeGreaterThan(0);
    expect(third).toBeLessThanOrEqual(86_400_001);
  },

  async 'each attempt is published, whatever the call, and no peek'({ make }) {
    const limiter = make({ maxInInterval: 3 });
    const messages = [];
    const listener = (message) => messages.push(message);
    await limiter('unheard');
    diagnostics.subscribe('rollgate:decision', listener);
    try {
      await limiter('a');
      await limiter.peek('a');
      await limiter.wouldLimit('a');
      await limiter.attempt('a', { cost: 2 });
      await limiter.limit('a');
      await limiter.attemptMany(['b', 'c']);
      await limiter.wait('d');
      await calledBack(limiter, 'e');
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      diagnostics.unsubscribe('rollgate:decision', listener);
    }
    await limiter('unheard');
    expect(messages.every((message) => message.limiter === limiter)).toBe(true);
    const seen = messages.map(({ id, cost, allowed, timeLeft }) => {
      expect(timeLeft > 0).toBe(!allowed);
      return [id, cost, allowed];
    });
    const ofA = [
      ['a', 1, true],
      ['a', 2, true],
      ['a', 1, false],
    ];
    expect(seen).toEqual([...ofA, ...['b', 'c', 'd', 'e'].map((id) => [id, 1, true])]);
  },
};
