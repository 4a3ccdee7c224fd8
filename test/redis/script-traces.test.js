// The Redis scripts against the oracle on random traces: every algorithm, every form of a state, both clocks, costs by
// window. They are asked by limiters whose client runs them in forms that short traces reach.
'use strict';

const { ALGORITHMS } = require('../../lib/options/algorithms');
const SCRIPTS = require('../../lib/stores/redis/scripts');
const { tracesOf } = require('../conformance/corpus');
const { SHORT_UNITS, randomPolicy, randomTrace } = require('../conformance/random-traces');
const { expectTrace, firstDifference } = require('../conformance/replay');
const {
  byEachClock,
  changedLog,
  inMovedTime,
  KEY,
  LOG,
  OF_FRAME,
  policyOf,
  scriptsOnRedis,
  START_US,
  window,
} = require('../support/scripts-on-redis');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const TRACES = casesOf(process.env.ROLLGATE_SANITIZED ? 10 : 20);
const STEPS = 60;
const FUTURE_US = 2_000_000_000_000_001; // keys do not expire by then

/** Logs of more than three actions are rings, so short traces see them grow, turn and shrink. */
const SMALL_RINGS = changedLog(
  ['local MOST_OF_SHORT = 256', 'local MOST_OF_SHORT = 2'],
  ['local FEW_STAMPS = 16', 'local FEW_STAMPS = 1'],
  ['local LAST_OF_FIRST_BYTES = 127', 'local LAST_OF_FIRST_BYTES = 60'],
);
/** Logs with costs are written in parts as soon as they can be. */
const IN_PARTS = changedLog(
  ['local MOST_WASTED = 64', 'local MOST_WASTED = 3'],
  ['local FEW_BYTES = 1024', 'local FEW_BYTES = 40'],
);

/** Durations are multiplied by `scale`, counts by `crowd`. */
function scaledPolicy(random, algorithm, { scale = 1, crowd = 1, simple = false }) {
  const units = SHORT_UNITS.map((unit) => unit * scale);
  const policy = randomPolicy(random, { algorithm, units, largestMax: crowd > 1 ? 10 : Infinity });
  const limits = policy.limits.map(({ interval, maxInInterval }) => {
    return { interval, maxInInterval: maxInInterval * crowd - random.between(0, crowd - 1) };
  });
  const scaled = { ...policy, limits, countsInFull: true };
  if (!simple) return scaled;
  return { ...scaled, limits: limits.slice(0, 1), minDifference: 0, blockFor: [] };
}

/** Of windows with names, which have costs of their own, unless `isNamed` is false. */
function weighedPolicy(random, algorithm, { isNamed = true, unit = 1000, limits, ...kind }) {
  const { largest = [5, 40, 3000], least = 1 } = kind;
  const drawn = Array.from({ length: random.between(1, 3) }, () => ({
    interval: unit * random.pick([3, 10, 25, 60]),
    maxInInterval: random.between(least, random.pick(largest)),
  }));
  return {
    algorithm,
    unit: kind.clockUnit ?? unit,
    limits: (limits ?? drawn).map((limit, w) => (isNamed ? { name: `n${w}`, ...limit } : limit)),
    countBlocked: algorithm === LOG && random.chance(30),
    minDifference: !limits && random.chance(20) ? random.between(1, 2 * unit) : 0,
    blockFor: !limits && random.chance(15) ? [unit, 5 * unit] : [],
  };
}

/** One id at a time, whose attempts are mostly settled. */
const WEIGHING = [
  ...Array(12).fill('attempt'),
  ...Array(3).fill('peek'),
  ...Array(5).fill('settle'),
];

/** Draws the costs of a trace, and what its attempts come to: also more than they have reserved. */
function costsOf({ mostCost = Infinity, overdrafts = [100, 70_000, 2 ** 34] }) {
  const costIn = (random, most) =>
    random.chance(50) ? 1 : random.between(1, Math.min(most, mostCost));
  return {
    complete(random, operation, { limits }) {
      if (!['attempt', 'peek'].includes(operation.kind)) return;
      const most = limits.map(({ maxInInterval }) => maxInInterval);
      const costs = most.map((each) => (random.chance(25) ? 0 : costIn(random, each)));
      const isOne = limits[0].name === undefined || costs.every((cost) => cost === 0);
      operation.cost = isOne ? costIn(random, Math.min(...most)) : costs;
    },
    actual(random, cost) {
      const actualOf = (reserved) => {
        if (random.chance(30)) return 0;
        return random.between(0, random.chance(70) ? reserved : random.pick(overdrafts));
      };
      // Without names, stores keep different amounts of what is above the limit.
      return Array.isArray(cost) ? cost.map(actualOf) : random.between(0, cost);
    },
  };
}

describe('the scripts', () => {
  const script = scriptsOnRedis();
  const { openOn } = script;
  // Traces of one client are groups of one run. Kills: a place in the reply or among the words that is counted from the
  // first group.
  async function expectTraces(traces, open, context) {
    const differences = await Promise.all(traces.map((trace) => firstDifference(trace, open)));
    const first = differences.findIndex((difference) => difference !== null);
    if (first === -1) return;
    await expectTrace(traces[first], open, { ...context, seed: first + 1 }); // alone, and shorter
    expect(differences[first]).toBe(null);
  }

  async function runTraces(algorithm, kind, { source = SCRIPTS[algorithm].source, byServer } = {}) {
    await script.load(source);
    const traces = Array.from({ length: TRACES }, (_, i) => {
      const random = randomFrom(i + 1);
      const drawPolicy = kind.weighs ? weighedPolicy : scaledPolicy;
      const policy = { ...drawPolicy(random, algorithm, kind), countsInFull: true };
      const { start = START_US, steps = STEPS } = kind;
      const weighing = kind.weighs && { ids: ['a'], kinds: WEIGHING, customers: costsOf(kind) };
      return randomTrace(random, { policy, steps, start, byServer, ...weighing });
    });
    await expectTraces(traces, openOn(source, byServer), { algorithm });
  }

  test.each(ALGORITHMS)('%s answers the corpus as the oracle', (algorithm) =>
    expectTraces(tracesOf(algorithm), openOn(SCRIPTS[algorithm].source), { algorithm }),
  );

  test.each([
    ['short logs', SCRIPTS[LOG].source, {}],
    ['short logs under a single window', SCRIPTS[LOG].source, { simple: true }],
    ['windows of hours', SCRIPTS[LOG].source, { scale: 400_000_003 }],
    ['rings', SMALL_RINGS, { crowd: 3 }],
    ['rings with wide stamps', SMALL_RINGS, { crowd: 3, scale: 400_000_003 }],
  ])('sliding-window-log decides as defined: %s', (_, source, kind) =>
    runTraces(LOG, kind, { source }),
  );

  const longLog = [{ interval: 60_000, maxInInterval: 4000 }];
  const shortLog = [{ interval: 40, maxInInterval: 1500 }];
  test.each([
    ['named windows', {}],
    ['named windows of hours', { unit: 400_000_003 }],
    ['one cost for all windows', { isNamed: false, largest: [1e4, 1e6, 1e10], least: 1025 }],
    ['parts of long logs', { limits: longLog, clockUnit: 40, steps: 3 * STEPS, mostCost: 60 }],
    [
      'entries that leave one by one',
      { limits: shortLog, unit: 5, steps: 2 * STEPS, mostCost: 600 },
    ],
  ])('sliding-window-log decides as defined with costs: %s', async (_, kind) => {
    for (const source of [SCRIPTS[LOG].source, IN_PARTS]) {
      await runTraces(LOG, { ...kind, weighs: true }, { source });
      if (kind.limits) await runTraces(LOG, { ...kind, weighs: true, isNamed: false }, { source });
    }
  });

  describe.each(OF_FRAME)('%s', (algorithm) => {
    const kinds = [
      ['short windows', {}],
      ['windows of seconds', { scale: 5000 }],
      ['windows of minutes', { scale: 99_991 }],
      ['windows of months', { scale: 400_000_003 }],
      ['thousands of actions', { scale: 5000, crowd: 5003 }],
    ];
    test.each([
      ...kinds,
      ['times about the epoch', { start: -20_000 }],
      ['millions of actions in hours', { scale: 1_000_003, crowd: 3_000_017 }],
      ['more actions than 32 bits count', { scale: 300_000_007, crowd: 2 ** 40 + 9 }],
    ])('decides as defined: %s', (_, kind) => runTraces(algorithm, kind));

    test.each(kinds)('decides as defined by the clock of the server: %s', (_, kind) =>
      runTraces(
        algorithm,
        { ...kind, start: FUTURE_US },
        { byServer: true, source: inMovedTime(SCRIPTS[algorithm].source) },
      ),
    );
  });

  // A count that is larger than three bytes can tell grows no more by refusals.
  test.each(['fixed-window', 'sliding-window-counter'])(
    '%s decides as defined with costs',
    (name) => runTraces(name, { weighs: true, overdrafts: [70_000] }),
  );

  test('a log gives nothing back that was cleared', async () => {
    for (const [policy, now] of byEachClock(policyOf(LOG))) {
      const cleared = await script.attempt(policy, now);
      await script.redis.flushall();
      const again = await script.attempt(policy, now);
      expect(await script.refund(policy, cleared, now)).toBe(0);
      expect(await script.refund(policy, again, now)).toBe(1);
      await script.redis.flushall();
    }
  });

  test.each([
    [1_000_000, 1000, [300]],
    [1_500_500, 3001, [300]],
    [1_000_001, 1, [300]],
    [1_000_000_000, 1_000_000, [300]],
    [3_600_000_000, 1003, [1, 600]],
  ])(
    'gcra in %d us gives back nothing that was cleared some %d us before',
    async (length, turn, costs) => {
      const sha1 = await script.load(inMovedTime(SCRIPTS.gcra.source));
      const policy = { ...policyOf('gcra', window(length, 1000)), sha1 };
      for (let k = 1; k <= 100; k++) {
        script.setTime(FUTURE_US);
        const cleared = await script.attempt(policy, '', 300);
        await script.redis.del(KEY);
        script.setTime(FUTURE_US + turn * k);
        const receipts = [];
        for (const cost of costs) receipts.push(await script.attempt(policy, '', cost));
        // With a hole in it the bucket is no integer.
        if (costs.length > 1)
          expect(await script.refund(policy, receipts[0], '', costs[0])).toBe(1);
        expect([k, await script.refund(policy, cleared, '', 300)]).toEqual([k, 0]);
        await script.redis.del(KEY);
      }
    },
  );

  test.each([['a'], ['text', 'a']])(
    'fixed-window has no integers of low moments (%s)',
    async (...keys) => {
      const sha1 = await script.load(inMovedTime(SCRIPTS['fixed-window'].source));
      script.setTime(FUTURE_US);
      const policy = { ...policyOf('fixed-window'), sha1 };
      const now = FUTURE_US % 2 ** 32; // so that the generation is what an integer's would be
      await script.redis.set('text', 'x');
      for (let i = 1; i <= 3; i++) {
        const reply = await script.runOn(keys, policy, 'attempt', 'full', now, 1);
        expect(reply.at(-2)).toBe(i);
        expect(await script.redis.strlen('a')).toBe(20);
      }
    },
  );

  // Limiters show ms, so traces hardly ever see it.
  test('gcra rounds times up to a us', async () => {
    const policy = policyOf('gcra', window(1_000_000, 3));
    const times = [];
    for (let i = 0; i < 4; i++) {
      const [, timeLeft, , , wait] = await script.attempt(policy, START_US);
      times.push([timeLeft, wait]);
    }
    expect(times.slice(2)).toEqual([
      [0, 333_334],
      [333_334, 333_334],
    ]);
  });

  const HUGE = 2 ** 53;
  test.each(ALGORITHMS)(
    '%s answers huge numbers with integers, and refuses what is too much',
    async (name) => {
      for (const interval of [1, 2 ** 52, HUGE - 1, HUGE]) {
        for (const now of [-HUGE, -1, 0, 2 ** 52 - 1, HUGE - 1]) {
          const policy = policyOf(name, window(interval, 2));
          const replies = [];
          for (let i = 0; i < 3; i++) replies.push(await script.attempt(policy, now));
          expect(replies.map(([blockedBy]) => blockedBy)).toEqual([0, 0, 1]);
          for (const number of replies.flat()) expect(Number.isInteger(number)).toBe(true);
          expect(replies[2][1]).toBeGreaterThan(0);
          expect(await script.ttl()).toBeGreaterThan(0);
          await script.redis.flushall();
        }
      }
    },
  );
});
