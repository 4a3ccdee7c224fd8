// The limiter against a brute-force oracle on random traces, and the promises on timeLeft and peek.
'use strict';

const RateLimiter = require('../..');
const { expectEqual, expectSame } = require('../support/expect-same');
const { Oracle } = require('../support/oracle');
const { optionsFor, randomFrom, randomPolicy, randomStep } = require('../support/traces');

const TRACES = process.env.ROLLGATE_SANITIZED ? 20 : 200;
const STEPS = 150;
const START_US = 5_000_000_001;

/** A limiter and one oracle for each id, on one clock. */
function setUp(seed, countBlocked) {
  const random = randomFrom(seed);
  const policy = randomPolicy(random, { countBlocked });
  const options = optionsFor(policy, random);
  const time = { us: START_US };
  const limiter = RateLimiter({ ...options, clock: () => time.us / 1000 });
  const oracles = new Map();
  const oracleOf = (id) => {
    if (!oracles.has(id)) oracles.set(id, new Oracle(policy));
    return oracles.get(id);
  };
  const largestCost = Math.min(...policy.limits.map((limit) => limit.maxInInterval));
  return { random, policy, limiter, time, oracleOf, largestCost, options };
}

/** One step of a trace; returns what can be refunded of it. */
function act({ random, limiter, time, oracleOf, largestCost }, ids, context) {
  const id = random.pick(ids);
  const oracle = oracleOf(id);
  const cost = random.chance(30) ? random.between(1, largestCost) : 1;
  switch (random.between(1, 6)) {
    case 1:
      expectSame(limiter.peek(id, { cost }), oracle.peek(time.us, cost), context);
      return [];
    case 2: {
      const expected = oracle.attempt(time.us);
      expectEqual(limiter(id), expected.timeLeft, context);
      return [];
    }
    case 3: {
      const many = Array.from({ length: random.between(0, 4) }, () => random.pick(ids));
      return limiter.attemptMany(many).map((decision, i) => {
        const expected = oracleOf(many[i]).attempt(time.us);
        expectSame(decision, expected, context);
        return { decision, oracle: oracleOf(many[i]), expected };
      });
    }
    default: {
      const decision = limiter.attempt(id, { cost });
      const expected = oracle.attempt(time.us, cost);
      expectSame(decision, expected, context);
      return [{ decision, oracle, expected }];
    }
  }
}

describe.each([[true], [false]])(
  'with countBlocked: %p the limiter answers as the oracle',
  (countBlocked) => {
    test('for several ids on a clock that never steps back', () => {
      for (let seed = 1; seed <= TRACES; seed++) {
        const run = setUp(seed, countBlocked);
        for (let step = 0; step < STEPS; step++) {
          run.time.us += randomStep(run.random, run.policy.unit);
          act(run, ['a', 'b', 'an id of more than sixteen characters'], { seed, step });
          if (run.random.chance(1)) {
            run.limiter.clear('a');
            run.oracleOf('a').clear();
          }
        }
      }
    });

    test('for one id on a clock that steps back now and then', () => {
      for (let seed = 1; seed <= TRACES; seed++) {
        const run = setUp(seed, countBlocked);
        for (let step = 0; step < STEPS; step++) {
          const back = run.random.chance(6) ? run.random.between(1, 30 * run.policy.unit) : 0;
          run.time.us += back > 0 ? -back : randomStep(run.random, run.policy.unit);
          act(run, ['a'], { seed, step });
        }
      }
    });
  },
);

test('with countBlocked: false refunds are exact', () => {
  for (let seed = 1; seed <= TRACES; seed++) {
    const run = setUp(seed, false);
    let refundable = [];
    for (let step = 0; step < STEPS; step++) {
      run.time.us += randomStep(run.random, run.policy.unit);
      refundable.push(...act(run, ['a', 'b'], { seed, step }));
      if (!run.random.chance(25) || refundable.length === 0) continue;
      const { decision, oracle, expected } = run.random.pick(refundable);
      const isThere = run.limiter.refund(decision);
      const wasThere = expected.allowed && oracle.refund(expected.attempt);
      // What no window asks for any more may have been dropped before.
      const retention = Math.max(...run.policy.limits.map((limit) => limit.interval));
      const matters = run.time.us - expected.at < Math.max(retention, run.policy.minDifference);
      if (matters || isThere) {
        expectEqual(isThere, wasThere, { seed, step });
      }
      refundable = refundable.filter((entry) => matters || entry.decision !== decision);
    }
  }
});

test('with countBlocked: true a refund never lets through what the oracle refuses', () => {
  for (let seed = 1; seed <= TRACES; seed++) {
    const { random, policy, limiter, time, oracleOf } = setUp(seed, true);
    const oracle = oracleOf('a');
    const refundable = [];
    for (let step = 0; step < STEPS; step++) {
      time.us += randomStep(random, policy.unit);
      const decision = limiter.attempt('a');
      const expected = oracle.attempt(time.us);
      if (decision.allowed) expectEqual(expected.allowed, true, { seed, step });
      if (decision.allowed) refundable.push({ decision, attempt: expected.attempt });
      if (random.chance(30) && refundable.length > 0) {
        const [taken] = refundable.splice(random.between(0, refundable.length - 1), 1);
        if (limiter.refund(taken.decision)) oracle.refund(taken.attempt);
      }
    }
  }
});

test('never more than maxInInterval allowed actions in any interval', () => {
  for (let seed = 1; seed <= TRACES; seed++) {
    const { random, policy, limiter, time } = setUp(seed, seed % 2 === 0);
    const allowed = [];
    for (let step = 0; step < 2 * STEPS; step++) {
      time.us += randomStep(random, policy.unit);
      if (limiter('a') === 0) allowed.push(time.us);
    }
    for (const { interval, maxInInterval } of policy.limits) {
      for (let i = maxInInterval; i < allowed.length; i++) {
        expectEqual(allowed[i] - allowed[i - maxInInterval] >= interval, true, { seed, i });
      }
    }
    for (let i = 1; i < allowed.length; i++) {
      expectEqual(allowed[i] - allowed[i - 1] >= policy.minDifference, true, { seed, i });
    }
  }
});

describe.each([[true], [false]])('with countBlocked: %p', (countBlocked) => {
  test('an attempt is refused until timeLeft and allowed exactly at it', () => {
    for (let seed = 1; seed <= TRACES; seed++) {
      const { random, policy, limiter, time, largestCost } = setUp(seed, countBlocked);
      // On whole ms the answer is exact to the microsecond; peeks look ahead without a trace.
      const isExact = policy.unit === 1000;
      for (let step = 0; step < STEPS; step++) {
        const step_us = randomStep(random, policy.unit);
        time.us += isExact ? Math.round(step_us / 1000) * 1000 : step_us;
        const cost = random.chance(30) ? random.between(1, largestCost) : 1;
        const { allowed, timeLeft } = limiter.attempt('a', { cost });
        if (allowed) continue;
        const now = time.us;
        const earlier = [0, timeLeft * 500, timeLeft * 1000 - (isExact ? 1 : 1000)];
        const answers = [...earlier, timeLeft * 1000].map((later) => {
          time.us = now + later;
          return limiter.peek('a', { cost }).allowed;
        });
        expectEqual(answers, [false, timeLeft === 1 && answers[1], false, true], { seed, step });
        time.us = now;
      }
    }
  });

  test('peek tells what attempt says at that very moment', () => {
    for (let seed = 1; seed <= TRACES; seed++) {
      const { random, policy, limiter, time, largestCost } = setUp(seed, countBlocked);
      for (let step = 0; step < STEPS; step++) {
        time.us += random.chance(5) ? -random.between(1, 30) : randomStep(random, policy.unit);
        const cost = random.between(1, largestCost);
        const peeked = limiter.peek('a', { cost });
        const before = limiter.stats();
        limiter.peek('a', { cost });
        limiter.peek('unknown', { cost });
        expectEqual(limiter.stats(), before, { seed, step });
        expectEqual({ ...limiter.attempt('a', { cost }) }, { ...peeked }, { seed, step });
      }
    }
  });
});
