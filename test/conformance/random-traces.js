// Random traces: drawn from a seed, answered by the oracle, replayed on limiters, shortened if they fail.
'use strict';

const { isDeepStrictEqual } = require('node:util');
const { BLOCKED_BY, Oracle, RULES, decisionOf, toMs, usageOf } = require('./oracle');
const { costOption, maximaOf, optionsOfTerms, termsOf, windowOption } = require('./plans');

const IDS = ['a', 'ü}{', 'an id of more than sixteen characters'];
const MINUTE = 60_000_000;
const DAY = 24 * 60 * MINUTE;

/** Durations are multiples of a unit, so that boundaries and ties are frequent. */
const SHORT_UNITS = [1, 10, 1000];
/** For stores whose keys expire in real time: nothing expires while a test lasts. */
const LONG_UNITS = [MINUTE, 99_999_999, DAY / 8];

const HUGE_COUNTS = [2 ** 24 - 2, 2 ** 24 - 1, 2 ** 24, 2 ** 32 + 1, 2 ** 45, 2 ** 53 - 1];
const LARGE_COUNTS = [256, 257, 258, 1000, 1001, 1001, 1501, 2999];

function randomMax(random, algorithm) {
  if (random.chance(85)) return random.between(1, 7);
  if (random.chance(35)) return random.between(8, 40);
  const keepsLog = algorithm === 'sliding-window-log';
  return random.pick(keepsLog || random.chance(50) ? LARGE_COUNTS : HUGE_COUNTS);
}

/** A policy of the oracle, and its `unit`. `largestMax`: no window allows more. */
function randomPolicy(random, { algorithm, units, largestMax = Infinity }) {
  const unit = random.pick(units);
  const limits = Array.from({ length: random.chance(50) ? 1 : random.between(2, 3) }, () => ({
    interval: random.between(1, 40) * unit,
    maxInInterval: Math.min(randomMax(random, algorithm), largestMax),
  }));
  const blocks = random.chance(55) ? 0 : random.between(1, 3);
  // Small limits are exceeded more often.
  if (blocks > 0 && random.chance(60)) limits[0].maxInInterval = random.between(1, 2);
  return {
    algorithm,
    unit,
    limits,
    minDifference: random.chance(30) ? random.between(1, 12) * unit : 0,
    countBlocked: RULES[algorithm].countsBlocked && random.chance(50),
    blockFor: Array.from({ length: blocks }, () => random.between(1, 60) * unit),
  };
}

/** One window and nothing else, with so many actions that roundings add up. */
function largePolicy(random, { algorithm, units }) {
  const unit = random.pick(units);
  return {
    algorithm,
    unit,
    limits: [{ interval: random.between(7, 40) * unit, maxInInterval: random.pick(LARGE_COUNTS) }],
    minDifference: 0,
    countBlocked: RULES[algorithm].countsBlocked && random.chance(50),
    blockFor: [],
  };
}

/** Before, after and at the epoch; now. */
function randomStart(random, unit) {
  return random.pick([
    1_700_000_000_000_000 + random.between(0, 100 * unit),
    random.between(-50, 50) * unit,
    -random.between(0, 100 * unit),
  ]);
}

function randomCost(random, largestCost) {
  if (random.chance(65)) return 1;
  if (largestCost > 100 && random.chance(80)) {
    return random.chance(50)
      ? largestCost
      : random.between(Math.ceil(largestCost / 4), largestCost);
  }
  return random.between(1, largestCost);
}

/** The moments in an answer at which one microsecond makes the difference. */
function boundariesOf({ timeLeft, wait, windows }, now, { blockUntil }, { limits }) {
  const waits = [timeLeft, wait, ...windows.map(({ resetIn }) => resetIn)];
  const moments = waits
    .filter((micros) => micros > 0 && micros < Infinity)
    .map((micros) => now + micros);
  if (blockUntil === undefined) return moments;
  // Twice, because it is rarely drawn: when offences are forgotten.
  const forgotten = blockUntil + Math.max(...limits.map(({ interval }) => interval));
  return [...moments, blockUntil, forgotten, forgotten];
}

function nextTime(random, { now, notBefore, boundaries, unit, stepsBack }) {
  if (random.chance(25)) return now;
  if (stepsBack && random.chance(6)) {
    const far = random.chance(50) ? unit : 10 * unit;
    return Math.max(notBefore, now - random.between(1, far));
  }
  const ahead = boundaries.filter((moment) => moment >= now);
  if (ahead.length > 0 && random.chance(35)) {
    return Math.max(now, random.pick(ahead) + random.pick([-1, 0, 0, 1]));
  }
  if (random.chance(12)) return now + random.between(5, 80) * unit;
  return now + (random.chance(60) ? random.between(1, 5) * unit : random.between(1, 5 * unit));
}

const COMMON_KINDS = [...Array(11).fill('attempt'), ...['peek', 'peek', 'refund', 'refund']];
const KINDS = [
  ...COMMON_KINDS,
  ...['call', 'callback', 'limitWithInfo', 'wouldLimitWithInfo', 'attemptMany'],
  ...['settle', 'settle', 'block'],
];
const CLEARING = ['clear', 'clear', 'clearAll'];
/** For customers with plans. */
const PLAN_KINDS = [...KINDS, 'usage', 'usage', 'record', 'record', 'setLimits'];
/** What the core and the scripts can do. */
const CORE_KINDS = [...COMMON_KINDS, 'usage'];
/** The scripts alone: attempts of one cost on several ids, and more refunds after clears. */
const SCRIPT_KINDS = [...CORE_KINDS, ...Array(7).fill('batch'), 'refund', 'clear', 'clear'];

/**
 * `{ policy, operations, answers }`. An operation is `{ kind, now, id }` with `cost` and `terms`, with `ids`, with
 * `maxima` (setLimits), or with `of`: the place of the attempt that is settled, at `actual`. A block has a `length`. An
 * operation is left out if a store may answer it either way. A script that goes `byServer` reads the clock of the
 * server, which goes on after an id was cleared. `customers` of plans.js draws terms, costs and limits. The
 * trace may end at a time.
 */
function randomTrace(random, options) {
  const {
    policy,
    steps,
    ids = IDS,
    kinds = KINDS,
    byServer = false,
    customers,
    end = Infinity,
  } = options;
  const { algorithm, unit } = policy;
  const largestCost = Math.min(...policy.limits.map(({ maxInInterval }) => maxInInterval));
  const oracles = new Oracles(policy);
  const stepsBack = random.chance(50);
  const operations = [];
  const answers = [];
  const refundable = [];
  let now = options.start ?? randomStart(random, unit);
  let latest = now;
  let notBefore = -Infinity;
  let boundaries = [];
  let blockEnds = [];
  while (operations.length < steps && now < end) {
    // A store may have forgotten a block that has ended.
    notBefore = Math.max(notBefore, ...blockEnds.filter((end) => end <= now));
    blockEnds = blockEnds.filter((end) => end > now);
    now = nextTime(random, { now, notBefore, boundaries, unit, stepsBack });
    latest = Math.max(latest, now);
    const kind = random.pick(random.chance(3) ? CLEARING : kinds);
    const id = random.pick(ids);
    const operation = { kind, now, id };
    if (customers !== undefined) customers.complete(random, operation, oracles.policy);
    else if (['attempt', 'peek', 'batch'].includes(kind)) {
      operation.cost = randomCost(random, largestCost);
    }
    if (kind === 'attemptMany' || kind === 'batch') {
      operation.ids = Array.from({ length: random.between(0, 4) }, () => random.pick(ids));
    }
    if (kind === 'block') operation.length = random.chance(40) ? 0 : random.between(1, 30 * unit);
    if (kind === 'refund' || kind === 'settle') {
      if (refundable.length === 0) continue;
      // By the clock of the server, gcra forgets what leaked before a step back.
      if (byServer && algorithm === 'gcra' && now < latest) continue;
      operation.of = random.pick(refundable);
      operation.id = operations[operation.of].id;
      // At no more than was reserved: an overdraft is kept as far as a store can.
      const { cost } = operations[operation.of];
      if (kind === 'settle')
        operation.actual = customers?.actual(random, cost) ?? random.between(0, cost);
    }
    const place = operations.length;
    const expected = oracles.perform(operation, place);
    if (expected === undefined) continue;
    operations.push(operation);
    answers.push(expected);
    if (kind === 'attempt') {
      refundable.push(place);
      const known = boundaries.filter((moment) => moment > now).slice(-4);
      boundaries = [...known, ...boundariesOf(expected, now, oracles.of(id).state, policy)];
    }
    if (kind === 'block' && operation.length > 0) {
      blockEnds.push(oracles.of(id).state.blockedByCall);
    }
    // Before this moment, a log may have forgotten what was outside of every window.
    if (
      (kind === 'refund' || kind === 'settle') &&
      expected &&
      algorithm === 'sliding-window-log'
    ) {
      notBefore = Math.max(notBefore, now);
    }
    if (byServer && CLEARING.includes(kind)) notBefore = now = latest + 1;
  }
  return { policy, operations, answers };
}

/** An oracle for each id; performs the operations of a trace. */
class Oracles {
  #oracles = new Map();
  #attempts = new Map(); // by the place of the operation

  constructor(policy) {
    this.policy = policy;
  }

  of(id) {
    if (!this.#oracles.has(id)) this.#oracles.set(id, new Oracle(this.policy));
    return this.#oracles.get(id);
  }

  /** The answer or answers; undefined, and nothing changes, if a store may answer either way. */
  perform(operation, place) {
    const { kind, now, id, ids, cost, of, actual, length, maxima } = operation;
    const oracle = this.of(id);
    const terms = termsOf(operation.terms, this.policy);
    if (terms?.limits !== undefined) this.#sees(terms.limits);
    // Only a shortened trace has it: limits that were set before are missing.
    if (kind !== 'record' && this.#isError(cost, terms)) return undefined;
    switch (kind) {
      case 'attempt': {
        const answer = oracle.attempt(now, cost, terms);
        if (answer !== undefined) this.#attempts.set(place, answer.attempt);
        return answer;
      }
      case 'call':
      case 'callback':
      case 'limitWithInfo':
        return oracle.attempt(now);
      case 'peek':
        return oracle.peek(now, cost, terms);
      case 'wouldLimitWithInfo':
        return oracle.peek(now);
      case 'usage':
        return oracle.peek(now, 0, terms);
      case 'record':
        return oracle.record(now, cost, terms);
      case 'attemptMany':
      case 'batch':
        return this.#attemptEach(ids, now, cost);
      case 'setLimits':
        this.policy = maximaOf(this.policy, maxima);
        for (const each of this.#oracles.values()) each.setPolicy(this.policy);
        return null;
      case 'refund':
      case 'settle':
        return oracle.settle(this.#attempts.get(of), now, actual);
      case 'block':
        oracle.block(now, length);
        return null;
      case 'clear':
        oracle.clear();
        return null;
      case 'clearAll':
        for (const each of this.#oracles.values()) each.clear();
        return null;
      default:
        throw new Error(`no such operation: ${kind}`);
    }
  }

  /** Whether a cost is above a maximum of the limiter that the call does not replace. */
  #isError(cost, terms) {
    return this.policy.limits.some(({ maxInInterval }, i) => {
      const ofWindow = Array.isArray(cost) ? cost[i] : cost;
      return terms?.limits?.[i] === undefined && ofWindow > maxInInterval;
    });
  }

  /** Limits of calls, whatever the id. */
  #sees(limits) {
    const seen = Math.max(this.policy.seen ?? 0, ...limits.map((limit) => limit ?? 0));
    if (seen === this.policy.seen) return;
    this.policy = { ...this.policy, seen };
    for (const each of this.#oracles.values()) each.setPolicy(this.policy);
  }

  #attemptEach(ids, now, cost) {
    const saved = ids.map((id) => [this.of(id), this.of(id).state]);
    const answers = ids.map((id) => this.of(id).attempt(now, cost));
    if (!answers.includes(undefined)) return answers;
    for (const [oracle, state] of saved) oracle.become(state);
    return undefined;
  }
}

/** The options that make a limiter follow a policy. */
function optionsFor({ algorithm, limits, minDifference, countBlocked, blockFor }) {
  return {
    algorithm,
    countBlocked,
    limits: limits.map((limit, i) => ({
      ...windowOption(limit),
      ...(minDifference > 0 && i === 0 && { minDifference: minDifference / 1000 }),
    })),
    ...(blockFor.length > 0 && { blockFor: blockFor.map((micros) => micros / 1000) }),
  };
}

function calledBack(limiter, id) {
  return new Promise((resolve, reject) => {
    limiter(id, (error, ...answer) => (error ? reject(error) : resolve(answer)));
  });
}

/** An answer as limitWithInfo() and wouldLimitWithInfo() give it. */
function infoOf({ allowed, blockedBy, timeLeft, wait, actionsLeft }) {
  return {
    blocked: !allowed,
    blockedDueToCount: (blockedBy & BLOCKED_BY.COUNT) !== 0,
    blockedDueToMinDifference: (blockedBy & BLOCKED_BY.MIN_DIFFERENCE) !== 0,
    millisecondsUntilAllowed: toMs(allowed ? wait : timeLeft),
    actionsRemaining: actionsLeft,
  };
}

const asItIs = (answer) => answer;

const optionsOfCall = ({ cost, terms }, policy) => ({
  cost: costOption(cost, policy),
  ...optionsOfTerms(terms, policy),
});

/**
 * By kind: `ask` gives what a limiter of a policy answers, where `decisions` are those of earlier attempts by their
 * places; `form` gives the oracle's answer in the form of the limiter's.
 */
const ON_LIMITER = {
  attempt: {
    async ask(limiter, operation, { decisions, place, policy }) {
      const decision = await limiter.attempt(operation.id, optionsOfCall(operation, policy));
      decisions.set(place, decision);
      return { ...decision };
    },
    form: decisionOf,
  },
  peek: {
    ask: async (limiter, operation, { policy }) => ({
      ...(await limiter.peek(operation.id, optionsOfCall(operation, policy))),
    }),
    form: decisionOf,
  },
  usage: {
    ask: (limiter, { id, terms }, { policy }) => limiter.usage(id, optionsOfTerms(terms, policy)),
    form: usageOf,
  },
  record: {
    ask: (limiter, operation, { policy }) =>
      limiter.record(operation.id, optionsOfCall(operation, policy)),
    form: usageOf,
  },
  setLimits: {
    ask: (limiter, { maxima }, { policy }) =>
      limiter.setLimits(optionsFor(maximaOf(policy, maxima)).limits) ?? null,
    form: asItIs,
  },
  attemptMany: {
    ask: async (limiter, { ids }) => (await limiter.attemptMany(ids)).map((one) => ({ ...one })),
    form: (answers) => answers.map((each) => decisionOf(each)),
  },
  call: {
    ask: (limiter, { id }) => limiter(id),
    form: ({ timeLeft }) => toMs(timeLeft),
  },
  callback: {
    ask: (limiter, { id }) => calledBack(limiter, id),
    form: ({ timeLeft, actionsLeft }) => [toMs(timeLeft), actionsLeft],
  },
  limitWithInfo: { ask: (limiter, { id }) => limiter.limitWithInfo(id), form: infoOf },
  wouldLimitWithInfo: { ask: (limiter, { id }) => limiter.wouldLimitWithInfo(id), form: infoOf },
  refund: {
    ask: (limiter, { of }, { decisions }) => limiter.refund(decisions.get(of)),
    form: asItIs,
  },
  settle: {
    ask: (limiter, { of, actual }, { decisions, policy }) =>
      limiter.settle(decisions.get(of), costOption(actual, policy)),
    form: asItIs,
  },
  block: {
    ask: async (limiter, { id, length }) => (await limiter.block(id, length / 1000)) ?? null,
    form: asItIs,
  },
  clear: { ask: async (limiter, { id }) => (await limiter.clear(id)) ?? null, form: asItIs },
  clearAll: { ask: async (limiter) => (await limiter.clearAll()) ?? null, form: asItIs },
};

/** The first difference, or null. `open(options)` makes a limiter, which is closed here. */
async function firstDifference({ policy, operations, answers }, open) {
  const oracles = new Oracles(policy);
  const decisions = new Map();
  let now = operations[0]?.now;
  const limiter = open({ ...optionsFor(policy), clock: () => now / 1000 });
  try {
    for (const [i, operation] of operations.entries()) {
      now = operation.now;
      const place = operation.place ?? i;
      // A shortened trace has no answers, and may lack the attempt that is taken back.
      if (operation.of !== undefined && !decisions.has(operation.of)) continue;
      const answer = answers ? answers[i] : oracles.perform(operation, place);
      if (answer === undefined) continue;
      const { ask, form } = ON_LIMITER[operation.kind];
      const expected = form(answer);
      let came;
      try {
        came = await ask(limiter, operation, { decisions, place, policy });
      } catch (error) {
        came = `${error.code}: ${error.message} ${error.cause?.message ?? ''}`;
      }
      if (!isDeepStrictEqual(came, expected)) return { step: i, operation, expected, came };
    }
    return null;
  } finally {
    await limiter.close();
  }
}

const MOST_REPLAYS = 200;

/** Leaves out the operations that the difference does not need. */
async function shrink({ policy, operations }, open) {
  let kept = operations.map((operation, place) => ({ ...operation, place }));
  let difference = await firstDifference({ policy, operations: kept }, open);
  if (difference === null) return null; // not reproducible
  kept = kept.slice(0, difference.step + 1);
  let replays = 0;
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size > 1 ? size >> 1 : 0) {
    for (let first = kept.length - 1 - size; first > -size; first -= size) {
      if (++replays > MOST_REPLAYS) return { kept, difference };
      const fewer = kept.filter((_, i) => i < first || i >= first + size);
      const again = await firstDifference({ policy, operations: fewer }, open);
      if (again === null) continue;
      kept = fewer.slice(0, again.step + 1);
      difference = again;
      first = Math.min(first, kept.length - 1);
    }
  }
  return { kept, difference };
}

function lineOf({ kind, now, place, ...what }) {
  return `  ${place}: ${kind} at ${now} us ${JSON.stringify(what)}`;
}

/** Throws with a short reproduction if the limiter differs from the oracle. */
async function expectTrace(trace, open, context) {
  const found = await firstDifference(trace, open);
  if (found === null) return;
  const shrunk = await shrink(trace, open);
  const { kept, difference } = shrunk ?? { kept: trace.operations, difference: found };
  const { operation, expected, came } = difference;
  throw new Error(
    [
      `the limiter differs from the oracle: ${JSON.stringify(context)}`,
      ...(shrunk === null ? ['not again when replayed; the whole trace follows'] : []),
      `policy (us): ${JSON.stringify(trace.policy)}`,
      ...kept.map(lineOf),
      `at ${operation.kind} came     ${JSON.stringify(came)}`,
      `at ${operation.kind} expected ${JSON.stringify(expected)}`,
    ].join('\n'),
  );
}

module.exports = {
  CORE_KINDS,
  LONG_UNITS,
  Oracles,
  PLAN_KINDS,
  SCRIPT_KINDS,
  SHORT_UNITS,
  expectTrace,
  firstDifference,
  largePolicy,
  optionsFor,
  randomCost,
  randomPolicy,
  randomTrace,
};
