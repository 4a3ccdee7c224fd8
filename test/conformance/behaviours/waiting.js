// Behaviours: wait.
'use strict';

const { MINUTE, SECOND, canCountBlocked, codeOf, failureOf, fullFor } = require('./support');

/** The keys of promises in the order in which they resolve, and what they resolve to. */
function watch(promises) {
  const order = [];
  const all = Object.entries(promises).map(async ([key, promise]) => {
    const decision = await promise;
    order.push(key);
    return decision;
  });
  return { order, all: Promise.all(all) };
}

/** A store that answers this has answered what was asked before. */
const answerOf = (limiter) => limiter.peek('another id');

module.exports = {
  async 'who waits is let in at once where there is room, by a decision that can be refunded'({
    make,
  }) {
    const limiter = make({ countBlocked: false });
    const decision = await limiter.wait('a');
    expect(decision).toMatchObject({ allowed: true, timeLeft: 0, actionsLeft: 1 });
    expect(await limiter.wait('a', { cost: 1 })).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.peek('a')).toMatchObject({ allowed: false });
    expect(await limiter.refund(decision)).toBe(true);
    expect(await limiter.refund(decision)).toBe(false);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true });
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
  },

  async 'those who wait are let in when timeLeft has passed, in the order in which they came'({
    make,
    algorithm,
  }) {
    const countBlocked = canCountBlocked(algorithm);
    const limiter = make({ interval: 20, maxInInterval: 2, countBlocked, clock: undefined });
    const { order, all } = watch(Array.from({ length: 7 }, () => limiter.wait('a')));
    const decisions = await all;
    expect(order).toEqual(['0', '1', '2', '3', '4', '5', '6']);
    expect(decisions.every(({ allowed }) => allowed)).toBe(true);
    expect(limiter.stats()).toMatchObject({ allowed: 7, blocked: 0 });
  },

  async 'whoever came first goes first, however little the next one costs'({ make }) {
    const limiter = make({ interval: 20, maxInInterval: 3, clock: undefined });
    const { order, all } = watch({
      first: limiter.wait('a', { cost: 2 }),
      second: limiter.wait('a', { cost: 3 }),
      third: limiter.wait('a', { cost: 1 }),
    });
    const decisions = await all;
    expect(order).toEqual(['first', 'second', 'third']);
    expect(decisions[1]).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(limiter.stats()).toMatchObject({ allowed: 3, blocked: 0 });
  },

  async 'ids wait apart, and one id in one line however it is written'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    for (const id of [1, undefined]) await limiter.attempt(id);
    const ids = [1, null, '1', undefined, 1n, ''];
    const waiting = ids.map((id) => limiter.wait(id));
    const { order, all } = watch(waiting);
    expect(await limiter.wait('b')).toMatchObject({ allowed: true });
    for (const next of [0, 2, 4]) {
      await limiter.clear('1');
      await waiting[next];
    }
    for (const next of [1, 3, 5]) {
      await limiter.clear();
      await waiting[next];
    }
    await all;
    expect(order).toEqual(['0', '2', '4', '1', '3', '5']);
    expect(limiter.stats()).toMatchObject({ allowed: 9, blocked: 0 });
  },

  async 'a refund lets the first of those who wait in at once, and clearAll the others'({ make }) {
    const limiter = make({ maxInInterval: 2, countBlocked: false });
    const [one] = [await limiter.attempt('a'), await limiter.attempt('a')];
    const waiting = [limiter.wait('a'), limiter.wait('a'), limiter.wait('a')];
    const { order, all } = watch(waiting);
    expect(await limiter.refund(one)).toBe(true);
    await waiting[0];
    await answerOf(limiter);
    expect(order).toEqual(['0']);
    await limiter.clearAll();
    await all;
    expect(order).toEqual(['0', '1', '2']);
  },

  async 'waiting records nothing: no refusal is counted, and no block begins'({
    make,
    at,
    algorithm,
  }) {
    const limiter = make({
      countBlocked: canCountBlocked(algorithm),
      blockFor: 10 * 60_000,
    });
    await limiter.attempt('a', { cost: 2 });
    at(SECOND);
    const giveUp = new AbortController();
    const waiting = [1, 2, 1].map((cost) => limiter.wait('a', { cost, signal: giveUp.signal }));
    await limiter.peek('a');
    giveUp.abort();
    await Promise.allSettled(waiting);
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 0 });
    at(fullFor(algorithm, 2));
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
  },

  async 'the wait is that of an attempt that nobody has tried before: without its refusal or a block'({
    make,
    time,
    at,
    algorithm,
  }) {
    const limiter = make({ countBlocked: canCountBlocked(algorithm), blockFor: 3_600_000 });
    await limiter.attempt('a', { cost: 2 });
    at(fullFor(algorithm, 2) - 30_000);
    const waiting = limiter.wait('a');
    await answerOf(limiter);
    time.advance(30);
    expect(await waiting).toMatchObject({ allowed: true });
  },

  async 'minDifference is waited for in the same way'({ make, time, algorithm }) {
    const countBlocked = canCountBlocked(algorithm);
    const limiter = make({
      minDifference: 30,
      maxInInterval: 5,
      countBlocked,
      blockFor: 3_600_000,
    });
    await limiter.attempt('a');
    time.advance(10);
    const waiting = limiter.wait('a');
    await answerOf(limiter);
    time.advance(20);
    expect(await waiting).toMatchObject({ allowed: true });
  },

  async 'a cost waits until all of it has room, in every window'({ make, time, algorithm }) {
    const limits = [
      { interval: 30, maxInInterval: 3 },
      { interval: 60_000, maxInInterval: 100 },
    ];
    const limiter = make({ limits, countBlocked: canCountBlocked(algorithm), blockFor: 3_600_000 });
    for (let i = 0; i < 3; i++) {
      await limiter.attempt('a');
      time.advance(2);
    }
    const waiting = limiter.wait('a', { cost: 3 });
    await answerOf(limiter);
    time.advance(60);
    expect(await waiting).toMatchObject({ allowed: true });
    expect(limiter.stats()).toMatchObject({ allowed: 4, blocked: 0 });
  },

  async 'blocks are waited for'({ make, time }) {
    const limiter = make({ interval: 1, maxInInterval: 1, countBlocked: false, blockFor: 30 });
    await limiter.attempt('a');
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false, timeLeft: 30 });
    const waiting = limiter.wait('a');
    await limiter.peek('a');
    time.advance(30);
    expect(await waiting).toMatchObject({ allowed: true });
  },

  async 'a signal ends waiting with its reason'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    await limiter.attempt('a');
    const [first, second] = [new AbortController(), new AbortController()];
    const waiting = [first, second].map(({ signal }) => limiter.wait('a', { signal }));
    const others = limiter.wait('a');
    const reason = new Error('changed my mind');
    second.abort(reason);
    expect(await failureOf(() => waiting[1])).toBe(reason);
    first.abort();
    expect((await failureOf(() => waiting[0])).name).toBe('AbortError');
    await limiter.clear('a');
    expect(await others).toMatchObject({ allowed: true });
    expect(await failureOf(() => limiter.wait('b', { signal: second.signal }))).toBe(reason);
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
  },

  async 'a deadline that cannot be met ends waiting before it has passed'({ make }) {
    const limiter = make({ maxInInterval: 2 });
    await limiter.attempt('a', { cost: 2 });
    const deadline = MINUTE / 1000 / 4;
    const late = await failureOf(() => limiter.wait('a', { deadline }));
    expect(late).toBeInstanceOf(Error);
    expect(late.code).toBe('ERR_ROLLGATE_WAIT_DEADLINE');
    expect(late.message).toMatch(
      /^the action would be allowed in \d+ ms, past its deadline, \d+ ms after/,
    );
    expect(await limiter.wait('b', { deadline })).toMatchObject({ allowed: true });
    const patient = limiter.wait('a');
    await limiter.peek('a');
    await answerOf(limiter);
    // Behind somebody who has to wait for longer.
    expect(await codeOf(() => limiter.wait('a', { deadline }))).toBe('ERR_ROLLGATE_WAIT_DEADLINE');
    await limiter.clear('a');
    expect(await patient).toMatchObject({ allowed: true });
  },

  async 'no more wait than maxQueue says'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    await limiter.attempt('a');
    const waiting = [limiter.wait('a', { maxQueue: 1 }), limiter.wait('a', { maxQueue: 2 })];
    const full = await failureOf(() => limiter.wait('a', { maxQueue: 2 }));
    expect(full).toMatchObject({ code: 'ERR_ROLLGATE_WAIT_QUEUE' });
    expect(await limiter.wait('b', { maxQueue: 1 })).toMatchObject({ allowed: true });
    await limiter.clear('a');
    expect(await waiting[0]).toMatchObject({ allowed: true });
    const next = limiter.wait('a', { maxQueue: 2 });
    await limiter.clear('a');
    await waiting[1];
    await limiter.clear('a');
    expect(await next).toMatchObject({ allowed: true });
  },

  async 'close ends waiting'({ make }) {
    const limiter = make({ maxInInterval: 1 });
    await limiter.attempt('a');
    const waiting = ['a', 'a', 'b', 'b'].map((id) => limiter.wait(id));
    const ends = Promise.allSettled(waiting);
    await waiting[2];
    await limiter.peek('a');
    await limiter.close();
    const codes = (await ends).map(({ reason }) => reason?.code);
    const closed = 'ERR_ROLLGATE_CLOSED';
    expect(codes).toEqual([closed, closed, undefined, closed]);
    expect(await codeOf(() => limiter.wait('a'))).toBe(closed);
  },

  async 'what is wrong with a call rejects its promise'({ make }) {
    const limiter = make();
    const codes = await Promise.all(
      [
        ['a', { cost: 3 }],
        ['a', { cost: '1' }],
        [{}],
        [Number.NaN],
        ['a', { deadline: -1 }],
        ['a', 1],
      ].map((args) => codeOf(() => limiter.wait(...args))),
    );
    const [cost, id, option] = ['COST', 'ID', 'OPTION'].map((name) => `ERR_ROLLGATE_${name}`);
    expect(codes).toEqual([cost, cost, id, id, option, option]);
    expect(await limiter.wait('a', { cost: 2 })).toMatchObject({ allowed: true });
  },
};
