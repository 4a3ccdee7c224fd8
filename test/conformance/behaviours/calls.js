// Behaviours: what each call answers, which ids are one, what observers see.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const RateLimiter = require('../../..');
const { usedOf } = require('../usage');

const DIFFERENT_IDS = [
  ...'0 -0 1 01 1.0 a A \0 a\0 \0a a\0b __proto__ constructor prototype hasOwnProperty'.split(' '),
  ...'toString null undefined NaN {a} { } a} }{a * a* [a] \\ a\nb a\r\nb'.split(' '),
  ...'\u00e9 e\u0301 \u00ff \u0100 \ufffd \uffff 日本語 日本 привет 💥 👩‍👩‍👧'.split(' '),
  ...['', ' ', 'a ', 'x'.repeat(16), 'x'.repeat(17), 'x'.repeat(1_000_000)],
  ...[`${'x'.repeat(999_999)}y`, `y${'x'.repeat(999_999)}`],
];

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
  async 'limit and wouldLimit promise whether it is blocked'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    const calls = [];
    for (const name of ['wouldLimit', 'wouldLimit', 'limit', 'wouldLimit', 'limit']) {
      calls.push(await limiter[name]('a'));
    }
    expect(calls).toEqual([false, false, false, true, true]);
  },

  async 'decisions come at once or as promises, by the store; other calls promise'(suite) {
    const { make, store } = suite;
    const limiter = make({ maxInInterval: 9 });
    const decisions = [
      limiter('a'),
      ...['attempt', 'peek', 'usage'].map((name) => limiter[name]('a')),
    ];
    const names = 'limit wouldLimit limitWithInfo wouldLimitWithInfo wait clear clearAll';
    const others = names.split(' ').map((name) => limiter[name]('a'));
    others.push(limiter.block('a', 0));
    const arePromises = (answers) => answers.map((answer) => answer instanceof Promise);
    expect(arePromises([...decisions, limiter.attemptMany([])])).toEqual(
      Array(5).fill(!store.isSync),
    );
    await Promise.all(decisions);
    expect((await Promise.all(others)).slice(-3)).toEqual(Array(3).fill(undefined));
    expect(arePromises([...others, limiter.close()])).toEqual(Array(9).fill(true));
  },

  async 'calls back with timeLeft and actionsLeft or an error, never in the same tick'(suite) {
    const { make, fullFor } = suite;
    const limiter = make();
    const calls = [['a'], ['a'], ['a'], [], [{}]].map((args) => calledBack(limiter, ...args));
    const answers = await Promise.all(calls);
    const ofA = answers.slice(0, 3).sort((a, b) => a[1] - b[1] || b[2] - a[2]);
    expect([...ofA, ...answers.slice(3)]).toEqual([
      [null, 0, 1, undefined, false],
      [null, 0, 0, undefined, false],
      [null, Math.ceil(fullFor(2) / 1000), 0, undefined, false],
      [null, 0, 1, undefined, false],
      [expect.objectContaining({ code: 'ERR_ROLLGATE_ID' }), undefined, false],
    ]);
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
      'attempt peek limit wouldLimit limitWithInfo wouldLimitWithInfo usage record wait clear clearAll stats';
    const calls = [
      ...names.split(' ').map((name) => () => limiter[name]('a')),
      () => limiter('a'),
      () => limiter.attemptMany(['a']),
      () => RateLimiter.attemptAll([{ limiter, id: 'a' }]),
      () => limiter.refund(decision),
      () => limiter.settle(decision, 1),
      () => limiter.block('a', 5),
      rejecting(limiter, 'a'),
    ];
    for (const call of calls) expect(await codeOf(call)).toBe('ERR_ROLLGATE_CLOSED');
  },

  async 'a number, a bigint and their string are one id; undefined, null and "" are another'(
    suite,
  ) {
    const limiter = suite.make({ maxInInterval: 1 });
    for (const ids of [
      [1, '1', 1n],
      ['-7', -7n, -7],
      [0, '0', 0n, -0],
      [1.5, '1.5'],
      [1e21, '1e+21'],
      [2n ** 64n, '18446744073709551616'],
      [undefined, null, ''],
    ]) {
      const allowed = [];
      for (const id of ids) allowed.push((await limiter.attempt(id)).allowed);
      expect(allowed).toEqual(ids.map((_, i) => i === 0));
    }
    expect(await limiter()).toBeGreaterThan(0);
    expect(await limiter('undefined')).toBe(0);
    await limiter.clear(1);
    expect(await usedOf(limiter, '1')).toEqual([0]);
    await limiter.record(1n);
    expect(await usedOf(limiter, '1')).toEqual([1]);
    await limiter.block(null, 90_000);
    expect(await limiter()).toBe(90_000);
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

  async 'attemptMany decides one id after the other, however many'({ make, store }) {
    const limiter = make({ maxInInterval: 1 });
    expect(await limiter.attemptMany([])).toEqual([]);
    const ids = Array.from({ length: store.pace < 1000 ? 30 : 500 }, (_, i) => i);
    const first = await limiter.attemptMany(ids);
    expect(first.every(({ allowed }) => allowed)).toBe(true);
    const second = await limiter.attemptMany([...ids, 'new', 'new']);
    expect(second.flatMap(({ allowed }, i) => (allowed ? i : []))).toEqual([ids.length]);
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

  // Kills: a refusal of wait() that is published; a record that is not, or like an attempt.
  async 'each attempt and record is published, whatever the call, and no peek'(suite) {
    const { make, failureOf } = suite;
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
      await limiter.record('a', { cost: 3 });
      const giveUp = new AbortController();
      const refused = limiter.wait('a', { signal: giveUp.signal });
      await limiter.peek('a');
      giveUp.abort();
      expect((await failureOf(() => refused)).name).toBe('AbortError');
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      diagnostics.unsubscribe('rollgate:decision', listener);
    }
    await limiter('unheard');
    const seen = messages.map(({ limiter: from, id, cost, allowed, timeLeft, kind }) => {
      expect([from === limiter, timeLeft > 0]).toEqual([true, !allowed]);
      return [id, cost, allowed, kind];
    });
    expect(seen).toEqual([
      ['a', 1, true, undefined],
      ['a', 2, true, undefined],
      ['a', 1, false, undefined],
      ...['b', 'c', 'd', 'e'].map((id) => [id, 1, true, undefined]),
      ['a', 3, true, 'record'],
    ]);
  },
};
