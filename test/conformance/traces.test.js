// Random calls: every store and algorithm gives the oracle's answers and keeps its promises.
// A failure prints its seed and a short trace; ROLLGATE_SEED=<seed> runs that seed alone.
'use strict';

const { expectEqual, outcomeOf } = require('../support/outcome');
const { askProgram } = require('../support/run-program');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');
const { ALGORITHM_NAMES, Oracle, RULES } = require('./oracle');
const { Customers, LAST_START, randomPlansPolicy, randomStartFor } = require('./plans');
const {
  LONG_UNITS,
  PLAN_KINDS,
  SHORT_UNITS,
  optionsFor,
  randomCost,
  randomPolicy,
  randomTrace,
} = require('./random-traces');
const { expectTrace } = require('./replay');
const { EACH_STORE } = require('./stores');

const STEPS = 50;
const AT_ONCE = 20;
/** Also in the fast tier. */
const FEWEST_SEEDS = 20;
const ONLY_SEED = process.env.ROLLGATE_SEED;

function seedsFor({ pace }) {
  if (ONLY_SEED !== undefined) return [Number(ONLY_SEED)];
  const every = Math.ceil(pace / (2 * STEPS));
  const count = Math.min(every, Math.max(casesOf(every), FEWEST_SEEDS));
  return Array.from({ length: count }, (_, i) => i + 1);
}

/** Calls `check` for each case, `atOnce` of them at the same time. */
async function forEach(cases, atOnce, check) {
  for (let i = 0; i < cases.length; i += atOnce) {
    await Promise.all(cases.slice(i, i + atOnce).map(check));
  }
}

/** The largest cost that every window can let in. */
const leastOf = ({ limits }) => Math.min(...limits.map(({ maxInInterval }) => maxInInterval));

const START_US = 1_700_000_000_000_001;

let namespaces = 0;
const newNamespace = () => `promises-${process.pid}-${++namespaces}`;

/** Whether allowed attempts { at, cost }, in order of time, keep to a policy without counted refusals. */
function keepsTo(policy, admissions) {
  const rule = RULES[policy.algorithm];
  const { limits } = policy;
  const own = Math.max(...limits.map(({ maxInInterval }) => maxInInterval));
  const history = admissions.map(({ at, cost }, i) => {
    return { at, costs: limits.map(() => cost), attempt: i, limits, own };
  });
  return history.every(({ at, costs }, i) => {
    const before = history.slice(0, i);
    if (i > 0 && at - before[i - 1].at < policy.minDifference) return false;
    return limits.every(
      ({ maxInInterval }, w) => rule.usedBy(before, w, policy)(at) + costs[w] <= maxInInterval,
    );
  });
}

test.each(ALGORITHM_NAMES)('the rule of %s can be kept and broken', (algorithm) => {
  const keeps = (moments, minDifference = 0) => {
    const limits = [{ interval: 100, maxInInterval: 2 }];
    const admissions = moments.split(' ').map((at) => ({ at: Number(at), cost: 1 }));
    return keepsTo({ algorithm, limits, minDifference }, admissions);
  };
  const all = ['0 0 99', '0 0 100', '90 90 110', '0 0 50 99 100'];
  expect(all.filter((moments) => keeps(moments))).toEqual(RULES[algorithm].keeps);
  expect([keeps('0 4', 5), keeps('0 5', 5)]).toEqual([false, true]);
});

describe.each(EACH_STORE)('%s', (_, store) => {
  const units = store.expires ? LONG_UNITS : SHORT_UNITS;
  const isSlow = store.pace < 1000;
  const rounds = casesOf(Math.ceil(store.pace / 400));
  let place;
  let time;
  beforeAll(async () => {
    place = await store.open();
  });
  beforeEach(() => {
    time = { us: START_US };
  });
  afterAll(() => place.close());

  /** Limiters that count together; only one if they cannot. */
  function openSome(count, options) {
    const namespace = newNamespace();
    const clock = () => time.us / 1000;
    const together = place.together(namespace);
    const all = { clock, ...together, ...options };
    const length = Object.keys(together).length === 0 ? 1 : count;
    const limiters = Array.from({ length }, () => place.open(all));
    return {
      limiters,
      limiter: limiters[0],
      stateOf: (id) => place.stateOf(namespace, id),
      close: () => Promise.all(limiters.map((limiter) => limiter.close())),
    };
  }

  function walk(random, unit) {
    if (random.chance(60)) time.us += random.between(0, 3 * unit);
    if (random.chance(10)) time.us += random.between(1, 30) * unit;
  }

  /** `draw(random)` gives a trace. */
  function followOracle(algorithm, draw) {
    return forEach(seedsFor(store), store.isSync ? 1 : AT_ONCE, (seed) =>
      expectTrace(draw(randomFrom(seed)), place.open, { store: store.name, algorithm, seed }),
    );
  }

  test.each(ALGORITHM_NAMES)('answers as the oracle: %s', (algorithm) =>
    followOracle(algorithm, (random) => {
      const policy = randomPolicy(random, { algorithm, units });
      return randomTrace(random, { policy, steps: STEPS });
    }),
  );

  // Kills: counts that a change of plans loses or gives anew; boundaries of another zone; a record that refuses.
  test.each(ALGORITHM_NAMES)('customers who change between two plans: %s', (algorithm) => {
    const { roomForRecords } = store;
    const largest = store.largestLimit(algorithm);
    const drawn = { algorithm, units, largest, roomForRecords };
    return followOracle(algorithm, (random) => {
      const policy = randomPlansPolicy(random, drawn);
      const settles = algorithm !== 'gcra' || policy.limits[0].name === undefined;
      return randomTrace(random, {
        ...{ policy, steps: STEPS, customers: new Customers() },
        kinds: PLAN_KINDS.filter((kind) => settles || !['settle', 'refund'].includes(kind)),
        start: randomStartFor(random, policy),
        end: LAST_START,
      });
    });
  });

  describe.each(ALGORITHM_NAMES)('%s', (algorithm) => {
    const countsBlocked = RULES[algorithm].countsBlocked ? [true, false] : [false];

    function policyFrom(random, countBlocked) {
      const policy = randomPolicy(random, { algorithm, units, largestMax: 40 });
      return { ...policy, countBlocked, blockFor: [] };
    }

    test('never allows more than the rule, however many calls are made at once', async () => {
      let allowed = 0;
      for (let seed = 1; seed <= rounds; seed++) {
        const random = randomFrom(seed);
        const policy = policyFrom(random, random.pick(countsBlocked));
        const { limiters, close } = openSome(2, optionsFor(policy));
        const admissions = [];
        const refunds = random.chance(50);
        for (let turn = 0; turn < 40; turn++) {
          walk(random, policy.unit);
          const at = time.us;
          const calls = Array.from({ length: random.between(1, 4) }, async () => {
            const cost = randomCost(random, leastOf(policy));
            const limiter = random.pick(limiters);
            const decision = await limiter.attempt('a', { cost });
            return decision.allowed ? [{ at, cost, limiter, decision }] : [];
          });
          admissions.push(...(await Promise.all(calls)).flat());
          if (refunds && random.chance(25) && admissions.length > 0) {
            const newest = admissions.length - 1;
            const chosen = random.between(Math.max(0, newest - 4), newest);
            const { limiter, decision } = admissions[chosen];
            if (await limiter.refund(decision)) admissions.splice(chosen, 1);
          }
        }
        await close();
        const record = admissions.map(({ at, cost }) => ({ at, cost }));
        expectEqual(keepsTo(policy, record), true, { seed, policy, record });
        allowed += admissions.length;
      }
      expect(allowed).toBeGreaterThan(rounds);
    });

    test('refused until timeLeft, allowed exactly at it', async () => {
      let refusals = 0;
      for (let seed = 1; seed <= rounds; seed++) {
        const random = randomFrom(seed);
        const blockFor = random.chance(30) ? [random.between(1, 99) / 2] : [];
        const policy = policyFrom(random, random.pick(countsBlocked));
        const { limiter, close } = openSome(1, {
          ...optionsFor(policy),
          ...(blockFor.length > 0 && { blockFor }),
        });
        for (let turn = 0; turn < 25; turn++) {
          walk(random, policy.unit);
          const cost = randomCost(random, leastOf(policy));
          const { allowed, timeLeft } = await limiter.attempt('a', { cost });
          if (allowed) continue;
          refusals += 1;
          const now = time.us;
          const end = timeLeft * 1000;
          const peeks = [0, end - 1000, end, end + 1].map((later) => {
            time.us = now + later;
            return limiter.peek('a', { cost });
          });
          const answers = (await Promise.all(peeks)).map((decision) => decision.allowed);
          expectEqual(answers, [false, false, true, true], { seed, turn, timeLeft, policy });
          time.us = now;
        }
        await close();
      }
      expect(refusals).toBeGreaterThan(rounds);
    });

    test.each(countsBlocked)(
      'a hammered id takes no more memory, countBlocked: %s',
      async (countBlocked) => {
        const [turns, hits] = isSlow ? [30, 2] : [40, 100];
        const limits = [
          { interval: 60_000, maxInInterval: 10, minDifference: 1 },
          { interval: 3_600_000, maxInInterval: 20 },
        ];
        const { limiter, stateOf, close } = openSome(1, {
          limits,
          countBlocked,
          algorithm,
          blockFor: [1, 2, 3],
        });
        const sizes = new Set();
        for (let turn = 1; turn <= turns; turn++) {
          time.us += 10_000;
          await limiter.attemptMany(Array(hits).fill('a'));
          if (turn <= 25) continue; // a log fills first
          sizes.add(store.isSync ? limiter.stats().bytes : (await stateOf('a')).bytes);
        }
        expect(sizes.size).toBe(1);
        expect([...sizes][0]).toBeLessThan(store.mostBytes);
        await close();
      },
    );

    test('every call settles, even if the limiter closes meanwhile', async () => {
      const { limiter } = openSome(1, { interval: 1000, maxInInterval: 3, algorithm });
      const first = await limiter.attempt('a');
      const call = async (i) => {
        if (i === 30) return limiter.close();
        const id = i % 7 === 0 ? {} : String(i % 3);
        if (i % 5 === 0) return limiter.attemptMany([id, 'b']);
        if (i % 5 === 1) return limiter.refund(first);
        if (i % 5 === 2) return limiter.clear(id);
        if (i % 5 === 3) return new Promise((resolve) => limiter(id, resolve));
        return limiter.limitWithInfo(id);
      };
      const outcomes = await Promise.all(
        Array.from({ length: 60 }, (_unused, i) => outcomeOf(call(i))),
      );
      const codes = outcomes.filter((outcome) => typeof outcome === 'string');
      expect(codes).toContain('ERR_ROLLGATE_ID');
      expect(codes.every((code) => /^ERR_ROLLGATE_/.test(code))).toBe(true);
      expect(outcomes.at(-1)).toBe('ERR_ROLLGATE_CLOSED');
    });
  });

  test('a program with live limiters of every algorithm ends by itself', async () => {
    if (place.inChild === undefined) return;
    const said = await askProgram(`
      const RateLimiter = require('rollgate');
      globalThis.limiters = ${JSON.stringify(ALGORITHM_NAMES)}.map((algorithm) =>
        RateLimiter({ interval: 60_000, maxInInterval: 5, algorithm, blockFor: 1000, ...${place.inChild} }));
      Promise.all(limiters.map((limiter, i) => limiter('exit' + i)))
        .then((answers) => console.log(JSON.stringify(answers)));
    `);
    expect(said).toEqual(ALGORITHM_NAMES.map(() => 0));
  });

  // Kills: actions that are dropped before the newest needs them no more; places that a refund frees in a full log.
  describe.each([
    ['refusals that count', true],
    ['a clock that steps back', false],
  ])('with %s', (_what, countBlocked) => {
    const log = { algorithm: 'sliding-window-log', units, largestMax: countBlocked ? 7 : 30 };

    test('a refund never makes the log allow more', async () => {
      if (!countBlocked && store.expires) return;
      let refunds = 0;
      for (let seed = 1; seed <= 2 * rounds; seed++) {
        const random = randomFrom(seed);
        const policy = { ...randomPolicy(random, log), countBlocked, blockFor: [] };
        const oracle = new Oracle(policy);
        const options = optionsFor(policy);
        if (!countBlocked && random.chance(50)) options.limits[0].name = 'x';
        const { limiter, close } = openSome(1, options);
        let refundable = [];
        for (let turn = 0; turn < 50; turn++) {
          walk(random, policy.unit);
          const cost = randomCost(random, leastOf(policy));
          const context = { seed, turn, policy };
          const decision = await limiter.attempt('a', { cost });
          const expected = oracle.peek(time.us, cost);
          // The store may be more cautious. It records a refusal in either case, if it counts.
          expectEqual(decision.allowed && !expected.allowed, false, context);
          if (decision.allowed || countBlocked) {
            const { attempt } = oracle.attempt(time.us, cost);
            if (decision.allowed) refundable.push([decision, attempt]);
          }
          if (refundable.length === 0 || random.chance(50)) continue;
          const newest = refundable.length - 1;
          const place = countBlocked ? random.between(0, newest) : newest;
          const [[taken, attempt]] = refundable.splice(place, 1);
          const isFound = await limiter.refund(taken);
          if (isFound) oracle.replaceCost(attempt, time.us);
          refunds += 1;
          if (countBlocked) continue;
          expectEqual(isFound, true, context); // as the newest is
          refundable = [];
          if (random.chance(50)) time.us -= random.between(1, 20 * policy.unit);
        }
        await close();
      }
      expect(refunds).toBeGreaterThan(rounds);
    });
  });
});
