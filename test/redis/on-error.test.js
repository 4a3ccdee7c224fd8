// Deadlines of calls, and what onError makes of an outage: who decides meanwhile, and that Redis decides again.
'use strict';

const RateLimiter = require('../..');
const { Deadlines } = require('../../lib/stores/remote/deadlines');
const { gatedClient } = require('../support/gated-client');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { published } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const { handClock } = require('../support/set-up');
const { patient } = require('../support/tiers');

const LIMITS = [
  { interval: 1000, maxInInterval: 3 },
  { interval: 60_000, maxInInterval: 5 },
];
const DOWN = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
const server = redisForTests();

describe('onError', () => {
  let redis;
  beforeEach(async () => {
    redis = await gatedClient(server.url);
  });
  afterEach(() => redis.close());

  function limiterWith(onError, options, connection) {
    return RateLimiter({
      redis: { client: redis.client, commandTimeout: patient(20_000), ...connection },
      onError,
      limits: LIMITS,
      ...options,
    });
  }

  /** Asks until Redis decides: a fallback would be counted. */
  const untilBack = (limiter) =>
    waitUntil('Redis decides again', async () => {
      const { fallbacks } = limiter.stats();
      await limiter.peek('back?');
      return limiter.stats().fallbacks === fallbacks;
    });

  test("'allow' allows as if every id were new", async () => {
    const limiter = limiterWith('allow', { countBlocked: false });
    const first = await limiter.attempt('a', { cost: 2 });
    redis.cut();
    for (let i = 0; i < 5; i++) {
      const decision = await limiter.attempt('a', { cost: 2 });
      expect({ ...decision }).toEqual({ ...first });
      expect(await limiter.refund(decision)).toBe(false);
    }
    expect(await limiter('a')).toBe(0);
    const many = await limiter.attemptMany(['a', 'a', 'a', 'a']);
    expect(many.map(({ allowed, actionsLeft }) => [allowed, actionsLeft])).toEqual(
      Array(4).fill([true, 2]),
    );
    expect(limiter.stats()).toMatchObject({ allowed: 11, blocked: 0, fallbacks: 10 });
    redis.mend();
    await untilBack(limiter);
    expect(await limiter.refund(first)).toBe(true);
  });

  test("'block' refuses for a second", async () => {
    const limiter = limiterWith('block');
    await limiter('a');
    redis.cut();
    const used = LIMITS.map(({ maxInInterval }) => ({ used: maxInInterval, remaining: 0 }));
    expect({ ...(await limiter.attempt('a')) }).toEqual({
      ...{ allowed: false, timeLeft: 1000, actionsLeft: 0, resetIn: 1000, blockedBy: 'block' },
      limits: LIMITS.map((limit, i) => ({ ...limit, ...used[i], resetIn: 1000 })),
    });
    expect(await limiter('b')).toBe(1000);
    const many = await limiter.attemptMany(['a', 'b']);
    expect(many.map(({ blockedBy }) => blockedBy)).toEqual(['block', 'block']);
    redis.mend();
    await untilBack(limiter);
    expect(await limiter('b')).toBe(0);
  });

  test("'memory' decides in memory until Redis answers again", async () => {
    const time = handClock();
    const limiter = limiterWith('memory', { clock: time.clock, countBlocked: false });
    const ofRedis = await limiter.attempt('a');
    redis.cut();
    const decisions = await Promise.all([1, 2, 3, 4].map(() => limiter.attempt('a')));
    expect(decisions.map(({ timeLeft }) => timeLeft)).toEqual([0, 0, 0, 1000]);
    expect(await limiter.refund(decisions[0])).toBe(true);
    expect(await limiter.refund(decisions[0])).toBe(false);
    expect(await limiter('a')).toBe(0);
    time.advance(1000);
    expect((await limiter.attempt('a')).limits[1].used).toBe(4);
    const many = await limiter.attemptMany(['a', 'a']);
    expect(many.map(({ allowed }) => allowed)).toEqual([true, false]);
    expect(await outcomeOf(limiter.refund(ofRedis))).toBe(DOWN);
    redis.mend();
    await untilBack(limiter);
    expect(await limiter.refund(decisions[1])).toBe(true);
  });

  test.each([
    ['clear', (limiter) => limiter.clear('a')],
    ['clearAll', (limiter) => limiter.clearAll()],
  ])("%s also clears what 'memory' counted", async (_name, clear) => {
    const limiter = limiterWith('memory', { clock: handClock().clock });
    redis.cut();
    const useUp = async () => {
      for (let i = 0; i < 3; i++) expect(await limiter('a')).toBe(0);
      expect(await limiter('a')).toBeGreaterThan(0);
    };
    await useUp();
    expect(await outcomeOf(clear(limiter))).toBe(DOWN);
    await useUp();
    redis.mend();
    await untilBack(limiter);
    await clear(limiter);
    redis.cut();
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 2 });
  });

  describe('an outage', () => {
    test('is noticed once: afterwards no call waits, and probes are sent one at a time', async () => {
      const limiter = limiterWith('memory');
      await limiter('a');
      redis.gate = () => Promise.reject(new Error('cut'));
      await limiter('a');
      const { errors } = limiter.stats();
      const probes = [];
      redis.gate = () => new Promise((_resolve, reject) => probes.push(reject));
      for (let i = 0; i < 1000; i++) await limiter(i); // would never end if one were sent
      expect(limiter.stats()).toMatchObject({ errors, fallbacks: 1001 });
      expect(probes).toHaveLength(1);
      probes[0](new Error('cut'));
    });

    test('is not over because a probe has failed', async () => {
      const limiter = limiterWith('allow');
      redis.cut();
      await limiter('a');
      const { errors } = limiter.stats();
      const probes = [];
      redis.gate = ([command]) => {
        probes.push(command);
        return Promise.reject(new Error('still cut'));
      };
      for (let i = 1; i <= 20; i++) {
        await limiter('a');
        await new Promise(setImmediate); // the probe fails
      }
      expect(limiter.stats()).toMatchObject({ errors, fallbacks: 21 });
      expect(probes).toEqual(Array(20).fill('pttl')); // and no attempt
    });

    test('begins with a timeout', async () => {
      const commandTimeout = patient(1000);
      const limiter = limiterWith('block', {}, { commandTimeout });
      const strict = limiterWith('throw', {}, { commandTimeout });
      await limiter('a');
      redis.gate = () => new Promise(() => {});
      const error = errorOf(strict('a'));
      expect(await limiter('a')).toBe(1000);
      expect((await error).code).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
      const { errors } = limiter.stats();
      expect([await limiter('a'), await limiter('b')]).toEqual([1000, 1000]);
      expect(limiter.stats().errors).toBe(errors);
      redis.mend();
      await untilBack(limiter);
      expect(await limiter('c')).toBe(0);
    });

    test('is none where Redis answers with an error: it is asked again at once', async () => {
      const limiter = limiterWith('allow', { namespace: 'on-error-reply' });
      await server.command('SET', 'on-error-reply{a}', 'x');
      for (let i = 0; i < 5; i++) expect(await limiter('a')).toBe(0);
      expect(limiter.stats()).toMatchObject({ errors: 5, fallbacks: 5 });
      const answers = [];
      for (let i = 0; i < 4; i++) answers.push((await limiter.attempt('b')).actionsLeft);
      expect(answers).toEqual([2, 1, 0, 0]);
    });

    test('is a client that its owner closed, too', async () => {
      const limiter = limiterWith('allow');
      await limiter('a');
      redis.close();
      expect([await limiter('a'), await limiter('a')]).toEqual([0, 0]);
      redis.close = () => {};
    });
  });

  describe('an Error', () => {
    const RealError = Error;
    let made;
    beforeEach(() => {
      made = 0;
      globalThis.Error = new Proxy(RealError, {
        construct(target, args, newTarget) {
          made += 1;
          return Reflect.construct(target, args, newTarget);
        },
      });
    });
    afterEach(() => {
      globalThis.Error = RealError;
    });

    const cut = new Error('cut');
    const full = new Error('The queue is full');
    const reply = Object.assign(new Error('OOM'), { name: 'ReplyError' });
    const hang = () => new Promise(() => {});
    test.each([
      ['a timeout', hang, {}],
      ['a full queue', hang, { maxQueue: 10 }],
      ['a lost connection', () => Promise.reject(cut), {}],
      ["a full queue of the client's", () => Promise.reject(full), {}],
      ['an error reply', () => Promise.reject(reply), {}],
      ['an invalid reply', async () => 'OK', {}],
    ])('of %s is only made for those who see it', async (_what, gate, connection) => {
      const limiter = limiterWith('memory', {}, { commandTimeout: 20, ...connection });
      const strict = limiterWith('throw', {}, { commandTimeout: 20, ...connection });
      redis.gate = gate;
      const calls = Array.from({ length: 300 }, (_, i) => limiter(i));
      await Promise.all([...calls, limiter.attempt('a'), limiter.attemptMany(['a', 'b'])]);
      expect(limiter.stats().fallbacks).toBe(303);
      expect(made).toBe(0);
      const seen = await Promise.all([1, 2, 3].map((id) => errorOf(strict(id))));
      expect(new Set(seen).size).toBe(3);
      for (const error of seen) expect(error.stack).toContain(error.message);
      expect(made).toBe(3);
    });

    test('is the same for a subscriber and the caller', async () => {
      const limiter = limiterWith('throw');
      redis.cut();
      const seen = [];
      const messages = await published('rollgate:redis', async () => {
        seen.push(await errorOf(limiter('a')), await errorOf(limiter.clear('a')));
      });
      expect(messages.map(({ error }) => error)).toEqual(seen);
      for (const [i, { error }] of messages.entries()) expect(error).toBe(seen[i]);
    });
  });

  test.each([['allow'], ['block'], ['memory']])(
    "'%s' softens decisions, never mistakes of the program",
    async (onError) => {
      const time = handClock();
      const limiter = limiterWith(onError, { clock: time.clock });
      const decision = await limiter.attempt('a');
      redis.cut();
      await limiter('a');
      expect(await outcomeOf(limiter({}))).toBe('ERR_ROLLGATE_ID');
      expect(await outcomeOf(limiter('\ud800'))).toBe('ERR_ROLLGATE_ID');
      expect(await outcomeOf(limiter.attempt('a', { cost: 4 }))).toBe('ERR_ROLLGATE_COST');
      expect(await outcomeOf(limiter.refund(decision))).toBe(DOWN);
      expect(await outcomeOf(limiter.clear('a'))).toBe(DOWN);
      expect(await outcomeOf(limiter.clearAll())).toBe(DOWN);
      time.set(Number.NaN);
      expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_CLOCK');
      await limiter.close();
      expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_CLOSED');
    },
  );

  test('a limiter that is closed while a call waits decides nothing itself', async () => {
    const limiter = limiterWith('memory');
    await limiter('a');
    let fail;
    redis.gate = () =>
      new Promise((_resolve, reject) => {
        fail = reject;
      });
    const waiting = errorOf(limiter('a'));
    await new Promise(setImmediate); // then it is sent
    await limiter.close();
    fail(new Error('cut'));
    expect((await waiting).code).toBe(DOWN);
  });
});

describe('deadlines', () => {
  let now;
  let expired;
  let deadlines;
  const begin = (...names) => {
    const calls = names.map((name) => ({ name }));
    for (const call of calls) deadlines.begin(call);
    return calls;
  };
  const advance = (ms) => {
    now += ms;
    jest.advanceTimersByTime(ms);
  };

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    now = 1000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    expired = [];
    deadlines = new Deadlines(30, ({ name }) => expired.push(name));
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  test('pass in order, for those that still wait', () => {
    const calls = begin(...Array.from({ length: 5000 }, (_, i) => i));
    for (const call of calls.slice(0, 4990)) expect(deadlines.end(call)).toBe(true);
    expect(deadlines.end(calls[0])).toBe(false);
    deadlines.end(calls[4995]);
    advance(10);
    begin('later');
    advance(19);
    expect(expired).toEqual([]);
    advance(1);
    expect(expired).toEqual([4990, 4991, 4992, 4993, 4994, 4996, 4997, 4998, 4999]);
    expect([deadlines.end(calls[4999]), deadlines.pending]).toEqual([false, 1]);
    advance(10);
    expect([expired.at(-1), deadlines.pending]).toEqual(['later', 0]);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('that are due have all ended before the first of them is settled', () => {
    const seen = [];
    const calls = [{}, {}, {}];
    deadlines = new Deadlines(30, () => seen.push(calls.map(({ isPending }) => isPending)));
    for (const call of calls) deadlines.begin(call);
    advance(30);
    expect(seen).toEqual(Array(3).fill([false, false, false]));
  });

  test('wait once for the sockets to be read where the loop was busy', () => {
    const [answered] = begin('answered', 'lost');
    now += 500; // before any timer could run
    jest.advanceTimersByTime(30);
    expect(expired).toEqual([]);
    deadlines.end(answered);
    now += 500; // busy again
    jest.advanceTimersByTime(20);
    expect(expired).toEqual(['lost']);
  });
});
