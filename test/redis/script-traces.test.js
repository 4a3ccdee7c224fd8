// The Redis scripts against the oracle on random traces: every algorithm, every form of a state, both clocks.
'use strict';

const { ALGORITHMS } = require('../../lib/options/algorithms');
const SCRIPTS = require('../../lib/stores/redis/scripts');
const { tracesOf } = require('../conformance/corpus');
const {
  SCRIPT_KINDS,
  SHORT_UNITS,
  randomPolicy,
  randomTrace,
} = require('../conformance/random-traces');
const { expectEqual } = require('../support/outcome');
const {
  byEachClock,
  EACH_FORM,
  groupArguments,
  inMovedTime,
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
const IDS = [0, 1]; // also of the corpus

/** Logs of more than three actions are rings, so short traces see them grow, turn and shrink. */
const SMALL_RINGS = SCRIPTS[LOG].source
  .replace('local MOST_OF_SHORT = 256', 'local MOST_OF_SHORT = 2')
  .replace('local FEW_STAMPS = 16', 'local FEW_STAMPS = 1')
  .replace('local LAST_OF_FIRST_BYTES = 127', 'local LAST_OF_FIRST_BYTES = 39');

/** Two keys never have the same generation. */
function withoutGenerations(reply, groups) {
  const kept = [...reply];
  let first = 0;
  for (const { policy, keys, call } of groups) {
    const length = call[1] === 'full' ? 7 + 2 * policy.limits.length : 1;
    for (let i = 0; i < keys.length; i++, first += length) if (length > 1) kept[first + 6] = null;
  }
  expect(reply).toHaveLength(first);
  return kept;
}

let script;

/** Keys are kept from expiring, because the server's own time stands still here. */
async function run(policy, keys, operation, detail, now, cost) {
  const { isByServer } = policy;
  if (isByServer) script.setTime(now);
  const reply = script.runOn(keys, policy, operation, detail, isByServer ? '' : now, cost);
  for (const key of new Set(keys)) script.redis.persist(key);
  return reply;
}

const receiptOf = (reply) => ({ at: reply[5], generation: reply[6] });

const refund = (policy, id, { at, generation }, now, cost) =>
  run(policy, [id], 'refund', [at, generation], now, cost);

/** A full reply on several keys, as one for each, without what is for refunds. */
function decisionsIn(reply, { limits }) {
  const length = 7 + 2 * limits.length;
  const decisions = [];
  for (let first = 0; first < reply.length; first += length) {
    const decision = reply.slice(first, first + length);
    decisions.push([...decision.slice(0, 5), ...decision.slice(7)]);
  }
  return decisions;
}

/** An answer of the oracle in the same form. */
const decisionOf = ({ blockedBy, timeLeft, actionsLeft, resetIn, wait, windows }) => [
  ...[blockedBy, timeLeft, actionsLeft, resetIn, wait],
  ...windows.flatMap(({ used, resetIn }) => [used, resetIn]),
];

/** What the script and the oracle answer. `taken`: what earlier attempts got, by their places. */
async function answersOf(policy, operation, place, answer, taken) {
  const { kind, id, ids, now, cost, of } = operation;
  switch (kind) {
    case 'attempt': {
      const reply = await run(policy, [id], 'attempt', 'full', now, cost);
      taken.set(place, { ...receiptOf(reply), cost, isAllowed: reply[0] === 0 });
      return [decisionsIn(reply, policy), [decisionOf(answer)]];
    }
    case 'peek':
    case 'usage': {
      const brief = await run(policy, [id], 'peek', 'brief', now, cost ?? 0);
      const full = await run(policy, [id], 'peek', 'full', now, cost ?? 0);
      return [brief.concat(decisionsIn(full, policy)), [answer.timeLeft, decisionOf(answer)]];
    }
    case 'batch': {
      if (ids.length === 0) return [[], []];
      const detail = place % 2 === 0 ? 'full' : 'brief';
      const reply = await run(policy, ids, 'attempt', detail, now, cost);
      if (detail === 'brief') return [reply, answer.map(({ timeLeft }) => timeLeft)];
      return [decisionsIn(reply, policy), answer.map(decisionOf)];
    }
    case 'refund': {
      // As the package does it: once, and only what was allowed.
      const attempt = taken.get(of);
      if (!attempt.isAllowed) return [false, answer];
      const [found] = await refund(policy, id, attempt, now, attempt.cost);
      if (found === 1) attempt.isAllowed = false;
      return [found === 1, answer];
    }
    default:
      await script.redis.del(...(kind === 'clear' ? [id] : IDS));
      return [null, answer];
  }
}

async function expectTrace({ policy, operations, answers }, context) {
  const taken = new Map();
  for (const [place, operation] of operations.entries()) {
    const [came, expected] = await answersOf(policy, operation, place, answers[place], taken);
    expectEqual(came, expected, { ...context, policy, place, operation });
  }
  await script.redis.flushall();
}

/** Durations are multiplied by `scale`, counts by `crowd`. */
function randomPolicyOf(random, algorithm, { scale = 1, crowd = 1, simple = false }) {
  const units = SHORT_UNITS.map((unit) => unit * scale);
  const policy = randomPolicy(random, { algorithm, units, largestMax: crowd > 1 ? 10 : Infinity });
  const limits = policy.limits.map(({ interval, maxInInterval }) => {
    return { interval, maxInInterval: maxInInterval * crowd - random.between(0, crowd - 1) };
  });
  if (!simple) return { ...policy, limits };
  return { ...policy, limits: limits.slice(0, 1), minDifference: 0, blockFor: [] };
}

async function runTraces(algorithm, kind, changes) {
  for (let seed = 1; seed <= TRACES; seed++) {
    const random = randomFrom(seed);
    const policy = { ...randomPolicyOf(random, algorithm, kind), countsInFull: true, ...changes };
    const { isByServer: byServer } = changes;
    const start = kind.start ?? START_US;
    const options = { policy, steps: STEPS, ids: IDS, kinds: SCRIPT_KINDS, start, byServer };
    await expectTrace(randomTrace(random, options), { seed });
  }
}

describe('the scripts', () => {
  script = scriptsOnRedis();

  test.each(ALGORITHMS)('%s answers the corpus as the oracle', async (algorithm) => {
    for (const [trace, each] of tracesOf(algorithm).entries()) await expectTrace(each, { trace });
  });

  describe('sliding-window-log', () => {
    test.each([
      ['short logs', SCRIPTS[LOG].source, {}],
      ['short logs under a single window', SCRIPTS[LOG].source, { simple: true }],
      ['windows of hours', SCRIPTS[LOG].source, { scale: 400_000_003 }],
      ['rings', SMALL_RINGS, { crowd: 3 }],
      ['rings with wide stamps', SMALL_RINGS, { crowd: 3, scale: 400_000_003 }],
    ])('decides as defined: %s', async (_, source, kind) => {
      const sha1 = await script.load(source);
      await runTraces(LOG, kind, { sha1 });
    });

    test('was tried with rings', () => {
      const changed = /MOST_OF_SHORT = 2\n|FEW_STAMPS = 1\n|BYTES = 39\n/g;
      expect(SMALL_RINGS.match(changed)).toHaveLength(3);
    });
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
    ])('decides as defined: %s', (_, kind) => runTraces(algorithm, kind, {}));

    test.each(kinds)('decides as defined by the clock of the server: %s', async (_, kind) => {
      const sha1 = await script.load(inMovedTime(SCRIPTS[algorithm].source));
      await runTraces(algorithm, { ...kind, start: FUTURE_US }, { isByServer: true, sha1 });
    });
  });

  // Kills: a place in the reply or among the words that is counted from the first group; a state that an earlier
  // group has overwritten.
  test.each(ALGORITHMS)('%s decides groups in one run as in a run for each', async (algorithm) => {
    const policies = (random) =>
      Array.from({ length: 3 }, () => randomPolicyOf(random, algorithm, { scale: 5000 }));
    for (let seed = 1; seed <= TRACES; seed++) {
      const random = randomFrom(seed);
      const ofIds = [policies(random), policies(random)];
      let now = START_US;
      for (let step = 0; step < STEPS; step++) {
        now += random.between(0, 2_000_000);
        const groups = Array.from({ length: random.between(2, 6) }, () => {
          const policy = random.pick(ofIds.flat());
          const place = ofIds.flat().indexOf(policy);
          const keys = Array.from(
            { length: random.between(1, 3) },
            () => `${place}{${random.between(0, 3)}}`,
          );
          return { policy, keys, call: ['attempt', random.pick(['brief', 'full']), now, 1] };
        });
        const expected = [];
        for (const { policy, keys, call } of groups) {
          const apart = keys.map((key) => `apart${key}`);
          expected.push(...(await script.runOn(apart, policy, ...call)));
        }
        const run = groupArguments('together, keys repeat', groups);
        const reply = await script.redis.evalsha(...run);
        expectEqual(withoutGenerations(reply, groups), withoutGenerations(expected, groups), {
          seed,
          step,
        });
      }
      await script.redis.flushall();
    }
  });

  test.each(EACH_FORM)('%s with %s gives nothing back that was cleared', async (_, __, policy) => {
    const usedOf = async (each, now) => (await script.peek(each, now, 0))[7];
    for (const [each, now] of [...byEachClock(policy), ...byEachClock(policy)]) {
      const cleared = await script.attempt(each, now);
      await script.redis.flushall();
      const again = await script.attempt(each, now);
      expect(await script.refund(each, cleared, now)).toBe(0);
      expect(await usedOf(each, now)).toBe(1);
      expect(await script.refund(each, again, now)).toBe(1);
      expect(await usedOf(each, now)).toBe(0);
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
      const policy = { ...policyOf('gcra', window(length, 1000)), isByServer: true, sha1 };
      const attempt = async (now, cost) =>
        receiptOf(await run(policy, ['a'], 'attempt', 'full', now, cost));
      for (let k = 1; k <= 100; k++) {
        const cleared = await attempt(FUTURE_US, 300);
        await script.redis.del('a');
        const now = FUTURE_US + turn * k;
        const receipts = [];
        for (const cost of costs) receipts.push(await attempt(now, cost));
        // With a hole in it the bucket is no integer.
        if (costs.length > 1) {
          expect(await refund(policy, 'a', receipts[0], now, costs[0])).toEqual([1]);
        }
        const found = await refund(policy, 'a', cleared, now, 300);
        expect({ k, found }).toEqual({ k, found: [0] });
        await script.redis.del('a');
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
