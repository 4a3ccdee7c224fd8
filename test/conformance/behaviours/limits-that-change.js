// Behaviours: setLimits, which changes the limits of a limiter that counts.
'use strict';

const SECOND = 1_000_000; // us
const MINUTE_MS = 60_000;

const minute = (maxInInterval, others) => [{ interval: MINUTE_MS, maxInInterval, ...others }];

/** How many attempts in a row are allowed, at most `most`. */
async function admitted(limiter, most = 20) {
  for (let n = 0; n < most; n++) {
    const { allowed } = await limiter.attempt('a');
    if (!allowed) return n;
  }
  return most;
}

// Kills: a log that is cut to lower limits; counts that are.
const LOSES_NOTHING = {
  async 'lower limits in between lose nothing'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 4 });
    await limiter.attempt('a', { cost: 4 });
    for (const max of [1, 2]) {
      limiter.setLimits(minute(max));
      expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
    }
    limiter.setLimits(minute(6));
    expect(await admitted(limiter)).toBe(2);
  },
};

module.exports = {
  // Kills: a promise; windows of the Decision, the usage or the highest cost that stay those of the options.
  async 'new limits apply from the next call on'({ make, failureOf }) {
    const limiter = make({ maxInInterval: 2 });
    expect(limiter.setLimits(minute(5))).toBe(undefined);
    const shown = { interval: MINUTE_MS, maxInInterval: 5 };
    expect((await limiter.usage('a')).limits).toEqual([
      { ...shown, used: 0, remaining: 5, resetIn: 0 },
    ]);
    expect(await limiter.peek('a', { cost: 5 })).toMatchObject({ allowed: true });
    expect(await limiter.attempt('a', { cost: 3 })).toMatchObject({
      allowed: true,
      actionsLeft: 2,
      limits: [{ ...shown, used: 3, remaining: 2 }],
    });
    const [many] = await limiter.attemptMany(['b']);
    expect(many).toMatchObject({ actionsLeft: 4, limits: [shown] });
    const error = await failureOf(() => limiter.attempt('a', { cost: 6 }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_COST' });
    expect(error.message).toContain('from 1 to 5');
  },

  async 'new limits count from zero what was never counted'({ make }) {
    const limiter = make({ maxInInterval: 2 });
    await limiter.attempt('b');
    limiter.setLimits(minute(4));
    expect(await admitted(limiter)).toBe(4);
  },

  async 'what was counted stays: lower limits refuse, until the old actions have left'(suite) {
    const { make, at, fullFor } = suite;
    const limiter = make({ maxInInterval: 4 });
    at(0);
    await limiter.attempt('a', { cost: 3 });
    limiter.setLimits(minute(2));
    expect(await limiter.attempt('a')).toMatchObject({
      allowed: false,
      blockedBy: 'count',
      actionsLeft: 0,
      limits: [{ maxInInterval: 2, remaining: 0 }],
    });
    expect(await limiter.usage('a')).toMatchObject({ allowed: false, remaining: 0 });
    at(2 * fullFor(1));
    expect(await limiter.attempt('a', { cost: 2 })).toMatchObject({ allowed: true });
  },

  async 'refused until timeLeft and allowed exactly at it, under lower limits as well'(suite) {
    const { make, time } = suite;
    const limiter = make({ maxInInterval: 9 });
    for (const cost of [2, 3, 1]) {
      await limiter.attempt('a', { cost });
      time.advance(5000);
    }
    limiter.setLimits(minute(3));
    const { allowed, timeLeft } = await limiter.attempt('a');
    expect(allowed).toBe(false);
    time.advance(timeLeft - 1);
    expect(await limiter.peek('a')).toMatchObject({ allowed: false, timeLeft: 1 });
    time.advance(1);
    expect(await limiter.peek('a')).toMatchObject({ allowed: true });
  },

  async 'what was counted stays: higher limits admit the difference'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 2 });
    expect(await admitted(limiter)).toBe(2);
    limiter.setLimits(minute(5));
    expect(await admitted(limiter)).toBe(3);
    limiter.setLimits(minute(6));
    expect(await admitted(limiter)).toBe(1);
  },

  async 'an attempt from before can be refunded'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 3 });
    const decision = await limiter.attempt('a', { cost: 2 });
    limiter.setLimits(minute(4));
    expect(await limiter.refund(decision)).toBe(true);
    expect(await admitted(limiter)).toBe(4);
  },

  async 'several limits keep their order'({ make, at }) {
    at(0);
    const limits = (short, long) => [
      { interval: MINUTE_MS, maxInInterval: short },
      { interval: 600_000, maxInInterval: long },
    ];
    const limiter = make({ limits: limits(2, 3) });
    expect(await admitted(limiter)).toBe(2);
    limiter.setLimits(limits(9, 3));
    expect(await admitted(limiter)).toBe(1);
    limiter.setLimits(limits(9, 5));
    expect(await admitted(limiter)).toBe(2);
    limiter.setLimits(limits(6, 9));
    const { limits: shown } = await limiter.attempt('a');
    expect(shown).toMatchObject([{ maxInInterval: 6, remaining: 0 }, { maxInInterval: 9 }]);
  },

  async 'named limits keep what each has counted'({ make, at }) {
    at(0);
    const limits = (requests, tokens) => [
      { name: 'requests', interval: MINUTE_MS, maxInInterval: requests },
      { name: 'tokens', interval: MINUTE_MS, maxInInterval: tokens },
    ];
    const limiter = make({ limits: limits(3, 100) });
    const first = await limiter.attempt('a', { cost: { tokens: 80 } });
    limiter.setLimits(limits(3, 90));
    expect(await limiter.attempt('a', { cost: { tokens: 20 } })).toMatchObject({ allowed: false });
    expect(await limiter.attempt('a', { cost: { tokens: 0 } })).toMatchObject({ allowed: true });
    limiter.setLimits(limits(2, 1000));
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
    limiter.setLimits(limits(9, 1000));
    expect(await limiter.settle(first, { tokens: 500 })).toBe(true);
    expect(await limiter.attempt('a', { cost: { tokens: 501 } })).toMatchObject({ allowed: false });
    expect(await limiter.attempt('a', { cost: { tokens: 400 } })).toMatchObject({ allowed: true });
  },

  async 'minDifference is one of the limits'({ make, time }) {
    const limiter = make({ maxInInterval: 9 });
    limiter.setLimits(minute(9, { minDifference: 1000 }));
    await limiter.attempt('a');
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'minDifference',
      timeLeft: 1000,
    });
    time.advance(1000);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
    limiter.setLimits(minute(9));
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
  },

  async 'blockFor stays, and so does a block'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 1, blockFor: 100_000 });
    await limiter.attempt('a');
    await limiter.attempt('a');
    limiter.setLimits(minute(9));
    at(SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 99_000 });
    at(100 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
    await limiter.block('a', 50_000);
    limiter.setLimits(minute(8));
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'block', timeLeft: 50_000 });
  },

  async 'waiting calls use the room of higher limits'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 1 });
    await limiter.attempt('a');
    const waiting = [limiter.wait('a'), limiter.wait('a'), limiter.wait('a')];
    limiter.setLimits(minute(3));
    expect(await waiting[0]).toMatchObject({ allowed: true });
    expect(await waiting[1]).toMatchObject({ allowed: true, actionsLeft: 0 });
    limiter.setLimits(minute(4));
    expect(await waiting[2]).toMatchObject({ allowed: true, limits: [{ maxInInterval: 4 }] });
    expect(limiter.stats()).toMatchObject({ allowed: 4, blocked: 0 });
  },

  async 'a waiting call that can never pass is rejected, and the others go on'({ make, at }) {
    at(0);
    const limiter = make({ maxInInterval: 4 });
    await limiter.attempt('a', { cost: 4 });
    const large = limiter.wait('a', { cost: 3 });
    const small = limiter.wait('a', { cost: 1 });
    const rejected = expect(large).rejects.toMatchObject({ code: 'ERR_ROLLGATE_COST' });
    limiter.setLimits(minute(2));
    await rejected;
    await limiter.clear('a');
    expect(await small).toMatchObject({ allowed: true, actionsLeft: 1 });
  },

  async 'a wrong call is an error, and nothing changes'({ make, failureOf }) {
    const limiter = make({ maxInInterval: 2 });
    for (const limits of [
      undefined,
      minute(5)[0],
      [],
      minute(0),
      minute(5, { name: 'tokens' }),
      [...minute(5), ...minute(6)],
    ]) {
      const error = await failureOf(() => limiter.setLimits(limits));
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    }
    expect(await admitted(limiter)).toBe(2);
    await limiter.close();
    const error = await failureOf(() => limiter.setLimits(minute(5)));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_CLOSED' });
  },

  'sliding-window-counter': LOSES_NOTHING,
  'fixed-window': LOSES_NOTHING,

  'sliding-window-log': {
    ...LOSES_NOTHING,

    async 'a shorter interval lets go of older actions, a longer one counts those that are left'({
      make,
      at,
    }) {
      const limiter = make({ maxInInterval: 2 });
      at(0);
      await limiter.attempt('a', { cost: 2 });
      at(40 * SECOND);
      limiter.setLimits([{ interval: 30_000, maxInInterval: 2 }]);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
      at(80 * SECOND);
      limiter.setLimits([{ interval: 50_000, maxInInterval: 2 }]);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
      at(89 * SECOND);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: false, timeLeft: 1000 });
    },
  },
};
