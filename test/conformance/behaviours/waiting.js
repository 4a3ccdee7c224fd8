// Behaviours: wait().
'use strict';

const { waitUntil } = require('../../support/outcome');

const SECOND = 1_000_000; // us
const LONG_BLOCK = 3_600_000;

/** `order`: the keys of the promises in the order in which they resolve; `all`: what they resolve to. */
function watch(promises) {
  const order = [];
  const all = Object.entries(promises).map(async ([key, promise]) => {
    const decision = await promise;
    order.push(key);
    return decision;
  });
  return { order, all: Promise.all(all) };
}

/** Resolves after the store has answered all earlier calls. */
const settled = (limiter) => limiter.peek('another id');

module.exports = {
  async 'a call is let in at once if there is room, with a decision that can be refunded'(suite) {
    const { make } = suite;
    const limiter = make();
    const decision = await limiter.wait('a');
    expect(decision).toMatchObject({ allowed: true, timeLeft: 0, actionsLeft: 1 });
    expect(await limiter.wait('a', { cost: 1 })).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.peek('a')).toMatchObject({ allowed: false });
    expect(await limiter.refund(decision)).toBe(true);
    expect(await limiter.refund(decision)).toBe(false);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true });
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
  },

  async 'calls are let in when timeLeft has passed, in their order, whatever they cost'(suite) {
    const { make, countBlocked } = suite;
    const limiter = make({ interval: 20, maxInInterval: 3, countBlocked, clock: undefined });
    const costs = [2, 3, 1, 1, 2];
    const { order, all } = watch(costs.map((cost) => limiter.wait('a', { cost })));
    const decisions = await all;
    expect(order).toEqual(['0', '1', '2', '3', '4']);
    expect(decisions.every(({ allowed }) => allowed)).toBe(true);
    expect(decisions[1]).toMatchObject({ actionsLeft: 0 });
    expect(limiter.stats()).toMatchObject({ allowed: 5, blocked: 0 });
  },

  async 'each id has its own line, one for all ways to write it'({ make }) {
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

  async 'a refund lets the first in at once, and clearAll the others'({ make }) {
    const limiter = make();
    const [one] = [await limiter.attempt('a'), await limiter.attempt('a')];
    const waiting = [limiter.wait('a'), limiter.wait('a'), limiter.wait('a')];
    const { order, all } = watch(waiting);
    expect(await limiter.refund(one)).toBe(true);
    await waiting[0];
    await settled(limiter);
    expect(order).toEqual(['0']);
    await limiter.clearAll();
    await all;
    expect(order).toEqual(['0', '1', '2']);
  },

  async 'waiting records nothing: no refusal counts, and no block begins'(suite) {
    const { make, at, countBlocked, fullFor } = suite;
    const limiter = make({ countBlocked, blockFor: LONG_BLOCK });
    await limiter.attempt('a', { cost: 2 });
    at(SECOND);
    const giveUp = new AbortController();
    const waiting = [1, 2, 1].map((cost) => limiter.wait('a', { cost, signal: giveUp.signal }));
    await settled(limiter);
    giveUp.abort();
    await Promise.allSettled(waiting);
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 0 });
    at(fullFor(2));
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
  },

  async 'the wait is that of an attempt, without the refusal and the block it would bring'(suite) {
    const { make, time, countBlocked, fullFor } = suite;
    const options = { countBlocked, blockFor: LONG_BLOCK };
    const several = [
      { interval: 30, maxInInterval: 3 },
      { interval: 60_000, maxInInterval: 100 },
    ];
    // [options, costs of attempts, ms between them, ms until the wait begins, its cost, ms that it takes]
    for (const [own, costs, gap, before, cost, ms] of [
      [{ ...options }, [2], 0, fullFor(2) / 1000 - 30, 1, 30],
      [{ ...options, minDifference: 30, maxInInterval: 5 }, [1], 0, 10, 1, 20],
      [{ ...options, limits: several }, [1, 1, 1], 2, 0, 3, 60],
      [{ interval: 1, maxInInterval: 1, blockFor: 30 }, [1, 1], 0, 0, 1, 30],
    ]) {
      const limiter = make(own);
      for (const each of costs) {
        await limiter.attempt('a', { cost: each });
        time.advance(gap);
      }
      time.advance(before);
      const { blocked } = limiter.stats();
      const waiting = limiter.wait('a', { cost });
      await settled(limiter);
      time.advance(ms);
      expect(await waiting).toMatchObject({ allowed: true });
      expect(limiter.stats()).toMatchObject({ blocked });
    }
  },

  async 'a call is not let in early by a clock that steps back while it waits'({ make, startMs }) {
    let reading = startMs;
    let readings = 0;
    const clock = () => {
      readings += 1;
      return reading;
    };
    const limiter = make({ interval: 20, maxInInterval: 1, clock });
    await limiter.attempt('a');
    const { order, all } = watch({ waiter: limiter.wait('a') });
    await settled(limiter);
    reading = startMs - 10;
    const before = readings;
    // In real time the window has passed when the store is asked again.
    await waitUntil('the store is asked again', () => readings > before);
    await settled(limiter);
    expect(order).toEqual([]);
    reading = startMs + 21;
    expect(await all).toMatchObject([{ allowed: true }]);
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 0 });
  },

  async 'a signal ends waiting with its reason'({ make, failureOf }) {
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

  async 'no more calls wait than maxQueue allows'({ make, failureOf }) {
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

  async 'close ends waiting'({ make, codeOf }) {
    const limiter = make({ maxInInterval: 1 });
    await limiter.attempt('a');
    const waiting = ['a', 'a', 'b', 'b'].map((id) => limiter.wait(id));
    const ends = Promise.allSettled(waiting);
    await waiting[2];
    await settled(limiter);
    await limiter.close();
    const codes = (await ends).map(({ reason }) => reason?.code);
    const closed = 'ERR_ROLLGATE_CLOSED';
    expect(codes).toEqual([closed, closed, undefined, closed]);
    expect(await codeOf(() => limiter.wait('a'))).toBe(closed);
  },

  async 'a wrong argument rejects the promise, also where other calls throw'({ make, codeOf }) {
    const limiter = make();
    const promises = [limiter.wait('a', { cost: 3 }), limiter.wait({})];
    expect(await codeOf(() => promises[0])).toBe('ERR_ROLLGATE_COST');
    expect(await codeOf(() => promises[1])).toBe('ERR_ROLLGATE_ID');
  },
};
