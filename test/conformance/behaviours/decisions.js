// Behaviours: what attempts, peeks and the other calls answer.
'use strict';

const { MINUTE_MS, codeOf, failureOf, fullFor } = require('./support');

const LIMIT = { interval: MINUTE_MS, maxInInterval: 2 };

module.exports = {
  async 'a Decision has six facts and no more'({ make }) {
    const limiter = make();
    const facts = ['actionsLeft', 'allowed', 'blockedBy', 'limits', 'resetIn', 'timeLeft'];
    for (let i = 0; i < 3; i++) {
      const decision = await limiter.attempt('a');
      expect(Object.keys(decision).sort()).toEqual(facts);
      expect(decision.limits).toEqual([
        {
          ...LIMIT,
          used: Math.min(i + 1, 2),
          remaining: Math.max(1 - i, 0),
          resetIn: expect.any(Number),
        },
      ]);
    }
  },

  async 'resetIn of an allowed attempt tells when quota grows'({ make, at }) {
    const limiter = make();
    const { resetIn, actionsLeft } = await limiter.attempt('a', { cost: 2 });
    expect(actionsLeft).toBe(0);
    at((resetIn - 1) * 1000);
    expect((await limiter.peek('a')).allowed).toBe(false);
    at(resetIn * 1000);
    expect((await limiter.peek('a')).allowed).toBe(true);
  },

  async 'a cost counts as that many actions at once'({ make }) {
    const limiter = make({ maxInInterval: 5 });
    const seen = [];
    for (const cost of [3, 3, 2, 1]) seen.push(await limiter.attempt('a', { cost }));
    expect(seen.map(({ allowed }) => allowed)).toEqual([true, false, true, false]);
    expect(seen.map(({ actionsLeft }) => actionsLeft)).toEqual([2, 2, 0, 0]);
  },

  async 'a cost without meaning is an error, and nothing is recorded'({ make }) {
    const limiter = make({
      limits: [
        { interval: MINUTE_MS, maxInInterval: 9 },
        { interval: 1000, maxInInterval: 2 },
      ],
    });
    for (const call of ['attempt', 'peek']) {
      for (const cost of [0, -1, 1.5, 3, 9, 2 ** 53, Number.NaN, Infinity, -Infinity]) {
        const error = await failureOf(() => limiter[call]('a', { cost }));
        expect(error).toBeInstanceOf(RangeError);
        expect(error.code).toBe('ERR_ROLLGATE_COST');
      }
      for (const cost of ['1', null, 1n, {}, [1], true, Symbol('1')]) {
        const error = await failureOf(() => limiter[call]('a', { cost }));
        expect(error).toBeInstanceOf(TypeError);
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

  async 'a peek gives the Decision that an attempt would get'({ make, at }) {
    const limiter = make({ maxInInterval: 3, minDifference: 5, blockFor: 10_000 });
    for (const micros of [0, 1, 5000, 10_000, 10_001, 15_000, 30_000_000, 70_000_000]) {
      at(micros);
      for (const cost of [1, 2]) {
        const peeked = await limiter.peek('a', { cost });
        expect({ ...(await limiter.peek('a', { cost })) }).toEqual({ ...peeked });
        expect({ ...(await limiter.attempt('a', { cost })) }).toEqual({ ...peeked });
      }
    }
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
    const [state, stats] = [await stateOf('a'), limiter.stats()];
    await look();
    expect(await stateOf('a')).toEqual(state);
    const { keys, allowed, blocked } = stats;
    expect(limiter.stats()).toMatchObject({ keys, allowed, blocked });
  },

  async 'limit and wouldLimit tell whether it is blocked'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    const calls = [];
    for (const name of ['wouldLimit', 'wouldLimit', 'limit', 'wouldLimit', 'limit']) {
      const answer = limiter[name]('a');
      expect(answer).toBeInstanceOf(Promise);
      calls.push(await answer);
    }
    expect(calls).toEqual([false, false, false, true, true]);
  },

  async 'limitWithInfo tells of the call as if it were made'({ make, algorithm }) {
    const limiter = make({ maxInInterval: 2, minDifference: 1 });
    const full = Math.ceil(fullFor(algorithm, 2) / 1000);
    const first = {
      blocked: false,
      blockedDueToCount: false,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 1,
      actionsRemaining: 1,
    };
    expect(await limiter.wouldLimitWithInfo('a')).toEqual(first);
    expect(await limiter.limitWithInfo('a')).toEqual(first);
    const soon = { ...first, blocked: true, blockedDueToMinDifference: true };
    expect(await limiter.wouldLimitWithInfo('a')).toEqual(soon);
    const other = make({ maxInInterval: 2 });
    await other('a');
    const filled = { ...first, millisecondsUntilAllowed: full, actionsRemaining: 0 };
    expect(await other.wouldLimitWithInfo('a')).toEqual(filled);
    expect(await other.limitWithInfo('a')).toEqual(filled);
    expect(await other.limitWithInfo('a')).toEqual({
      ...filled,
      blocked: true,
      blockedDueToCount: true,
    });
  },

  async 'decisions come at once or as promises, by the store'({ make, store }) {
    const limiter = make();
    const answers = [
      limiter('a'),
      limiter.attempt('a'),
      limiter.peek('a'),
      limiter.attemptMany([]),
    ];
    expect(answers.map((answer) => answer instanceof Promise)).toEqual(
      Array(4).fill(!store.isSync),
    );
    await Promise.all(answers);
    for (const answer of [limiter.clear('a'), limiter.clearAll()]) {
      expect(answer).toBeInstanceOf(Promise);
      expect(await answer).toBeUndefined();
    }
  },

  async 'calls that are made together are decided one by one'({ make }) {
    const limiter = make({ maxInInterval: 5 });
    const all = await Promise.all(Array.from({ length: 12 }, () => limiter.attempt('a')));
    expect(all.filter(({ allowed }) => allowed).length).toBe(5);
    expect(limiter.stats()).toMatchObject({ allowed: 5, blocked: 7 });
  },

  async 'calls back with timeLeft and actionsLeft, never in the same tick'({ make, algorithm }) {
    const limiter = make();
    let isSameTick = true;
    const call = (...args) =>
      new Promise((resolve) => {
        const returned = limiter(...args, (...answer) => {
          resolve([...answer, isSameTick, returned]);
        });
      });
    const answers = Promise.all([call('a'), call('a'), call('a'), call(), call(undefined)]);
    isSameTick = false;
    const timeLeft = Math.ceil(fullFor(algorithm, 2) / 1000);
    const later = [false, undefined];
    const [first, second, third, fourth, fifth] = await answers;
    const ofA = [first, second, third].sort((a, b) => a[1] - b[1] || b[2] - a[2]);
    expect(ofA).toEqual([
      [null, 0, 1, ...later],
      [null, 0, 0, ...later],
      [null, timeLeft, 0, ...later],
    ]);
    expect([fourth, fifth].sort((a, b) => b[2] - a[2])).toEqual([
      [null, 0, 1, ...later],
      [null, 0, 0, ...later],
    ]);
  },

  async 'what is wrong with a call comes to the callback'({ make }) {
    const limiter = make();
    const error = await new Promise((resolve) => {
      limiter({}, (...answer) => resolve(answer));
    });
    expect(error).toEqual([expect.objectContaining({ code: 'ERR_ROLLGATE_ID' })]);
    expect(await failureOf(() => limiter('a', 5))).toBeInstanceOf(TypeError);
    expect(await failureOf(() => limiter('a', {}))).toBeInstanceOf(TypeError);
  },

  async 'stats count attempts and not peeks'({ make }) {
    const limiter = make({ maxInInterval: 2 });
    for (let i = 0; i < 3; i++) await limiter('a');
    await limiter.peek('a');
    await limiter.attempt('b');
    await limiter.attemptMany(['b', 'b', 'c']);
    await limiter.wouldLimit('c');
    expect(limiter.stats()).toMatchObject({ allowed: 5, blocked: 2, errors: 0, evicted: 0 });
    expect([3, null]).toContain(limiter.stats().keys);
  },

  async 'a closed limiter refuses every call, and closing twice is fine'({ make }) {
    const limiter = make();
    const decision = await limiter.attempt('a');
    await Promise.all([limiter.close(), limiter.close()]);
    await limiter.close();
    const calls = [
      () => limiter('a'),
      () => limiter.attempt('a'),
      () => limiter.peek('a'),
      () => limiter.attemptMany(['a']),
      () => limiter.limit('a'),
      () => limiter.wouldLimit('a'),
      () => limiter.limitWithInfo('a'),
      () => limiter.wouldLimitWithInfo('a'),
      () => limiter.refund(decision),
      () => limiter.clear('a'),
      () => limiter.clearAll(),
      () => limiter.stats(),
      () =>
        new Promise((resolve, reject) => {
          limiter('a', (error) => (error ? reject(error) : resolve()));
        }),
    ];
    for (const call of calls) expect(await codeOf(call)).toBe('ERR_ROLLGATE_CLOSED');
  },
};
