// A limiter on Redis decides as the brute-force oracle does, through every client.
'use strict';

const RateLimiter = require('../..');
const { handClock } = require('../support/hand-clock');
const { expectEqual, expectSame } = require('../support/expect-same');
const { Oracle } = require('../support/oracle');
const { EACH_CLIENT, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { optionsFor, randomFrom, randomPolicy, randomStep } = require('../support/traces');

const TRACES = 15;
const STEPS = 60;
const START_US = 1_700_000_000_000_001;

let server;
let namespaces = 0;

beforeAll(async () => {
  server = await startRedis();
});

describe.each(EACH_CLIENT)('through %s', (_name, open) => {
  const { using, closeAll } = openings();
  let redis;

  beforeAll(() => {
    redis = using(open(server.url));
  });
  afterAll(closeAll);

  function limiterWith(options) {
    namespaces += 1;
    const patient = { ...redis, commandTimeout: 10_000 };
    return RateLimiter({ redis: patient, namespace: `test-${namespaces}`, ...options });
  }

  function limiterAt(time, options) {
    return limiterWith({ interval: 10, maxInInterval: 2, clock: time.clock, ...options });
  }

  /** One step of a trace; returns what can be refunded of it. */
  async function act({ random, limiter, time, oracleOf, largestCost }, context) {
    const ids = ['a', 'ü', 'a}b'];
    const id = random.pick(ids);
    const cost = random.chance(30) ? random.between(1, largestCost) : 1;
    switch (random.between(1, 6)) {
      case 1:
        expectSame(await limiter.peek(id, { cost }), oracleOf(id).peek(time.us, cost), context);
        return [];
      case 2: {
        expectEqual(await limiter(id), oracleOf(id).attempt(time.us).timeLeft, context);
        return [];
      }
      case 3: {
        const many = Array.from({ length: random.between(0, 4) }, () => random.pick(ids));
        const decisions = await limiter.attemptMany(many);
        return decisions.map((decision, i) => {
          const oracle = oracleOf(many[i]);
          const expected = oracle.attempt(time.us);
          expectSame(decision, expected, context);
          return { decision, oracle, expected };
        });
      }
      default: {
        const decision = await limiter.attempt(id, { cost });
        const expected = oracleOf(id).attempt(time.us, cost);
        expectSame(decision, expected, context);
        return [{ decision, oracle: oracleOf(id), expected }];
      }
    }
  }

  async function runTrace(seed, countBlocked) {
    const random = randomFrom(seed);
    const policy = randomPolicy(random, { countBlocked });
    const time = { us: START_US };
    const clock = () => time.us / 1000;
    const limiter = limiterWith({ ...optionsFor(policy, random), clock });
    const oracles = new Map();
    const oracleOf = (id) => {
      if (!oracles.has(id)) oracles.set(id, new Oracle(policy));
      return oracles.get(id);
    };
    const largestCost = Math.min(...policy.limits.map((limit) => limit.maxInInterval));
    const retention = Math.max(
      policy.minDifference,
      ...policy.limits.map((limit) => limit.interval),
    );
    for (let step = 0; step < STEPS; step++) {
      time.us += randomStep(random, policy.unit);
      const context = { seed, step };
      const made = await act({ random, limiter, time, oracleOf, largestCost }, context);
      if (countBlocked || made.length === 0 || !random.chance(30)) continue;
      const { decision, oracle, expected } = made[0];
      if (time.us - expected.at >= retention) continue;
      const wasThere = expected.allowed && oracle.refund(expected.attempt);
      expectEqual(await limiter.refund(decision), wasThere, context);
    }
  }

  test.each([[true], [false]])('countBlocked: %p decides as the oracle', async (countBlocked) => {
    const seeds = Array.from({ length: TRACES }, (_, i) => i + 1);
    await Promise.all(seeds.map((seed) => runTrace(seed, countBlocked)));
  });

  test('refused until timeLeft, allowed exactly at it', async () => {
    const time = handClock();
    const limiter = limiterAt(time, { countBlocked: false });
    const answers = [await limiter('a')];
    time.advance(3.5);
    answers.push(await limiter('a'), await limiter('a'));
    time.advance(6.499);
    answers.push(await limiter('a'));
    time.advance(0.001);
    answers.push(await limiter('a'));
    expect(answers).toEqual([0, 0, 7, 1, 0]);
  });

  test("counts by the server's clock without one of the user's", async () => {
    const limiter = limiterWith({ interval: 3_600_000, maxInInterval: 1, countBlocked: false });
    expect(await limiter('a')).toBe(0);
    const timeLeft = await limiter('a');
    expect(timeLeft).toBeLessThanOrEqual(3_600_000);
    expect(timeLeft).toBeGreaterThan(3_500_000);
  });

  test('one bucket for 1, 1n and "1", one for callers without an id', async () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1 });
    const answers = [];
    for (const id of [1, '1', 1n, undefined, null, '', 0, -0, '0', 1e21, '1e+21']) {
      answers.push(await limiter(id));
    }
    expect(answers).toEqual([0, 10, 10, 0, 10, 10, 0, 10, 10, 0, 10]);
  });

  test('never confuses ids', async () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1 });
    const ids = [
      '\u00e9',
      'e\u0301',
      '\0',
      '\0\0',
      '{',
      '}',
      '{}',
      '}{',
      '__proto__',
      '日本',
      '😀',
      '*',
      '?',
    ];
    ids.push('x'.repeat(1e5), `${'x'.repeat(1e5)}y`, 'a\r\nb', '[a]', '\\');
    const decisions = await limiter.attemptMany(ids);
    expect(decisions.map(({ allowed }) => allowed)).toEqual(ids.map(() => true));
    const again = await limiter.attemptMany(ids);
    expect(again.map(({ allowed }) => allowed)).toEqual(ids.map(() => false));
  });

  test('calls back later, never in the same tick', async () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 3 });
    let isSameTick = true;
    const call = (...args) =>
      new Promise((resolve) => {
        const returned = limiter(...args, (...answer) => {
          resolve([...answer, isSameTick, returned]);
        });
      });
    const answers = Promise.all([call('a'), call('a'), call(), call({})]);
    isSameTick = false;
    const [first, second, without, wrong] = await answers;
    expect(first).toEqual([null, 0, 2, false, undefined]);
    expect(second).toEqual([null, 0, 1, false, undefined]);
    expect(without).toEqual([null, 0, 2, false, undefined]);
    expect(wrong).toMatchObject([{ code: 'ERR_ROLLGATE_ID' }, false, undefined]);
    expect(() => limiter('a', 5)).toThrow(TypeError);
  });

  test('has the promise methods of rolling-rate-limiter', async () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 1, countBlocked: false });
    expect([await limiter.wouldLimit('a'), await limiter.limit('a')]).toEqual([false, false]);
    expect([await limiter.wouldLimit('a'), await limiter.limit('a')]).toEqual([true, true]);
    const info = {
      blocked: true,
      blockedDueToCount: true,
      blockedDueToMinDifference: false,
      millisecondsUntilAllowed: 10,
      actionsRemaining: 0,
    };
    expect(await limiter.limitWithInfo('a')).toEqual(info);
    expect(await limiter.wouldLimitWithInfo('a')).toEqual(info);
  });

  test('peeks write nothing', async () => {
    const limiter = limiterAt(handClock());
    await limiter.peek('a');
    await limiter.wouldLimit('a');
    await limiter.wouldLimitWithInfo('a');
    expect(await server.command('EXISTS', `test-${namespaces}{a}`)).toBe(0);
    await limiter('a');
    const before = await server.command('GET', `test-${namespaces}{a}`);
    await limiter.peek('a', { cost: 2 });
    expect(await server.command('GET', `test-${namespaces}{a}`)).toBe(before);
  });

  test('attemptMany decides one behind the other, more ids than one call takes', async () => {
    const limiter = limiterAt(handClock(), { maxInInterval: 2 });
    const ids = Array.from({ length: 2500 }, (_, i) => i % 1250);
    const decisions = await limiter.attemptMany([...ids, 7]);
    expect(decisions.filter(({ allowed }) => allowed).length).toBe(2500);
    expect(decisions[2500]).toMatchObject({ allowed: false, timeLeft: 10 });
    expect(await limiter.attemptMany([])).toEqual([]);
  });

  test.each([[256], [257], [300]])('a log of up to %d actions is exact', async (max) => {
    const time = handClock();
    const limiter = limiterAt(time, { interval: 1000, maxInInterval: max });
    const costs = await limiter.attempt('a', { cost: max - 1 });
    expect(costs).toMatchObject({ allowed: true, actionsLeft: 1 });
    time.advance(1);
    const twice = await limiter.attemptMany(['a', 'a', 'b', 'a']);
    expect(twice.map(({ allowed }) => allowed)).toEqual([true, false, true, false]);
    time.advance(998);
    expect((await limiter.peek('a')).allowed).toBe(false);
    time.advance(1);
    expect((await limiter.peek('a')).allowed).toBe(true);
  });

  test('clear forgets one id, clearAll those of this limiter', async () => {
    const time = handClock();
    const first = limiterAt(time, { namespace: 'clear*[all]?\\' });
    const second = limiterAt(time, { namespace: 'clear*[all]?\\2' });
    for (let i = 0; i < 3; i++) await Promise.all([first('a'), first('b'), second('a')]);
    await first.clear('a');
    expect([await first('a'), await first('b')]).toEqual([0, 10]);
    await first.attemptMany(Array.from({ length: 700 }, (_, i) => i));
    await first.clearAll();
    expect([await first('a'), await first('b'), await second('a')]).toEqual([0, 0, 10]);
  });

  test('refunds once, and not what was cleared', async () => {
    const limiter = limiterAt(handClock(), { countBlocked: false });
    const decision = await limiter.attempt('a', { cost: 2 });
    expect(await limiter('a')).toBe(10);
    expect([await limiter.refund(decision), await limiter.refund(decision)]).toEqual([true, false]);
    const cleared = await limiter.attempt('a');
    await limiter.clear('a');
    await limiter('a');
    expect(await limiter.refund(cleared)).toBe(false);
  });

  test('counts what it did', async () => {
    const limiter = limiterAt(handClock());
    for (let i = 0; i < 3; i++) await limiter('a');
    await limiter.peek('a');
    await limiter.attemptMany(['b', 'b', 'b', 'b']);
    expect(limiter.stats()).toMatchObject({
      keys: null,
      allowed: 4,
      blocked: 3,
      evicted: 0,
      errors: 0,
      fallbacks: 0,
    });
  });

  test('says what is wrong with a call by rejecting', async () => {
    const time = handClock();
    const limiter = limiterAt(time);
    const codeOf = (promise) => promise.then(String, ({ code }) => code);
    for (const id of ['\ud800', 'a\udc00', {}, true, Number.NaN, Symbol('a')]) {
      expect(await codeOf(limiter(id))).toBe('ERR_ROLLGATE_ID');
      expect(await codeOf(limiter.attempt(id))).toBe('ERR_ROLLGATE_ID');
      expect(await codeOf(limiter.attemptMany(['a', id]))).toBe('ERR_ROLLGATE_ID');
      expect(await codeOf(limiter.clear(id))).toBe('ERR_ROLLGATE_ID');
    }
    expect(await codeOf(limiter.attemptMany('a'))).toBe('ERR_ROLLGATE_ID');
    expect(await codeOf(limiter.attempt('a', { cost: 3 }))).toBe('ERR_ROLLGATE_COST');
    expect(await codeOf(limiter.peek('a', 3))).toBe('ERR_ROLLGATE_OPTION');
    expect(await codeOf(limiter.refund({}))).toBe('ERR_ROLLGATE_DECISION');
    time.set(Number.NaN);
    expect(await codeOf(limiter('a'))).toBe('ERR_ROLLGATE_CLOCK');
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0, errors: 1 });
    await limiter.close();
    await limiter.close();
    expect(await codeOf(limiter('a'))).toBe('ERR_ROLLGATE_CLOSED');
    expect(await codeOf(limiter.limit('a'))).toBe('ERR_ROLLGATE_CLOSED');
    expect(await codeOf(limiter.refund({}))).toBe('ERR_ROLLGATE_CLOSED');
    expect(await codeOf(limiter.clearAll())).toBe('ERR_ROLLGATE_CLOSED');
    expect(() => limiter.stats()).toThrow('the limiter is closed');
  });

  test('bears times and durations without end', async () => {
    const limiter = limiterWith({
      interval: Number.MAX_VALUE,
      maxInInterval: Number.MAX_SAFE_INTEGER,
      minDifference: 1e300,
      clock: () => -1e300,
    });
    const answers = [await limiter('a'), await limiter('a')];
    expect(answers[0]).toBe(0);
    expect(answers[1]).toBeGreaterThan(1e12);
  });

  test('leaves the client to its owner', async () => {
    const limiter = limiterAt(handClock());
    await limiter('a');
    await limiter.close();
    expect(await limiterAt(handClock())('a')).toBe(0);
  });
});
