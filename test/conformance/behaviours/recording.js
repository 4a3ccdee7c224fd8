// Behaviours: record(id), which counts what has already happened.
'use strict';

const SECOND = 1_000_000; // us
const MINUTE_MS = 60_000;

const NAMED = {
  limits: [
    { name: 'requests', interval: MINUTE_MS, maxInInterval: 3 },
    { name: 'tokens', interval: MINUTE_MS, maxInInterval: 100 },
  ],
};

const usedOf = async (limiter, id = 'a') => {
  const { limits } = await limiter.usage(id);
  return limits.map(({ used }) => used);
};

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

  // Kills: a refusal of record; a count that is cut to the maximum.
  async 'it never refuses, and may overdraw'(suite) {
    const { make, at, time } = suite;
    at(0);
    const limiter = make({ maxInInterval: 4 });
    await limiter.attempt('a', { cost: 3 });
    const { allowed, used, remaining, timeLeft } = await limiter.record('a', { cost: 4 });
    expect([allowed, remaining]).toEqual([false, 0]);
    expect(used).toBe(7);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false, timeLeft });
    time.advance(timeLeft - 1);
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, timeLeft: 1 });
    time.advance(1);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true });
  },

  async 'costs by name count in their windows, far above the limits'({ make, at }) {
    at(0);
    const limiter = make(NAMED);
    await limiter.record('a', { cost: { tokens: 2 ** 31 - 1, requests: 0 } });
    expect(await usedOf(limiter)).toEqual([0, 2 ** 31 - 1]);
    expect(await limiter.record('a', { cost: { requests: 4 } })).toMatchObject({
      ...{ allowed: false, remaining: 0 },
      limits: [
        { name: 'requests', used: 4 },
        { name: 'tokens', used: 2 ** 31 },
      ],
    });
    expect(await limiter.record('b', { cost: 5 })).toMatchObject({
      limits: [{ used: 5 }, { used: 5 }],
    });
  },

  async 'it counts while the id is blocked, and leaves the block as it is'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 4 });
    await limiter.block('a', 30_000);
    expect(await limiter.record('a', { cost: 2 })).toMatchObject({
      ...{ allowed: false, used: 2, timeLeft: 30_000 },
    });
    at(30 * SECOND);
    // With gcra, the two leak in half a minute.
    const { used } = await limiter.usage('a');
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 3 - used });
  },

  // Kills: an offence; a block by the first refusal of another call.
  async 'it starts no block'({ make, at, algorithm }) {
    at(0);
    const limiter = make({ maxInInterval: 2, blockFor: [100_000, 500_000] });
    await limiter.record('a', { cost: 2 });
    await limiter.record('a', { cost: 2 });
    expect(await limiter.peek('a')).toMatchObject({ blockedBy: 'count' });
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft: 100_000 });
    await limiter.record('a');
    // With gcra, four actions have to leak first.
    const timeLeft = algorithm === 'gcra' ? 120_000 : 100_000;
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft });
  },

  // Kills: a record that waits for minDifference; one that is no newest action.
  async 'it asks for no minDifference, and later attempts count it as the newest action'(suite) {
    const { make, time } = suite;
    const limiter = make({ maxInInterval: 9, minDifference: 1000 });
    await limiter.attempt('a');
    time.advance(400);
    expect(await limiter.record('a')).toMatchObject({ used: 2, allowed: false, timeLeft: 1000 });
    time.advance(700);
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'minDifference',
      timeLeft: 300,
    });
    time.advance(300);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
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

  // Kills: a record that a refund of another attempt takes back.
  async 'a refund of an attempt leaves what was recorded'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 9 });
    const decision = await limiter.attempt('a', { cost: 2 });
    await limiter.record('a', { cost: 3 });
    expect(await limiter.refund(decision)).toBe(true);
    expect(await usedOf(limiter)).toEqual([3]);
    await limiter.clear('a');
    expect(await usedOf(limiter)).toEqual([0]);
  },

  async 'ids are those of all calls'({ make }) {
    const limiter = make({ maxInInterval: 9 });
    await limiter.record(1);
    await limiter.record(undefined, { cost: 2 });
    expect([await usedOf(limiter, '1'), await usedOf(limiter, null)]).toEqual([[1], [2]]);
  },

  async 'a wrong call is an error, and nothing is counted'({ make, failureOf, codeOf }) {
    const limiter = make({ maxInInterval: 4 });
    const named = make(NAMED);
    for (const [cost, type] of [
      ...[0, -1, 1.5, Number.NaN, Infinity, 2 ** 31].map((one) => [one, RangeError]),
      ...['1', 1n, null, {}, { tokens: 1 }].map((one) => [one, TypeError]),
    ]) {
      const error = await failureOf(() => limiter.record('a', { cost }));
      expect([cost, error.code]).toEqual([cost, 'ERR_ROLLGATE_COST']);
      expect(error).toBeInstanceOf(type);
    }
    for (const cost of [
      { tokens: 2 ** 31 },
      { tokens: -1 },
      { token: 1 },
      { requests: 0, tokens: 0 },
    ]) {
      expect(await codeOf(() => named.record('a', { cost }))).toBe('ERR_ROLLGATE_COST');
    }
    for (const options of [{ limits: 5 }, { costs: 1 }, 5, 'a']) {
      expect(await codeOf(() => limiter.record('a', options))).toBe('ERR_ROLLGATE_OPTION');
    }
    expect(await codeOf(() => limiter.record({}))).toBe('ERR_ROLLGATE_ID');
    expect([await usedOf(limiter), await usedOf(named)]).toEqual([[0], [0, 0]]);
    expect(limiter.stats()).toMatchObject({ recorded: 0 });
    await limiter.close();
    expect(await codeOf(() => limiter.record('a'))).toBe('ERR_ROLLGATE_CLOSED');
  },

  'sliding-window-log': {
    // Kills: places for the limiter's own maximum only.
    async 'a record pushes out nothing that a larger plan counts'({ make, at }) {
      const limiter = make({ maxInInterval: 4 });
      at(0);
      for (let i = 0; i < 10; i++) await limiter.attempt('a', { limits: 20 });
      at(SECOND);
      for (let i = 0; i < 10; i++) await limiter.record('a');
      expect(await limiter.usage('a', { limits: 20 })).toMatchObject({ used: 20 });
      expect(await limiter.attempt('a', { limits: 20 })).toMatchObject({ allowed: false });
      at(60 * SECOND);
      expect(await limiter.usage('a', { limits: 20 })).toMatchObject({ used: 10 });
    },

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

    async 'a log of names shows a true overdraft'({ make, at }) {
      at(0);
      const limiter = make(NAMED);
      await limiter.attempt('a', { cost: { tokens: 60 } });
      await limiter.record('a', { cost: { tokens: 90 } });
      at(30 * SECOND);
      await limiter.record('a', { cost: { requests: 0, tokens: 40 } });
      at(60 * SECOND);
      expect(await usedOf(limiter)).toEqual([0, 40]);
    },
  },
};
