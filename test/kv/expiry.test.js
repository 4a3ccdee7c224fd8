// How long stores are told to keep what is known of an id.
'use strict';

const { createPlainKv } = require('../support/kv-stores');
const { limiterOver } = require('../support/limiter-over-kv');

describe('expiry', () => {
  test('is passed to set with every write: as long as the state can matter, and a second', async () => {
    const kv = createPlainKv();
    const limiter = limiterOver(kv, { interval: 5000.5 });
    await limiter('a');
    const decision = await limiter.attempt('a');
    await limiter.refund(decision);
    for (const ttlMs of kv.ttls) {
      expect(Number.isInteger(ttlMs)).toBe(true);
      expect(ttlMs).toBeGreaterThanOrEqual(6001);
      expect(ttlMs).toBeLessThanOrEqual(6002);
    }
    expect(kv.ttls).toHaveLength(3);
  });

  test('is that of the longest window or minDifference', async () => {
    const kv = createPlainKv();
    const limits = [
      { interval: 10, maxInInterval: 1 },
      { interval: 1000, maxInInterval: 10, minDifference: 7000 },
    ];
    await limiterOver(kv, { limits })('a');
    expect(kv.ttls[0]).toBe(8000);
  });

  test.each([
    ['sliding-window-log', 1],
    ['sliding-window-counter', 2],
    ['fixed-window', 1],
    ['gcra', 1],
  ])(
    'is that of %s: %i windows, and longer after a clock stepped back',
    async (algorithm, windows) => {
      const kv = createPlainKv();
      let now = 1_000_000_000;
      const clock = () => now;
      const limiter = limiterOver(kv, { algorithm, interval: 10_000, maxInInterval: 2, clock });
      await limiter('a');
      now -= 3_600_000;
      await limiter('a');
      const [usual, ...longer] = kv.ttls;
      expect(usual).toBeLessThanOrEqual(windows * 10_000 + 1000);
      expect(usual).toBeGreaterThan(windows * 10_000 - 5001);
      // An arrival time that is an hour ahead lets nobody pass, and nothing was written.
      if (algorithm === 'gcra') expect(longer).toEqual([]);
      else expect(longer).toEqual([usual + 3_600_000]);
    },
  );

  test('has a bound that stores can add to the time of day', async () => {
    const kv = createPlainKv();
    await limiterOver(kv, { interval: Number.MAX_VALUE })('a');
    expect(new Date(Date.now() + kv.ttls[0]).getFullYear()).toBeGreaterThan(2100);
  });

  test('an id that expired begins anew', async () => {
    let now = 0;
    const kv = createPlainKv({ now: () => now });
    const limiter = limiterOver(kv, { interval: 1000, clock: () => now });
    const decision = await limiter.attempt('a');
    now += 60_000;
    await limiter('a');
    expect(kv.entries.size).toBe(1);
    expect(await limiter.refund(decision)).toBe(false);
  });
});
