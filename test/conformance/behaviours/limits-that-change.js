// Behaviours: setLimits, which changes the limits of a limiter that counts.
'use strict';

const SECOND = 1_000_000; // us
const MINUTE_MS = 60_000;

const minute = (maxInInterval, others) => [{ interval: MINUTE_MS, maxInInterval, ...others }];

module.exports = {
  // Kills: a promise; windows of the Decision, the usage or the highest cost that stay those of the options.
  async 'new limits apply from the next call on'({ make, failureOf }) {
    const limiter = make({ maxInInterval: 2 });
    expect(limiter.setLimits(minute(5))).toBe(undefined);
    const shown = { interval: MINUTE_MS, maxInInterval: 5 };
    expect((await limiter.usage('a')).limits).toMatchObject([{ ...shown, remaining: 5 }]);
    expect(await limiter.attempt('a', { cost: 3 })).toMatchObject({
      ...{ allowed: true, actionsLeft: 2, limits: [{ ...shown, used: 3 }] },
    });
    const [many] = await limiter.attemptMany(['b']);
    expect(many).toMatchObject({ actionsLeft: 4, limits: [shown] });
    const error = await failureOf(() => limiter.attempt('a', { cost: 6 }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_COST' });
    expect(error.message).toContain('from 1 to 5');
  },

  async 'minDifference is one of the limits'({ make, time }) {
    const limiter = make({ maxInInterval: 9 });
    limiter.setLimits(minute(9, { minDifference: 1000 }));
    await limiter.attempt('a');
    expect(await limiter.attempt('a')).toMatchObject({
      ...{ blockedBy: 'minDifference', timeLeft: 1000 },
    });
    time.advance(1000);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
    limiter.setLimits(minute(9));
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true });
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

  'sliding-window-log': {
    async 'a shorter interval lets go of older actions, a longer one counts those that are left'({
      make,
      at,
    }) {
      const limiter = make({ maxInInterval: 2 });
      at(0);
      await limiter.attempt('a', { cost: 2 });
      // [at this second, the interval, what an attempt is told]
      for (const [seconds, interval, expected] of [
        [40, 30_000, { allowed: true, actionsLeft: 1 }],
        [80, 50_000, { allowed: true, actionsLeft: 0 }],
        [89, 50_000, { allowed: false, timeLeft: 1000 }],
      ]) {
        at(seconds * SECOND);
        limiter.setLimits([{ interval, maxInInterval: 2 }]);
        expect(await limiter.attempt('a')).toMatchObject(expected);
      }
    },
  },
};
