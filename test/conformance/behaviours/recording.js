// Behaviours: record(id), which counts what has already happened.
'use strict';

const { NAMED, usedOf } = require('../usage');

const SECOND = 1_000_000; // us
const MINUTE_MS = 60_000;

module.exports = {
  // Kills: the numbers of before; a Decision; a cost of 0 by default.
  async 'what is recorded counts, and the answer is that of usage'({ make, at, store }) {
    at(0);
    const limiter = make({ maxInInterval: 4 });
    const answer = limiter.record('a');
    expect(answer instanceof Promise).toBe(!store.isSync);
    expect(await answer).toMatchObject({ allowed: true, used: 1, remaining: 3, timeLeft: 0 });
    const usage = await limiter.record('a', { cost: 2 });
    expect(usage).toEqual(await limiter.usage('a'));
    expect(usage).toMatchObject({ used: 3, limits: [{ interval: MINUTE_MS, maxInInterval: 4 }] });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
    expect(await usedOf(limiter, 'b')).toEqual([0]);
  },

  // Kills: a count that is cut to the maximum.
  async 'it never refuses, and may overdraw'({ make, at, expectExactWait }) {
    at(0);
    const limiter = make({ maxInInterval: 4 });
    await limiter.attempt('a', { cost: 3 });
    const usage = await limiter.record('a', { cost: 4 });
    expect(usage).toMatchObject({ allowed: false, used: 7, remaining: 0 });
    expect(usage.timeLeft).toBe((await limiter.peek('a')).timeLeft);
    await expectExactWait(() => limiter.peek('a'));
  },

  async 'costs by name count in their windows, far above the limits'({ make, at }) {
    at(0);
    const limiter = make(NAMED);
    await limiter.record('a', { cost: { tokens: 2 ** 31 - 1, requests: 0 } });
    await limiter.record('a', { cost: { requests: 6 } });
    expect(await usedOf(limiter)).toEqual([6, 2 ** 31]);
  },

  async 'stats() counts it apart, and nothing can be refunded'({ make, codeOf }) {
    const limiter = make({ maxInInterval: 4 });
    await limiter.attempt('a');
    const usage = await limiter.record('a', { cost: 9 });
    await limiter.record('b');
    await limiter.attempt('a');
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 1, recorded: 2 });
    expect(await codeOf(() => limiter.refund(usage))).toBe('ERR_ROLLGATE_DECISION');
    expect(await codeOf(() => limiter.settle(usage, 1))).toBe('ERR_ROLLGATE_DECISION');
  },

  'sliding-window-log': {
    async 'a log without names keeps so many actions of records'({ make, at, store }) {
      const { roomForRecords = 1024 } = store;
      at(0);
      const limiter = make({ maxInInterval: 4 });
      const { used } = await limiter.record('a', { cost: roomForRecords + 9 });
      expect(used).toBe(roomForRecords);
      at(SECOND);
      await limiter.record('a', { cost: 7 });
      at(60 * SECOND);
      expect(await usedOf(limiter)).toEqual([7]);
    },
  },
};
