// The Redis scripts against the oracle on random traces: every algorithm, every form of a state, both clocks.
'use strict';

const { ALGORITHMS } = require('../../lib/algorithms');
const { attemptOn } = require('../../lib/redis/script');
const SCRIPTS = require('../../lib/redis/scripts');
const { Oracle } = require('../conformance/oracle');
const {
  inMovedTime,
  LOG,
  OF_FRAME,
  policyOf,
  scriptsOnRedis,
  START_US,
  window,
} = require('../support/scripts-on-redis');
const { casesOf } = require('../support/tiers');
const { randomFrom, randomPolicy, randomStep } = require('../support/traces');

const TRACES = casesOf(process.env.ROLLGATE_SANITIZED ? 10 : 20);
const STEPS = 60;
const FUTURE_US = 2_000_000_000_000_001; // keys do not expire by then
const IDS = ['a', 'b', 'c'];

/** Logs of more than three actions are rings, so short traces see them grow, turn and shrink. */
const SMALL_RINGS = SCRIPTS[LOG].source
  .replace('local MOST_OF_SHORT = 256', 'local MOST_OF_SHORT = 2')
  .replace('local FEW_STAMPS = 16', 'local FEW_STAMPS = 1')
  .replace('local LAST_OF_FIRST_BYTES = 127', 'local LAST_OF_FIRST_BYTES = 39');

let script;

/** Keys are kept from expiring, because the server's own time stands still here. */
function run(policy, keys, [operation, detail, now, cost]) {
  const { isByServer } = policy;
  if (isByServer) script.setTime(now);
  const reply = script.runOn(keys, policy, operation, detail, isByServer ? '' : now, cost);
  for (const key of new Set(keys)) script.redis.persist(key);
  return reply;
}

const lengthOf = ({ limits }) => 7 + 2 * limits.length;

function answerOf(reply, policy, i = 0) {
  const [blockedBy, timeLeft, actionsLeft, resetIn, wait, , , ...windows] = reply.slice(
    i * lengthOf(policy),
    (i + 1) * lengthOf(policy),
  );
  return { blockedBy, timeLeft, actionsLeft, resetIn, wait, windows };
}

/** An answer of the oracle in the form of answerOf(). */
function expectedOf({ blockedBy, timeLeft, actionsLeft, resetIn, wait, windows }) {
  const uses = windows.flatMap((window) => [window.used, window.resetIn]);
  return { blockedBy, timeLeft, actionsLeft, resetIn, wait, windows: uses };
}

function receiptOf(reply, policy, i = 0) {
  const [at, generation] = reply.slice(i * lengthOf(policy) + 5);
  return { at, generation };
}

/** Random policies; `unit` as in traces.js. Durations are multiplied by `scale`, counts by `crowd`. */
function randomPolicyOf(random, algorithm, { scale = 1, crowd = 1, simple = false }) {
  const countBlocked = algorithm !== 'gcra' && random.chance(50);
  const { unit, limits, minDifference } = randomPolicy(random, { countBlocked });
  const blockFor = random.chance(35)
    ? Array.from({ length: random.between(1, 3) }, () => random.between(1, 60) * unit * scale)
    : [];
  return {
    algorithm,
    countBlocked,
    unit: unit * scale,
    limits: (simple || random.chance(50) ? limits.slice(0, 1) : limits).map((limit) => ({
      interval: limit.interval * scale,
      maxInInterval: limit.maxInInterval * crowd - random.between(0, crowd - 1),
    })),
    minDifference: simple || random.chance(60) ? 0 : minDifference * scale,
    blockFor: simple ? [] : blockFor,
  };
}

/** A log is exact unless refusals count; gcra by the server's clock forgets what leaked before a step back. */
function canRefund({ algorithm, countBlocked, isByServer }, now, latest) {
  return algorithm === LOG ? !countBlocked : !isByServer || now >= latest;
}

const retentionOf = ({ minDifference, limits }) =>
  Math.max(minDifference, ...limits.map(({ interval }) => interval));

async function runTrace(seed, policy, random, { start = START_US, crowd = 1 }) {
  const smallestMax = Math.min(...policy.limits.map((limit) => limit.maxInInterval));
  const oracles = Object.fromEntries(IDS.map((id) => [id, new Oracle(policy)]));
  const refundable = [];
  let now = start;
  let notBefore = Number.NEGATIVE_INFINITY;
  let latest = start;
  for (let step = 0; step < STEPS; step++) {
    const context = { seed, step, policy, now };
    now += randomStep(random, policy.unit);
    if (random.chance(6)) now -= random.between(1, 20 * policy.unit);
    now = Math.max(now, notBefore);
    latest = Math.max(latest, now);
    const cost = random.chance(30)
      ? random.between(1, Math.min(smallestMax, 50))
      : Math.min(smallestMax, crowd);
    const kind = random.between(1, 9);
    if (kind <= 2) {
      const id = random.pick(IDS);
      const peekCost = random.chance(20) ? 0 : cost;
      const answer = answerOf(await run(policy, [id], ['peek', 'full', now, peekCost]), policy);
      const expected = expectedOf(oracles[id].peek(now, peekCost));
      expect({ ...context, ...answer }).toEqual({ ...context, ...expected });
      const [brief] = await run(policy, [id], ['peek', 'brief', now, peekCost]);
      expect({ ...context, brief }).toEqual({ ...context, brief: expected.timeLeft });
    } else if (kind <= 4) {
      const ids = Array.from({ length: random.between(1, 5) }, () => random.pick(IDS));
      const reply = await run(policy, ids, [attemptOn(ids), 'brief', now, cost]);
      const expected = ids.map((id) => oracles[id].attempt(now, cost).timeLeft);
      expect({ ...context, reply }).toEqual({ ...context, reply: expected });
    } else if (kind === 5 && refundable.length > 0 && canRefund(policy, now, latest)) {
      const [taken] = refundable.splice(random.between(0, refundable.length - 1), 1);
      const words = ['refund', `${taken.at},${taken.generation}`, now, taken.cost];
      const isKnown = taken.oracle === oracles[taken.id];
      const was = isKnown && taken.oracle.refund(taken.attempt, now);
      if (was === undefined) continue; // both answers are allowed
      const [found] = await run(policy, [taken.id], words);
      if (policy.algorithm === LOG) {
        notBefore = Math.max(notBefore, taken.at);
        // What has left every window may be forgotten, even if the clock steps back later.
        if (found === 0 && latest - taken.at >= retentionOf(policy)) continue;
      }
      expect({ ...context, found }).toEqual({ ...context, found: was ? 1 : 0 });
    } else if (kind === 6 && policy.isByServer) {
      const id = random.pick(IDS);
      await script.redis.del(id);
      oracles[id] = new Oracle(policy);
      now = latest + 1;
    } else {
      const ids = Array.from({ length: random.between(1, 3) }, () => random.pick(IDS));
      const reply = await run(policy, ids, [attemptOn(ids), 'full', now, cost]);
      for (const [i, id] of ids.entries()) {
        const oracle = oracles[id];
        const expected = oracle.attempt(now, cost);
        const answer = answerOf(reply, policy, i);
        expect({ ...context, i, ...answer }).toEqual({ ...context, i, ...expectedOf(expected) });
        if (expected.blockedBy !== 0) continue;
        const { attempt } = expected;
        refundable.push({ id, oracle, cost, attempt, ...receiptOf(reply, policy, i) });
      }
    }
  }
}

async function runTraces(algorithm, kind, changes) {
  for (let seed = 1; seed <= TRACES; seed++) {
    const random = randomFrom(seed);
    const policy = { ...randomPolicyOf(random, algorithm, kind), ...changes };
    await runTrace(seed, policy, random, kind);
    await script.redis.flushall();
  }
}

describe('the scripts', () => {
  script = scriptsOnRedis();

  describe('sliding-window-log', () => {
    test.each([
      ['short logs', SCRIPTS[LOG].source, {}],
      ['short logs under a single window', SCRIPTS[LOG].source, { simple: true }],
      ['windows of hours', SCRIPTS[LOG].source, { scale: 400_000_003 }],
      ['rings', SMALL_RINGS, {}],
      ['rings with wide stamps', SMALL_RINGS, { scale: 400_000_003 }],
    ])('decides as defined: %s', async (_, source, kind) => {
      const sha1 = await script.load(source);
      await runTraces(LOG, kind, { sha1 });
    });

    test('was tried with rings', () => {
      expect(SMALL_RINGS.match(/MOST_OF_SHORT = 2\n|FEW_STAMPS = 1\n|BYTES = 39\n/g)).toHaveLength(
        3,
      );
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
        receiptOf(await run(policy, ['a'], ['attempt', 'full', now, cost]), policy);
      const refund = (now, cost, { at, generation }) =>
        run(policy, ['a'], ['refund', `${at},${generation}`, now, cost]);
      for (let k = 1; k <= 100; k++) {
        const cleared = await attempt(FUTURE_US, 300);
        await script.redis.del('a');
        const now = FUTURE_US + turn * k;
        const receipts = [];
        for (const cost of costs) receipts.push(await attempt(now, cost));
        // With a hole in it the bucket is no integer.
        if (costs.length > 1) expect(await refund(now, costs[0], receipts[0])).toEqual([1]);
        expect({ k, found: await refund(now, 300, cleared) }).toEqual({ k, found: [0] });
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
        expect(await script.redis.strlen('a')).toBe(16);
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

  test.each(OF_FRAME)('%s counts costs up to 2^53', async (name) => {
    const policy = policyOf(name, window(60_000_000, HUGE - 1));
    const half = 2 ** 52;
    expect((await script.attempt(policy, START_US, half))[2]).toBe(half - 1);
    expect((await script.attempt(policy, START_US, half))[0]).toBe(1);
    expect((await script.attempt(policy, START_US, half - 1)).slice(0, 3)).toEqual([0, 0, 0]);
    const [, timeLeft] = await script.attempt(policy, START_US, 1);
    expect(timeLeft).toBeGreaterThan(0);
    expect((await script.peek(policy, START_US + timeLeft - 1))[0]).toBe(1);
    expect((await script.peek(policy, START_US + timeLeft))[0]).toBe(0);
  });
});
