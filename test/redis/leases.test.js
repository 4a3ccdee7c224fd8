// Leases: permits of an id on Redis that a limiter takes ahead and decides on without it.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const RateLimiter = require('../..');
const { gatedClient } = require('../support/gated-client');
const { waitUntil } = require('../support/outcome');
const { EACH_CLIENT, openings, redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { catchError, handClock } = require('../support/set-up');
const { randomFrom } = require('../support/traces');
const { patient } = require('../support/tiers');

const LEASE = 100;
const SECOND = 1000;
const GUARD = 1000;
let server;
let namespaces = 0;

beforeAll(async () => {
  server = await startRedis();
});

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the option lease', () => {
  const base = { interval: SECOND, maxInInterval: 10, countBlocked: false, lease: LEASE };
  const create = (more) => () => new RateLimiter({ redis: redisAt(server.url), ...base, ...more });

  test.each([
    ['below 50', { lease: 49 }, /'lease': expected an integer from 50 to 60000, got 49/],
    ['above 60,000', { lease: 60_001, interval: 120_000 }, /from 50 to 60000/],
    ['that is no number', { lease: '100' }, /from 50 to 60000/],
    ['above the shortest interval', { interval: 99 }, /at most the shortest interval, 99, got 100/],
    ['with another algorithm', { algorithm: 'gcra' }, /requires algorithm 'sliding-window-log'/],
    ['with counted refusals', { countBlocked: true }, /requires 'countBlocked: false'/],
    ['with minDifference', { minDifference: 1 }, /conflicts with 'minDifference'/],
    ['with blockFor', { blockFor: 1 }, /conflicts with 'blockFor'/],
    ["with onError: 'memory'", { onError: 'memory' }, /conflicts with onError 'memory'/],
    ['with shared', { redis: undefined, shared: 'leases' }, /'lease': requires 'redis'/],
  ])('is refused %s', (_how, more, message) => {
    const error = catchError(create(more));
    expect(error).toMatchObject({
      code: 'ERR_ROLLGATE_OPTION',
      message: expect.stringMatching(message),
    });
  });

  test('is without effect where redis is undefined', () => {
    const limiter = new RateLimiter({ ...base, redis: undefined });
    expect(limiter('a')).toBe(0);
    expect(limiter.stats().leases).toBeUndefined();
  });

  test('is the shortest interval at most, also of later limits', async () => {
    const limiter = create({ interval: LEASE })();
    const error = catchError(() => limiter.setLimits([{ interval: LEASE - 1, maxInInterval: 10 }]));
    expect(error).toMatchObject({ name: 'RangeError', code: 'ERR_ROLLGATE_OPTION' });
    expect((await limiter.usage('a')).limits[0].interval).toBe(LEASE);
    await limiter.close();
  });

  test('leaves costs by name and limits for one call to others', async () => {
    const limits = [{ name: 'calls', interval: SECOND, maxInInterval: 10 }];
    const limiter = new RateLimiter({
      redis: redisAt(server.url),
      countBlocked: false,
      lease: LEASE,
      limits,
    });
    await expect(limiter.attempt('a', { cost: { calls: 2 } })).rejects.toMatchObject({
      code: 'ERR_ROLLGATE_COST',
    });
    await expect(limiter.attempt('a', { limits: { calls: 2 } })).rejects.toMatchObject({
      code: 'ERR_ROLLGATE_OPTION',
    });
    expect(await limiter.attempt('a', { cost: 2 })).toMatchObject({
      allowed: true,
      actionsLeft: 8,
    });
    await limiter.close();
  });
});

describe.each(EACH_CLIENT)('leases over %s', (_name, open) => {
  const { using, closeAll } = openings();
  const limiters = [];
  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
    await closeAll();
  });

  /** Limiters on one namespace and one clock, which moves by hand. */
  function group(options = {}) {
    namespaces += 1;
    const { clock: read, advance } = handClock();
    const clock = Object.assign(() => read(), { advance });
    const create = (more) => {
      const redis = using(open(server.url));
      const limiter = new RateLimiter({
        interval: SECOND,
        maxInInterval: 1000,
        countBlocked: false,
        lease: LEASE,
        namespace: `leases-${namespaces}`,
        clock,
        redis,
        ...options,
        ...more,
      });
      limiters.push(limiter);
      return limiter;
    };
    return { clock, create };
  }

  /** Asks for an id until its rate is known, and has a lease with room. */
  async function warm(clock, limiter, id = 'a') {
    for (let i = 0; i < 60; i++) {
      await limiter(id);
      clock.advance(4);
    }
    clock.advance(LEASE);
    await limiter(id); // settles what it has, and gets a new lease
    expect(limiter.stats()).toMatchObject({ leases: 1 });
  }

  const localOf = async (limiter, action) => {
    const before = limiter.stats().local;
    await action();
    return limiter.stats().local - before;
  };

  test('an id that is asked for seldom is as without the option', async () => {
    const { clock, create } = group();
    const limiter = create();
    const commands = [];
    const note = ({ command }) => commands.push(command);
    diagnostics.subscribe('rollgate:redis', note);
    for (let i = 0; i < 30; i++) {
      expect(await limiter('a')).toBe(0);
      clock.advance(60);
    }
    diagnostics.unsubscribe('rollgate:redis', note);
    expect(commands.filter((command) => command === 'lease')).toEqual([]);
    expect(limiter.stats()).toMatchObject({ leases: 0, leased: 0, returned: 0, local: 0 });
  });

  test('an attempt on a lease ends in the same turn, and other processes see its permits as used', async () => {
    const { clock, create } = group();
    const [limiter, plain] = [create(), create({ lease: undefined })];
    await warm(clock, limiter);
    const before = (await plain.usage('a')).used;
    let isDone = false;
    limiter('a').then(() => {
      isDone = true;
    });
    await Promise.resolve();
    await Promise.resolve();
    expect(isDone).toBe(true);
    expect((await plain.usage('a')).used).toBe(before);
    await limiter.close();
    expect((await plain.usage('a')).used).toBe(62);
    expect(limiters[1].stats().leases).toBeUndefined();
  });

  test('a decision on a lease shows the usage, with the own balance as remaining', async () => {
    const { clock, create } = group();
    const limiter = create();
    await warm(clock, limiter);
    const first = await limiter.attempt('a');
    const second = await limiter.attempt('a', { cost: 2 });
    expect(first).toMatchObject({ allowed: true, timeLeft: 0, blockedBy: null });
    expect(first.limits[0]).toMatchObject({ maxInInterval: 1000, used: 62, remaining: 938 });
    expect(second.actionsLeft).toBe(first.actionsLeft - 2);
    expect(second.limits[0].used).toBe(64);
  });

  test('decisions count on from one lease to the next, and reset with the oldest action', async () => {
    const { clock, create } = group();
    const limiter = create();
    const begun = clock();
    for (let used = 1; used <= 200; used++) {
      const decision = await limiter.attempt('a');
      expect(decision).toMatchObject({ allowed: true, actionsLeft: 1000 - used });
      expect(decision.limits[0]).toMatchObject({ used, remaining: 1000 - used });
      const late = decision.resetIn - (SECOND - (clock() - begun));
      expect(late === 0 || late === 4).toBe(true); // by what passed before the answer to a request
      clock.advance(4);
    }
    expect(limiter.stats().local).toBeGreaterThan(100);
  });

  test('a clock that steps back does not lose uses', async () => {
    const { clock, create } = group();
    const [limiter, plain] = [create(), create({ lease: undefined })];
    await warm(clock, limiter);
    const local = await localOf(limiter, async () => {
      for (const step of [50, -40, 5, -10, 20]) {
        clock.advance(step);
        for (let i = 0; i < 4; i++) await limiter('a');
      }
    });
    expect(local).toBe(20);
    clock.advance(15);
    await limiter.close();
    expect((await plain.usage('a')).used).toBe(61 + 20);
  });

  test('a peek is decided here where the balance suffices; usage asks Redis', async () => {
    const { clock, create } = group();
    const limiter = create();
    await warm(clock, limiter);
    const peeked = await limiter.peek('a');
    const used = await limiter.usage('a');
    expect(peeked.limits[0].used).toBe(62);
    expect(used.used).toBeGreaterThan(62);
    expect((await limiter.peek('a', { cost: 900 })).limits[0].used).toBe(used.used + 900);
  });

  test('never more than the limit, on random traces of two processes and one without leases', async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const random = randomFrom(seed);
      const max = random.pick([12, 60, 300]);
      const { clock, create } = group({ maxInInterval: max });
      const all = [create(), create(), create({ lease: undefined })];
      const allowed = [];
      for (let step = 0; step < 300; step++) {
        clock.advance(random.pick([0, 0, 1, 1, 2, 3, random.chance(5) ? 150 : 1]));
        const cost = random.chance(80) ? 1 : random.between(1, 5);
        const calls = Array.from({ length: random.between(1, 3) }, async () => {
          const limiter = random.pick(all);
          const decision = await limiter.attempt('a', { cost });
          if (decision.allowed) allowed.push({ at: clock(), cost });
          if (!decision.allowed) expect(decision.timeLeft).toBeGreaterThan(0);
        });
        await Promise.all(calls);
        const recent = allowed.filter(({ at }) => clock() - at < SECOND);
        const used = recent.reduce((sum, one) => sum + one.cost, 0);
        if (used > max) throw new Error(`seed ${seed}, step ${step}: ${used} of ${max}`);
      }
      expect(all[0].stats().local + all[1].stats().local).toBeGreaterThan(0);
    }
  });

  test('what a lease did not use comes back with its settlement, what a lost process took after the guard', async () => {
    const { clock, create } = group({ maxInInterval: 100 });
    const [limiter, other] = [create(), create({ lease: undefined })];
    await warm(clock, limiter);
    const { leased, returned } = limiter.stats();
    const lost = leased - returned;
    expect(lost).toBeGreaterThan(0);
    const settled = await localOf(limiter, () => limiter('a'));
    expect(settled).toBe(1);
    clock.advance(SECOND + LEASE + GUARD - 1 - 4);
    expect((await other.usage('a')).used).toBeGreaterThan(0);
    clock.advance(5 + 4);
    expect((await other.usage('a')).used).toBe(0);
  });

  test('a refusal is remembered for its time left, a quarter of a lease at least', async () => {
    const { clock, create } = group({ maxInInterval: 700 });
    const limiter = create();
    let decision;
    do {
      decision = await limiter.attempt('a');
      clock.advance(1);
    } while (decision.allowed);
    clock.advance(decision.timeLeft - 3);
    await limiter.block('a', 0); // forgets the refusal
    decision = await limiter.attempt('a');
    expect(decision).toMatchObject({ allowed: false, timeLeft: LEASE / 4, resetIn: LEASE / 4 });
    clock.advance(LEASE / 4 - 1);
    const repeated = await localOf(limiter, async () => {
      expect((await limiter.attempt('a')).timeLeft).toBe(1);
    });
    clock.advance(1);
    expect([repeated, await limiter('a')]).toEqual([1, 0]);
  });

  describe('settling', () => {
    async function withLease(options) {
      const { clock, create } = group(options);
      const [limiter, plain] = [create(), create({ lease: undefined })];
      await warm(clock, limiter);
      const usedWhenClosed = async () => {
        await limiter.close();
        return (await plain.usage('a')).used;
      };
      return { clock, limiter, plain, usedWhenClosed };
    }

    test('a refund while the lease is open gives its permit back', async () => {
      const { limiter, usedWhenClosed } = await withLease();
      const decision = await limiter.attempt('a', { cost: 3 });
      expect(await limiter.refund(decision)).toBe(true);
      expect(await limiter.refund(decision)).toBe(false);
      expect(await usedWhenClosed()).toBe(61);
    });

    test('a settlement above what was reserved takes the balance, then an overdraft', async () => {
      const { limiter, plain, usedWhenClosed } = await withLease();
      const small = await limiter.attempt('a');
      expect(await limiter.settle(small, 3)).toBe(true);
      const large = await limiter.attempt('a');
      expect(await limiter.settle(large, 900)).toBe(true);
      expect((await plain.usage('a')).used).toBeGreaterThanOrEqual(61 + 3 + 900);
      expect(await usedWhenClosed()).toBe(61 + 3 + 900);
    });

    test('a refund after the end takes it from what the server has recorded', async () => {
      const { clock, limiter, plain } = await withLease();
      const decision = await limiter.attempt('a', { cost: 3 });
      clock.advance(LEASE);
      await limiter('b'); // another id does not settle it
      await limiter('a');
      expect((await plain.usage('a')).used).toBeGreaterThanOrEqual(65);
      const used = (await plain.usage('a')).used;
      expect(await limiter.refund(decision)).toBe(true);
      expect((await plain.usage('a')).used).toBe(used - 3);
    });

    test('a refund of what was too old to be recorded finds nothing', async () => {
      const { clock, limiter, plain } = await withLease({ interval: LEASE });
      const decision = await limiter.attempt('a', { cost: 5 });
      clock.advance(1.5 * LEASE);
      await plain.attempt('a', { cost: 20 });
      await limiter('a');
      const { used } = await plain.usage('a');
      expect(await limiter.refund(decision)).toBe(false);
      expect((await plain.usage('a')).used).toBe(used);
    });

    test('a refund after `clear` finds nothing', async () => {
      const { limiter, usedWhenClosed } = await withLease();
      const decision = await limiter.attempt('a');
      await limiter.clear('a');
      expect(await limiter.refund(decision)).toBe(false);
      expect(await usedWhenClosed()).toBe(0);
    });
  });

  test('`block` is at once here and for whoever asks Redis', async () => {
    const { clock, create } = group();
    const [limiter, plain] = [create(), create({ lease: undefined })];
    await warm(clock, limiter);
    await limiter.block('a', 5000);
    expect(await limiter('a')).toBe(5000);
    expect(await plain('a')).toBe(5000);
    expect((await plain.usage('a')).used).toBe(61);
    await limiter.block('a', 0);
    expect(await limiter('a')).toBe(0);
  });

  test('`setLimits` leaves leases valid, and counts them', async () => {
    const { clock, create } = group();
    const limiter = create();
    await warm(clock, limiter);
    limiter.setLimits([{ interval: SECOND, maxInInterval: 62 }]);
    expect(await localOf(limiter, () => limiter('a'))).toBe(1);
    expect((await limiter.usage('a')).remaining).toBe(0);
  });

  test('`attemptMany` uses leases, and its decisions can be refunded', async () => {
    const { clock, create } = group();
    const limiter = create();
    await warm(clock, limiter);
    const local = await localOf(limiter, async () => {
      const decisions = await limiter.attemptMany(['a', 'b', 'a']);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true]);
      expect(await Promise.all(decisions.map((one) => limiter.refund(one)))).toEqual([
        true,
        true,
        true,
      ]);
    });
    expect(local).toBe(2);
  });

  test('an id beyond maxKeys gives its lease back', async () => {
    const { clock, create } = group({ maxKeys: 2 });
    const [limiter, plain] = [create(), create({ lease: undefined })];
    await warm(clock, limiter);
    await limiter('b');
    await limiter('c');
    await waitUntil('it is back', async () => (await plain.usage('a')).used === 61);
    expect(limiter.stats().leases).toBe(0);
  });

  test('`close` fails what waits and gives all back', async () => {
    const { clock, create } = group();
    const [limiter, plain] = [create(), create({ lease: undefined })];
    await warm(clock, limiter);
    clock.advance(LEASE);
    const pending = limiter('a').catch((error) => error.code);
    await turn();
    await limiter.close();
    expect([0, 'ERR_ROLLGATE_CLOSED']).toContain(await pending);
    expect((await plain.usage('a')).used).toBeLessThanOrEqual(62);
  });

  test('an attempt does not overtake one that waits', async () => {
    const { clock, create } = group();
    const limiter = create();
    await warm(clock, limiter);
    const ended = [];
    await Promise.all(
      [300, 1].map(async (cost) => {
        await limiter.attempt('a', { cost });
        ended.push(cost);
      }),
    );
    expect(ended).toEqual([300, 1]);
  });

  test('what `close` gives back is sent before its client is closed', async () => {
    const { clock, create } = group();
    const redis = open(server.url);
    if (redis.client === undefined) return;
    const [limiter, plain] = [create({ redis }), create({ lease: undefined })];
    await warm(clock, limiter);
    const closed = limiter.close();
    const quitted = (redis.client.close ?? redis.client.quit).call(redis.client);
    await Promise.all([closed, quitted]);
    expect((await plain.usage('a')).used).toBe(61);
  });

  test('named limits count each permit in each window', async () => {
    const limits = [
      { name: 'second', interval: SECOND, maxInInterval: 200 },
      { name: 'minute', interval: 60_000, maxInInterval: 1000 },
    ];
    const { clock, create } = group({ limits, interval: undefined, maxInInterval: undefined });
    const [limiter, plain] = [create(), create({ lease: undefined })];
    await warm(clock, limiter);
    const decision = await limiter.attempt('a', { cost: 2 });
    expect(decision.limits.map(({ used }) => used)).toEqual([63, 63]);
    await limiter.close();
    expect((await plain.usage('a')).limits.map(({ used }) => used)).toEqual([63, 63]);
  });
});

describe('while Redis does not answer', () => {
  const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
  const opened = [];
  afterEach(async () => {
    for (const { limiter, plain, gated } of opened.splice(0)) {
      gated.mend();
      await Promise.all([limiter.close(), plain.close()]);
      gated.close();
    }
  });

  /** A limiter with a lease of 'a' over a client that can be held up, and one without leases. */
  async function gatedLimiter({ commandTimeout = patient(300), maxQueue, ...options } = {}) {
    namespaces += 1;
    const gated = await gatedClient(server.url);
    const { clock, advance } = handClock();
    const common = {
      interval: SECOND,
      maxInInterval: 1000,
      countBlocked: false,
      namespace: `leases-${namespaces}`,
      clock,
      ...options,
    };
    const redis = { client: gated.client, commandTimeout, maxQueue };
    const limiter = new RateLimiter({ ...common, lease: LEASE, redis });
    const plain = new RateLimiter({ ...common, redis: redisAt(server.url) });
    const made = { limiter, plain, gated, advance };
    opened.push(made);
    for (let i = 0; i < 60; i++) {
      await limiter('a');
      advance(4);
    }
    advance(LEASE);
    await limiter('a');
    return made;
  }

  const codeOf = (promise) => promise.then(Object, ({ code }) => code);
  /** What is sent arrives, but no answer comes back. */
  const loseAnswers = (gated) => {
    gated.gate = (args, send) => {
      send(args).catch(() => {});
      return new Promise(() => {});
    };
  };

  test('an open lease decides until it ends', async () => {
    const { limiter, gated, advance } = await gatedLimiter();
    gated.cut();
    expect(await limiter('a')).toBe(0);
    advance((LEASE * 7) / 8 - 1);
    expect(await limiter('a')).toBe(0);
    advance(1);
    await expect(limiter('a')).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_ROLLGATE/),
    });
  });

  test('the end of a lease is followed by onError', async () => {
    const { limiter, gated, advance } = await gatedLimiter({ onError: 'allow' });
    gated.cut();
    advance(LEASE);
    expect(await limiter('a')).toBe(0);
    expect(limiter.stats().fallbacks).toBe(1);
  });

  test('a lease whose grant was lost is given back by the next request, its uses are forgotten', async () => {
    const { limiter, plain, gated, advance } = await gatedLimiter();
    loseAnswers(gated);
    advance(LEASE);
    expect(await codeOf(limiter('a'))).toBe(TIMEOUT);
    expect(limiter.stats().leases).toBe(0);
    const lost = (await plain.usage('a')).used;
    expect(lost).toBeGreaterThan(62); // permits of the lease that nobody has
    gated.mend();
    await limiter('a');
    await limiter.close();
    expect((await plain.usage('a')).used).toBe(63);
  });

  test('leases that are over when they come are of no use, and no harm', async () => {
    const gated = await gatedClient(server.url);
    const redis = { client: gated.client, commandTimeout: patient(2000) };
    const options = { interval: SECOND, maxInInterval: 100_000, countBlocked: false, lease: 50 };
    const limiter = new RateLimiter({ ...options, redis });
    gated.gate = async (args, send) => {
      await pause(60);
      return send(args);
    };
    const calls = [];
    for (let i = 0; i < 500; i++) {
      calls.push(limiter('a'));
      if (i % 5 === 0) await pause(5);
    }
    expect(await Promise.all(calls)).toEqual(Array(500).fill(0));
    await limiter.close();
    gated.close();
  });

  test('a call that waits for a request has a deadline of its own', async () => {
    const { limiter, gated, advance } = await gatedLimiter();
    loseAnswers(gated);
    advance(LEASE);
    const calls = [limiter('a')];
    await turn();
    calls.push(limiter('a'), limiter('a'));
    expect(await Promise.all(calls.map(codeOf))).toEqual([TIMEOUT, TIMEOUT, TIMEOUT]);
    gated.mend();
    expect(await limiter('a')).toBe(0);
  });

  test('slow answers end leases only until an answer is fast again, and hold up nobody', async () => {
    const { limiter, gated, advance } = await gatedLimiter({ commandTimeout: patient(1000) });
    const held = [];
    gated.gate = async (args, send) => {
      const reply = await send(args);
      await new Promise((resolve) => held.push(resolve));
      return reply;
    };
    const answer = async (slowly) => {
      await waitUntil('it is held', () => held.length > 0);
      advance(slowly);
      held.shift()();
    };
    advance(LEASE);
    const calls = [limiter('a')];
    await answer(LEASE * 0.6);
    await calls[0];
    advance(LEASE);
    calls.push(limiter('a'));
    await turn();
    calls.push(limiter('a'));
    await answer(LEASE * 0.6);
    const { sent } = gated;
    for (let i = 0; i < 8; i++) {
      calls.push(limiter('a'));
      await turn();
    }
    expect(gated.sent - sent).toBeGreaterThan(4); // they do not wait for each other
    // There is always one more that waits.
    for (let i = 0; i < 40 && limiter.stats().leases === 0; i++) {
      calls.push(limiter('a'));
      await answer(0);
      await turn();
      advance(1);
    }
    expect(limiter.stats().leases).toBe(1);
    gated.mend();
    for (const release of held.splice(0)) release();
    expect(await Promise.all(calls)).toEqual(calls.map(() => 0));
  });

  // Kills: leases that are never asked for, or always, while answers are slow.
  test('while answers are slow, a lease is asked for in one of four round trips', async () => {
    const { limiter, gated, advance } = await gatedLimiter({ maxInInterval: 1000 });
    gated.gate = async (args, send) => {
      const reply = await send(args);
      advance(LEASE * 0.6);
      return reply;
    };
    const asked = [];
    for (let i = 0; i < 20; i++) {
      advance(LEASE * 0.4);
      const { leased } = limiter.stats();
      expect((await limiter.attempt('a', { cost: 5 })).allowed).toBe(true);
      asked.push(limiter.stats().leased > leased);
    }
    const times = asked.filter(Boolean).length;
    expect(times).toBeGreaterThanOrEqual(4);
    expect(times).toBeLessThanOrEqual(10);
  });

  test('of a burst, what a lease will hardly be large enough for goes to Redis at once', async () => {
    const { limiter, gated } = await gatedLimiter({
      commandTimeout: patient(2000),
      maxInInterval: 100_000,
    });
    const { sent } = gated;
    const burst = Array.from({ length: 640 }, () => limiter('a'));
    expect(await Promise.all(burst)).toEqual(burst.map(() => 0));
    expect(gated.sent - sent).toBeLessThan(16); // with up to 64 calls each
  });

  test('what comes while `clearAll` is under way is forgotten when it ends', async () => {
    const { limiter, gated, plain, advance } = await gatedLimiter({ maxInInterval: 100 });
    let release;
    gated.gate = async (args, send) => {
      if (String(args[0]).toLowerCase() === 'unlink') {
        await new Promise((resolve) => {
          release = resolve;
        });
      }
      return send(args);
    };
    const cleared = limiter.clearAll();
    await waitUntil('it is held', () => release !== undefined);
    let decision;
    do {
      decision = await limiter.attempt('a');
      advance(0.1);
    } while (decision.allowed);
    expect(decision.timeLeft).toBeGreaterThan(0);
    release();
    await cleared;
    expect(await limiter('a')).toBe(0);
    await limiter.close();
    expect((await plain.usage('a')).used).toBe(1);
  });

  test('no more calls than maxQueue wait', async () => {
    const { limiter, gated, advance } = await gatedLimiter({ maxQueue: 4 });
    loseAnswers(gated);
    advance(LEASE);
    const codes = [];
    const calls = Array.from({ length: 6 }, async () => codes.push(await codeOf(limiter('a'))));
    await turn();
    expect(codes).toEqual(Array(2).fill('ERR_ROLLGATE_REDIS_QUEUE_FULL'));
    await Promise.all(calls);
    expect(codes).toContain(TIMEOUT);
  });

  test('`close` fails what waits', async () => {
    const { limiter, gated, advance } = await gatedLimiter();
    loseAnswers(gated);
    advance(LEASE);
    const calls = [limiter('a')];
    await turn();
    calls.push(limiter('a'));
    const closed = limiter.close();
    expect(await Promise.all(calls.map(codeOf))).toEqual(Array(2).fill('ERR_ROLLGATE_CLOSED'));
    await closed;
  });
});
