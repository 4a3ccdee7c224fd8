// Costs by window and settled attempts in the Redis scripts: random traces against an oracle that keeps every entry.
'use strict';

const SCRIPTS = require('../../lib/stores/redis/scripts');
const { callNumbers, groupHead, runWords } = require('../../lib/stores/redis/script');
const { OPERATIONS, isAttempt } = require('../../lib/stores/remote/operations');
const { Oracle, RULES } = require('../conformance/oracle');
const { expectEqual } = require('../support/outcome');
const { LOG, policyNumbers, scriptsOnRedis, START_US } = require('../support/scripts-on-redis');
const { casesOf } = require('../support/tiers');
const { randomFrom, randomStep } = require('../support/traces');

const TRACES = casesOf(process.env.ROLLGATE_SANITIZED ? 20 : 60);
const STEPS = 80;
const [ONE_AMOUNT, AMOUNTS] = [-1, -2]; // in place of a cost
const NEVER = 9; // why an attempt is refused that cannot pass
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const { max, min } = Math;

/**
 * The oracle of a policy. Logs with costs keep every entry, whether their windows have names or not, and the oracle
 * knows that of windows with names.
 */
function oracleOf(policy) {
  const limits = policy.limits.map((limit, w) => ({ ...limit, name: `window ${w}` }));
  return new Oracle({ ...policy, limits });
}

/** An answer of the oracle as the script gives it, but for the moment and the generation. */
function numbersOf(answer, { limits, countBlocked, algorithm, isNamed }) {
  const { neverPasses, blockedBy, timeLeft, actionsLeft, resetIn, wait, windows } = answer;
  const keepsMax = countBlocked && algorithm === LOG && !isNamed;
  const longest = max(...limits.map(({ interval }) => interval));
  const uses = windows.map((use, w) => [
    keepsMax ? min(use.used, limits[w].maxInInterval) : use.used,
    use.resetIn,
  ]);
  const why = neverPasses ? [NEVER, longest] : [blockedBy, timeLeft];
  return [...why, actionsLeft, resetIn, wait, ...uses.flat()];
}

const clockOf = (random, unit) => {
  let now = START_US;
  return () => {
    now += random.chance(10) ? -random.between(1, 3 * unit) : randomStep(random, unit);
    return now;
  };
};

/** The log with few entries before it merges them, and written in parts as soon as it can be. */
const CHANGES = [
  ['MOST_ENTRIES = 0xA6, 1024', 'MOST_ENTRIES = 0xA6, 16'],
  ['local CELLS = 512', 'local CELLS = 8'],
  ['local MOST_WASTED = 64', 'local MOST_WASTED = 3'],
  ['local FEW_BYTES = 1024', 'local FEW_BYTES = 40'],
];
const changed = (source, changes) =>
  changes.reduce((text, [from, to]) => text.replace(from, to), source);
const IN_PARTS = changed(SCRIPTS[LOG].source, CHANGES.slice(2));
const MERGING = changed(SCRIPTS[LOG].source, CHANGES);

describe('the scripts with costs', () => {
  const script = scriptsOnRedis();

  function run(policy, key, operation, { isFull = true, now, cost, receipt = [] }) {
    let [number, amounts] = [cost, []];
    if (typeof cost !== 'number') [number, amounts] = [policy.isNamed ? AMOUNTS : ONE_AMOUNT, cost];
    else if (cost > 1) [number, amounts] = [ONE_AMOUNT, [cost]]; // as the native client
    const call = callNumbers(OPERATIONS[operation], isFull, now, number, ...receipt);
    const isApart = policy.algorithm === LOG || !isAttempt(call[0]);
    const question = { head: groupHead(call, policyNumbers(policy)), isApart };
    return script.redis.evalsha(
      policy.sha1 ?? SCRIPTS[policy.algorithm].sha1,
      ...runWords([{ question, keys: [key], amounts }]),
    );
  }

  const costOf = ({ isNamed }, costs) => (isNamed ? costs : costs[0]);
  /** What an attempt cost, and what it came to. */
  const settledCostOf = ({ isNamed }, costs, actual) =>
    isNamed ? [...costs, ...actual] : [costs[0], actual[0]];

  const decisionIn = (reply) => [...reply.slice(0, 5), ...reply.slice(7)];

  /** Attempts, peeks and settlements at random; `check(came, expected)` for each. */
  async function runTrace(random, policy, { key, steps, unit, mostCost, largestActual, check }) {
    const oracle = oracleOf(policy);
    const rule = RULES[policy.algorithm];
    const next = clockOf(random, unit);
    const made = [];
    // Behind an attempt that was settled, a log may be more cautious: see traces.test.js.
    let notBefore = -Infinity;
    const costsOf = () => {
      for (;;) {
        const smallest = min(...policy.limits.map((limit) => limit.maxInInterval));
        const one = random.between(1, min(smallest, mostCost));
        const costs = policy.limits.map(({ maxInInterval }) => {
          if (!policy.isNamed) return random.chance(50) ? 1 : one;
          if (random.chance(25)) return 0;
          return random.chance(50) ? 1 : random.between(1, min(maxInInterval, mostCost));
        });
        if (random.chance(5)) costs[0] = policy.limits[0].maxInInterval + 1;
        if (!policy.isNamed) costs.fill(costs[0]);
        if (sum(costs) > 0) return costs;
      }
    };
    for (let step = 0; step < steps; step++) {
      const now = max(next(), notBefore);
      const kind = random.between(1, 100);
      const context = { policy, step, now };
      if (kind <= 60) {
        const costs = costsOf();
        const reply = await run(policy, key, 'ATTEMPT', { now, cost: costOf(policy, costs) });
        const answer = oracle.attempt(now, costs);
        check(decisionIn(reply), numbersOf(answer, policy), { ...context, costs });
        const { attempt } = answer;
        if (reply[0] === 0) made.push({ attempt, costs, receipt: reply.slice(5, 7) });
      } else if (kind <= 75) {
        const costs = random.chance(20) ? policy.limits.map(() => 0) : costsOf();
        const reply = await run(policy, key, 'PEEK', { now, cost: costOf(policy, costs) });
        const expected = numbersOf(oracle.peek(now, costs), policy);
        check(decisionIn(reply), expected, { ...context, costs });
      } else if (kind <= 97) {
        if (made.length === 0) continue;
        const [{ attempt, costs, receipt }] = made.splice(random.between(0, made.length - 1), 1);
        const actual = costs.map((cost) =>
          random.chance(30) ? 0 : random.between(0, largestActual(cost)),
        );
        if (!policy.isNamed || random.chance(20)) actual.fill(actual[0]);
        const cost = settledCostOf(policy, costs, actual);
        const [found] = await run(policy, key, 'SETTLE', { isFull: false, now, cost, receipt });
        // Also where refusals count: nothing displaces an entry.
        const kept = { ...oracle.policy, countBlocked: false };
        const record = oracle.refundable.get(attempt);
        const isKnown = rule.findsIn(oracle.state.history, record, kept, now) ?? found === 1;
        check(found, Number(isKnown), context);
        if (isKnown) oracle.replaceCost(attempt, now, actual);
        notBefore = max(notBefore, receipt[0]);
      } else {
        await script.redis.del(key);
        oracle.clear();
        for (const { receipt } of made) {
          const each = (value) => policy.limits.map(() => value);
          const cost = settledCostOf(policy, each(1), each(0));
          const [found] = await run(policy, key, 'SETTLE', { isFull: false, now, cost, receipt });
          expect(found).toBe(0);
        }
        made.length = 0;
      }
      await script.redis.persist(key);
    }
  }

  function randomPolicy(random, algorithm, { isNamed, unit, largest = [5, 40, 3000], least = 1 }) {
    const limits = Array.from({ length: random.between(1, 3) }, () => ({
      interval: unit * random.pick([3, 10, 25, 60]),
      maxInInterval: random.between(least, random.pick(largest)),
    }));
    return {
      algorithm,
      isNamed,
      limits,
      countBlocked: random.chance(30),
      minDifference: random.chance(20) ? random.between(1, 2 * unit) : 0,
      blockFor: random.chance(15) ? [unit, 5 * unit] : [],
    };
  }

  const overdraft = (random) => (cost) =>
    random.chance(70) ? cost : random.pick([2 * cost, 100, 70_000, 2 ** 34]);

  async function runTraces(algorithm, options) {
    const {
      unit = 1000,
      actuals = overdraft,
      clockUnit = unit,
      steps = STEPS,
      mostCost = Infinity,
    } = options;
    const traces = Array.from({ length: TRACES }, async (_, seed) => {
      const random = randomFrom(seed + 1);
      const policy = {
        ...randomPolicy(random, algorithm, { unit, ...options }),
        ...options.changes,
      };
      await runTrace(random, policy, {
        key: `k{${seed}}`,
        unit: clockUnit,
        steps,
        mostCost,
        largestActual: actuals(random),
        check: (came, expected, context) => expectEqual(came, expected, { seed, ...context }),
      });
    });
    const failed = (await Promise.allSettled(traces)).find(({ reason }) => reason);
    if (failed) throw failed.reason;
  }

  test.each([
    ['named windows', { isNamed: true }],
    ['named windows of hours', { isNamed: true, unit: 400_000_003 }],
    ['one cost for all windows', { isNamed: false, largest: [1e4, 1e6, 1e10], least: 1025 }],
  ])('sliding-window-log decides as defined: %s', async (_, options) => {
    for (const source of [SCRIPTS[LOG].source, IN_PARTS]) {
      const changes = { sha1: await script.load(source) };
      await runTraces(LOG, { ...options, changes });
      await script.redis.flushall();
    }
  });

  test.each([true, false])(
    'sliding-window-log decides on parts of long logs, %s',
    async (isNamed) => {
      const limits = [{ interval: 60_000, maxInInterval: 4000 }];
      for (const countBlocked of [false, true]) {
        const changes = { limits, countBlocked, minDifference: 0, blockFor: [] };
        const clock = { unit: 1000, clockUnit: 40 };
        await runTraces(LOG, { isNamed, changes, ...clock, steps: 4 * STEPS, mostCost: 60 });
        await script.redis.flushall();
      }
    },
  );

  test.each([true, false])(
    'sliding-window-log decides where entries of a single window leave one by one, %s',
    async (isNamed) => {
      const limits = [{ interval: 40, maxInInterval: 1500 }];
      for (const source of [SCRIPTS[LOG].source, IN_PARTS]) {
        for (const countBlocked of [false, true]) {
          const sha1 = await script.load(source);
          const changes = { sha1, limits, countBlocked, minDifference: 0, blockFor: [] };
          await runTraces(LOG, { isNamed, changes, unit: 5, steps: 2 * STEPS, mostCost: 600 });
          await script.redis.flushall();
        }
      }
    },
  );

  test('sliding-window-log is written whole where many entries leave at once', async () => {
    const limits = [{ interval: 1000, maxInInterval: 2000 }];
    const policy = { algorithm: LOG, limits, minDifference: 0, blockFor: [], countBlocked: false };
    const usedAt = async (us) =>
      (await run(policy, 'k', 'ATTEMPT', { now: START_US + us, cost: 2 }))[7];
    for (let us = 0; us < 70; us++) expect(await usedAt(us)).toBe(2 * (us + 1));
    expect(await usedAt(1066)).toBe(2 * 4);
    expect(await usedAt(1067)).toBe(2 * 4);
    // Those that the newest but one needs, and one that is dropped.
    expect(await script.redis.strlen('k')).toBe(47 + 8 * 6);
    expect((await run(policy, 'k', 'PEEK', { now: START_US + 1067, cost: 0 }))[7]).toBe(2 * 4);
  });

  test('sliding-window-log resets where the oldest entry that cost something leaves', async () => {
    const limits = [1000, 2000].map((maxInInterval) => ({ interval: 1000, maxInInterval }));
    const two = { algorithm: LOG, isNamed: true, limits, minDifference: 0, blockFor: [] };
    const one = { ...two, limits: limits.slice(0, 1) };
    const resetAfter = async (policy, us, ...cost) =>
      (await run(policy, 'k', 'ATTEMPT', { now: START_US + us, cost }))[8];
    await resetAfter(two, 0, 0, 5);
    expect(await resetAfter(two, 10, 5, 5)).toBe(1000);
    for (const us of [20, 21, 22]) expect(await resetAfter(one, us, 1)).toBe(1010 - us);
    expect(await resetAfter(one, 1010, 1)).toBe(10);
  });

  test.each(['fixed-window', 'sliding-window-counter'])(
    '%s decides as defined',
    async (algorithm) => {
      for (const isNamed of [true, false]) {
        // A count that is larger than three bytes can tell grows no more by refusals.
        await runTraces(algorithm, {
          isNamed,
          actuals: (random) => (cost) => random.pick([cost, 2 * cost, 70_000]),
        });
        await script.redis.flushall();
      }
    },
  );

  /** What the windows would use if each entry of these came back so much later as merging may make it. */
  function lateUse({ limits }, entries, at, cells) {
    return limits.map(({ interval }, w) => {
      const late = (2 * interval * limits.length) / cells;
      return sum(
        entries.filter((entry) => entry.at > at - interval - late).map(({ costs }) => costs[w]),
      );
    });
  }

  test.each([
    ['named windows', { isNamed: true }],
    ['one cost for all windows', { isNamed: false, least: 1025, largest: [2000, 5000] }],
  ])('a log of too many entries gives room back late, within the bound: %s', async (_, options) => {
    const sha1 = await script.load(MERGING);
    const cells = 8;
    await Promise.all(
      Array.from({ length: TRACES }, async (_each, seed) => {
        const random = randomFrom(seed + 1);
        const policy = {
          ...randomPolicy(random, LOG, { unit: 20_000, ...options }),
          ...{ sha1, countBlocked: false, minDifference: 0, blockFor: [] },
        };
        const { limits } = policy;
        const key = `k{${seed}}`;
        let entries = [];
        let now = START_US;
        for (let step = 0; step < 5 * STEPS; step++) {
          now += random.between(0, 3000);
          const context = { seed, step, policy, now };
          const costs = limits.map(({ maxInInterval }) =>
            random.chance(70) ? 1 : random.between(options.isNamed ? 0 : 1, maxInInterval),
          );
          if (!policy.isNamed) costs.fill(min(...costs));
          if (sum(costs) === 0) continue;
          const cost = costOf(policy, costs);
          const reply = await run(policy, key, 'ATTEMPT', { now, cost });
          const used = limits.map(({ interval }, w) =>
            sum(entries.filter(({ at }) => at > now - interval).map((entry) => entry.costs[w])),
          );
          const isFull = (uses) =>
            limits.some(
              ({ maxInInterval }, w) => costs[w] > 0 && uses[w] + costs[w] > maxInInterval,
            );
          if (reply[0] === 0) {
            expect({ ...context, isFull: isFull(used) }).toEqual({ ...context, isFull: false });
            const entry = { at: now, costs };
            entries.push(entry);
            if (random.chance(30)) {
              const actual = costs.map((each) => random.between(0, 2 * each));
              if (!policy.isNamed) actual.fill(actual[0]);
              const receipt = reply.slice(5, 7);
              const settledCost = settledCostOf(policy, costs, actual);
              const settled = { isFull: false, now, cost: settledCost, receipt };
              expect(await run(policy, key, 'SETTLE', settled)).toEqual([1]);
              entry.costs = actual;
            }
          } else {
            const isRight = isFull(lateUse(policy, entries, now, cells));
            expect({ ...context, isRight }).toEqual({ ...context, isRight: true });
          }
          entries = entries.filter(({ at }) => at > now - 3_000_000);
          await script.redis.persist(key);
        }
        expect(await script.redis.strlen(key)).toBeLessThan(56 + 25 * (8 + 7 * 3));
        const longest = max(...limits.map(({ interval }) => interval));
        const usage = await run(policy, key, 'PEEK', {
          now: now + longest,
          cost: costOf(
            policy,
            limits.map(() => 0),
          ),
        });
        expect(limits.map((_limit, w) => usage[7 + 2 * w])).toEqual(limits.map(() => 0));
      }),
    );
  });
});
