// Behaviours: limits for one call, such as those of a customer's plan.
'use strict';

const RateLimiter = require('../../..');
const { NAMED, admitted, usedOf } = require('../usage');

const MINUTE_MS = 60_000;

module.exports = {
  // Kills: a maximum of the limiter in a decision, its limits, a peek or a usage; limits that stay for the next call.
  async 'limits of a call decide it, and nothing else'({ make }) {
    const limiter = make({ maxInInterval: 2 });
    const shown = { interval: MINUTE_MS, maxInInterval: 5 };
    expect(await limiter.attempt('a', { limits: 5, cost: 4 })).toMatchObject({
      ...{ allowed: true, actionsLeft: 1 },
      limits: [{ ...shown, used: 4, remaining: 1 }],
    });
    expect(await limiter.peek('a', { limits: 5 })).toMatchObject({
      ...{ allowed: true, limits: [{ ...shown, remaining: 0 }] },
    });
    expect(await limiter.usage('a', { limits: 5 })).toMatchObject({
      ...{ allowed: true, limits: [{ ...shown, used: 4, remaining: 1 }] },
    });
    expect(await limiter.usage('a')).toMatchObject({
      ...{ allowed: false, used: 4, remaining: 0, limits: [{ maxInInterval: 2, used: 4 }] },
    });
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', actionsLeft: 0 });
    expect(await limiter.attempt('b', { limits: 1 })).toMatchObject({ allowed: true });
    expect(await limiter('b')).toBe(0);
  },

  async 'a limit of 0 refuses with the longest window, one below the cost for ever'({ make }) {
    const limiter = make(NAMED);
    const attempt = (limits, cost) => limiter.attempt('a', { limits, cost });
    const closed = { allowed: false, blockedBy: 'count', timeLeft: 600_000, resetIn: 600_000 };
    expect(await attempt({ requests: 0 })).toMatchObject({ ...closed, actionsLeft: 0 });
    expect(await attempt({ tokens: -0 }, { tokens: 1 })).toMatchObject(closed);
    // Nothing is asked of it.
    expect(await attempt({ tokens: 0 }, { tokens: 0 })).toMatchObject({ allowed: true });
    const never = { allowed: false, blockedBy: 'count', timeLeft: Infinity };
    expect(await attempt({ tokens: 7, requests: 0 }, { tokens: 8 })).toMatchObject(never);
    expect(await attempt({ tokens: 7 }, { tokens: 2 ** 40 })).toMatchObject(never);
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 4 });
  },

  // Kills: a state that is read in the units of the reader's limit.
  async 'limiters that count together agree on what is used, whatever their limits'(suite) {
    const { makeTogether, at } = suite;
    at(0);
    const [small, large] = makeTogether({ maxInInterval: 4 }, { maxInInterval: 20 });
    if (small === undefined) return;
    await small.attempt('a', { cost: 3 });
    const decision = await large.attempt('a', { cost: 5 });
    expect(decision).toMatchObject({ allowed: true, actionsLeft: 12 });
    expect(await small.attempt('a')).toMatchObject({ allowed: false });
    expect([await usedOf(small), await usedOf(large)]).toEqual([[8], [8]]);
    expect(await small.attempt('a', { limits: 10, cost: 2 })).toMatchObject({ allowed: true });
    expect(await large.attempt('a', { limits: 10 })).toMatchObject({ allowed: false });
    expect(await large.refund(decision)).toBe(true);
    expect([await usedOf(small), await usedOf(large)]).toEqual([[5], [5]]);
  },

  async 'a call waits under its own limits'({ make, codeOf, at }) {
    at(0);
    const limiter = make({ maxInInterval: 1 });
    await limiter.attempt('a');
    expect(await limiter.wait('a', { limits: 2 })).toMatchObject({
      ...{ allowed: true, actionsLeft: 0, limits: [{ maxInInterval: 2 }] },
    });
    for (const options of [{ limits: 0 }, { limits: 2, cost: 3 }]) {
      expect(await codeOf(() => limiter.wait('a', options))).toBe('ERR_ROLLGATE_COST');
    }
    const waiting = limiter.wait('a', { limits: 2 });
    await limiter.clear('a');
    expect(await waiting).toMatchObject({ allowed: true, actionsLeft: 1 });
  },

  // Kills: limits of one entry that apply to another, or to a refund of the attempt.
  async 'entries of attemptAll may have limits'({ make }) {
    const user = make({ maxInInterval: 1 });
    const organisation = make({ maxInInterval: 2 });
    const attempt = (limits) =>
      RateLimiter.attemptAll([
        { limiter: user, id: 'ada', limits },
        { limiter: organisation, id: 'acme', limits: 4 },
      ]);
    for (let i = 0; i < 2; i++) expect(await attempt(3)).toMatchObject({ allowed: true });
    for (const limits of [undefined, 0]) {
      expect(await attempt(limits)).toMatchObject({ allowed: false, refusedBy: 0 });
    }
    expect((await attempt(3)).decisions).toMatchObject([
      { actionsLeft: 0, limits: [{ maxInInterval: 3 }] },
      { actionsLeft: 1, limits: [{ maxInInterval: 4 }] },
    ]);
    expect([await usedOf(user, 'ada'), await usedOf(organisation, 'acme')]).toEqual([[3], [3]]);
  },

  'sliding-window-log': {
    // Kills: a settlement that pushes out what a larger plan counts.
    async 'an attempt under a larger plan may come to more than it reserved'({ make, at }) {
      const limiter = make({ maxInInterval: 4 });
      at(0);
      const many = [];
      for (let i = 0; i < 8; i++) many.push(await limiter.attempt('a', { limits: 20 }));
      expect(await limiter.settle(many[3], 9)).toBe(true);
      expect(await limiter.usage('a', { limits: 20 })).toMatchObject({ used: 16, remaining: 4 });
      expect(await admitted(limiter, 20, 20)).toBe(4);
    },
  },
};
