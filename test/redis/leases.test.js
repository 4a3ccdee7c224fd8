// Leases: permits of an id on Redis that a limiter takes ahead and decides on without it.
'use strict';

const { LEASE, SECOND, leasesOnRedis } = require('../support/leases-on-redis');
const { waitUntil } = require('../support/outcome');
const { EACH_CLIENT, openings, published } = require('../support/redis-clients');
const { catchError } = require('../support/set-up');

const { server, later, group, withLease } = leasesOnRedis();

describe('the option lease', () => {
  test.each([
    ['below 50', { lease: 49 }, /'lease': expected an integer from 50 to 60000, got 49/],
    ['above 60,000', { lease: 60_001, interval: 120_000 }, /from 50 to 60000/],
    ['that is no number', { lease: '100' }, /from 50 to 60000/],
    ['above the shortest interval', { interval: 99 }, /at most the shortest interval, 99, got 100/],
    ['with another algorithm', { algorithm: 'gcra' }, /requires algorithm 'sliding-window-log'/],
    ['with counted refusals', { countBlocked: true }, /requires 'countBlocked: false'/],
    ['with the default', { countBlocked: undefined }, /requires 'countBlocked: false'/],
    ['with minDifference', { minDifference: 1 }, /conflicts with 'minDifference'/],
    ['with blockFor', { blockFor: 1 }, /conflicts with 'blockFor'/],
    ["with onError: 'memory'", { onError: 'memory' }, /conflicts with onError 'memory'/],
    ['with shared', { redis: undefined, namespace: undefined, shared: 'x' }, /requires 'redis'/],
  ])('is refused %s', (_how, more, message) => {
    const error = catchError(() => group().create(more));
    expect(error).toMatchObject({
      code: 'ERR_ROLLGATE_OPTION',
      message: expect.stringMatching(message),
    });
  });

  test('is without effect where redis is undefined', () => {
    const limiter = group().create({ redis: undefined });
    expect(limiter('a')).toBe(0);
    expect(limiter.stats().leases).toBeUndefined();
  });

  test('is the shortest interval at most, also of later limits', async () => {
    const limiter = group({ interval: LEASE }).create();
    const error = catchError(() => limiter.setLimits([{ interval: LEASE - 1, maxInInterval: 10 }]));
    expect(error).toMatchObject({ name: 'RangeError', code: 'ERR_ROLLGATE_OPTION' });
    expect((await limiter.usage('a')).limits[0].interval).toBe(LEASE);
  });

  test('leaves costs by name and limits for one call to others', async () => {
    const limits = [{ name: 'calls', interval: SECOND, maxInInterval: 10 }];
    const limiter = group({ limits, interval: undefined, maxInInterval: undefined }).create();
    for (const [options, code] of [
      [{ cost: { calls: 2 } }, 'ERR_ROLLGATE_COST'],
      [{ limits: { calls: 2 } }, 'ERR_ROLLGATE_OPTION'],
    ]) {
      await expect(limiter.attempt('a', options)).rejects.toMatchObject({ code });
    }
    expect((await limiter.attempt('a', { cost: 2 })).actionsLeft).toBe(8);
  });
});

describe.each(EACH_CLIENT)('over %s', (_name, open) => {
  const { using, closeAll } = openings();
  const openLeased = () => {
    later(closeAll);
    const redis = using(open(server.url));
    return withLease({ redis }).then((made) => ({ ...made, client: redis.client }));
  };

  test('an attempt on a lease ends in the same turn, and other processes see its permits as used', async () => {
    const { limiter, used } = await openLeased();
    const before = await used();
    let isDone = false;
    limiter('a').then(() => {
      isDone = true;
    });
    await Promise.resolve();
    await Promise.resolve();
    expect(isDone).toBe(true);
    expect(await used()).toBe(before);
    await limiter.close();
    expect(await used()).toBe(62);
  });

  test('what `close` gives back is sent before its client is closed', async () => {
    const { limiter, used, client } = await openLeased();
    const closed = limiter.close();
    await Promise.all([closed, (client?.close ?? client?.quit)?.call(client)]);
    expect(await used()).toBe(61);
  });
});

describe('leases', () => {
  const localOf = async (limiter, action) => {
    const before = limiter.stats().local;
    await action();
    return limiter.stats().local - before;
  };

  test('an id that is asked for seldom is as without the option', async () => {
    const { advance, create } = group();
    const limiter = create();
    const messages = await published('rollgate:redis', async () => {
      for (let i = 0; i < 30; i++) {
        expect(await limiter('a')).toBe(0);
        advance(60);
      }
    });
    expect(messages.filter(({ command }) => command === 'lease')).toEqual([]);
    expect(limiter.stats()).toMatchObject({ leases: 0, leased: 0, returned: 0, local: 0 });
  });

  test('decisions count on from one lease to the next, and reset with the oldest action', async () => {
    const { clock, advance, create } = group();
    const limiter = create();
    const begun = clock();
    for (let used = 1; used <= 200; used++) {
      const decision = await limiter.attempt('a');
      expect(decision).toMatchObject({ allowed: true, actionsLeft: 1000 - used });
      expect(decision.limits[0]).toMatchObject({ used, remaining: 1000 - used });
      const late = decision.resetIn - (SECOND - (clock() - begun));
      expect(late === 0 || late === 4).toBe(true); // by what passed before the answer to a request
      advance(4);
    }
    expect(limiter.stats().local).toBeGreaterThan(100);
  });

  test('a clock that steps back does not lose uses', async () => {
    const { advance, limiter, used } = await withLease();
    const local = await localOf(limiter, async () => {
      for (const step of [50, -40, 5, -10, 20]) {
        advance(step);
        for (let i = 0; i < 4; i++) await limiter('a');
      }
    });
    expect(local).toBe(20);
    advance(15);
    await limiter.close();
    expect(await used()).toBe(61 + 20);
  });

  test('a peek is decided here where the balance suffices; usage asks Redis', async () => {
    const { limiter } = await withLease();
    const peeked = await limiter.peek('a');
    const used = await limiter.usage('a');
    expect(peeked.limits[0].used).toBe(62);
    expect(used.used).toBeGreaterThan(62);
    expect((await limiter.peek('a', { cost: 900 })).limits[0].used).toBe(used.used + 900);
  });

  test('a refusal is remembered for its time left, a quarter of a lease at least', async () => {
    const { advance, create } = group({ maxInInterval: 700 });
    const limiter = create();
    let decision;
    do {
      decision = await limiter.attempt('a');
      advance(1);
    } while (decision.allowed);
    advance(decision.timeLeft - 3);
    await limiter.block('a', 0); // forgets the refusal
    decision = await limiter.attempt('a');
    expect(decision).toMatchObject({ allowed: false, timeLeft: LEASE / 4, resetIn: LEASE / 4 });
    advance(LEASE / 4 - 1);
    const repeated = await localOf(limiter, async () => {
      expect((await limiter.attempt('a')).timeLeft).toBe(1);
    });
    advance(1);
    expect([repeated, await limiter('a')]).toEqual([1, 0]);
  });

  describe('settling', () => {
    test('a refund while the lease is open gives its permit back', async () => {
      const { limiter, used } = await withLease();
      const decision = await limiter.attempt('a', { cost: 3 });
      expect(await limiter.refund(decision)).toBe(true);
      expect(await limiter.refund(decision)).toBe(false);
      await limiter.close();
      expect(await used()).toBe(61);
    });

    test('a settlement above what was reserved takes the balance, then an overdraft', async () => {
      const { limiter, used } = await withLease();
      const small = await limiter.attempt('a');
      expect(await limiter.settle(small, 3)).toBe(true);
      const large = await limiter.attempt('a');
      expect(await limiter.settle(large, 900)).toBe(true);
      expect(await used()).toBeGreaterThanOrEqual(61 + 3 + 900);
      await limiter.close();
      expect(await used()).toBe(61 + 3 + 900);
    });

    test('a refund after the end takes it from what the server has recorded', async () => {
      const { advance, limiter, used } = await withLease();
      const decision = await limiter.attempt('a', { cost: 3 });
      advance(LEASE);
      await limiter('b'); // another id does not settle it
      await limiter('a');
      const recorded = await used();
      expect(recorded).toBeGreaterThanOrEqual(65);
      expect(await limiter.refund(decision)).toBe(true);
      expect(await used()).toBe(recorded - 3);
    });

    test('a refund of what was too old to be recorded finds nothing', async () => {
      const { advance, limiter, plain, used } = await withLease({ interval: LEASE });
      const decision = await limiter.attempt('a', { cost: 5 });
      advance(1.5 * LEASE);
      await plain.attempt('a', { cost: 20 });
      await limiter('a');
      const before = await used();
      expect(await limiter.refund(decision)).toBe(false);
      expect(await used()).toBe(before);
    });

    test('a refund after `clear` finds nothing', async () => {
      const { limiter, used } = await withLease();
      const decision = await limiter.attempt('a');
      await limiter.clear('a');
      expect(await limiter.refund(decision)).toBe(false);
      await limiter.close();
      expect(await used()).toBe(0);
    });
  });

  test('`block` is at once here and for whoever asks Redis', async () => {
    const { limiter, plain, used } = await withLease();
    await limiter.block('a', 5000);
    expect(await limiter('a')).toBe(5000);
    expect(await plain('a')).toBe(5000);
    expect(await used()).toBe(61);
    await limiter.block('a', 0);
    expect(await limiter('a')).toBe(0);
  });

  test('`setLimits` leaves leases valid, and counts them', async () => {
    const { limiter } = await withLease();
    limiter.setLimits([{ interval: SECOND, maxInInterval: 62 }]);
    expect(await localOf(limiter, () => limiter('a'))).toBe(1);
    expect((await limiter.usage('a')).remaining).toBe(0);
  });

  test('`attemptMany` uses leases, and its decisions can be refunded', async () => {
    const { limiter } = await withLease();
    const local = await localOf(limiter, async () => {
      const decisions = await limiter.attemptMany(['a', 'b', 'a']);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true]);
      const refunds = await Promise.all(decisions.map((one) => limiter.refund(one)));
      expect(refunds).toEqual([true, true, true]);
    });
    expect(local).toBe(2);
  });

  test('an id beyond maxKeys gives its lease back', async () => {
    const { limiter, used } = await withLease({ maxKeys: 2 });
    await limiter('b');
    await limiter('c');
    await waitUntil('it is back', async () => (await used()) === 61);
    expect(limiter.stats().leases).toBe(0);
  });

  test('an attempt does not overtake one that waits', async () => {
    const { limiter } = await withLease();
    const ended = [];
    await Promise.all(
      [300, 1].map(async (cost) => {
        await limiter.attempt('a', { cost });
        ended.push(cost);
      }),
    );
    expect(ended).toEqual([300, 1]);
  });

  test('named limits count each permit in each window', async () => {
    const limits = [
      { name: 'second', interval: SECOND, maxInInterval: 200 },
      { name: 'minute', interval: 60_000, maxInInterval: 1000 },
    ];
    const replaced = { interval: undefined, maxInInterval: undefined };
    const { limiter, plain } = await withLease({ limits, ...replaced });
    const decision = await limiter.attempt('a', { cost: 2 });
    expect(decision.limits.map(({ used }) => used)).toEqual([63, 63]);
    await limiter.close();
    expect((await plain.usage('a')).limits.map(({ used }) => used)).toEqual([63, 63]);
  });
});
