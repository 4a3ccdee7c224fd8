// Random traces: drawn from a seed, answered by the oracle.
'use strict';

const { RULES } = require('./oracle');
const { Oracles } = require('./oracles');
const { windowOption } = require('./plans');

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
  ...['settle', 'settle', 'block', 'setLimits'],
];
const CLEARING = ['clear', 'clear', 'clearAll'];
/** For customers with plans. */
const PLAN_KINDS = [...KINDS, 'usage', 'usage', 'record', 'record'];
/** What the core and the scripts can do. */
const CORE_KINDS = [...COMMON_KINDS, 'usage'];

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
    else if (['attempt', 'peek'].includes(kind)) {
      operation.cost = randomCost(random, largestCost);
    } else if (kind === 'setLimits') {
      // Large ones stay, because counts in shared memory keep their size.
      operation.maxima = policy.limits.map(({ maxInInterval }) =>
        maxInInterval > 9 ? maxInInterval : random.between(1, 9),
      );
    }
    if (kind === 'attemptMany') {
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

module.exports = {
  CORE_KINDS,
  LONG_UNITS,
  PLAN_KINDS,
  SHORT_UNITS,
  largePolicy,
  optionsFor,
  randomCost,
  randomPolicy,
  randomTrace,
};
