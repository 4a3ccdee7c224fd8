// Random policies and what is done under them, from a seed: plain data that can be replayed and cut.
'use strict';

const { Oracle, RULES } = require('./oracle');

const IDS = ['a', 'b', 'ü}{'];
const MINUTE = 60_000_000;
const DAY = 24 * 60 * MINUTE;

/** What a window of this many units is made of: boundaries and ties are hit all the time. */
const SHORT_UNITS = [1, 10, 1000];
/** For stores whose keys expire by a clock that no test moves: nothing expires while a test lasts. */
const LONG_UNITS = [MINUTE, 99_999_999, DAY / 8];

const HUGE_COUNTS = [2 ** 24 - 2, 2 ** 24 - 1, 2 ** 24, 2 ** 32 + 1, 2 ** 45, 2 ** 53 - 1];
const LARGE_COUNTS = [256, 257, 258, 1000, 1001, 1001, 1501, 2999];

function randomMax(random, algorithm) {
  if (random.chance(85)) return random.between(1, 7);
  if (random.chance(35)) return random.between(8, 40);
  const keepsLog = algorithm === 'sliding-window-log';
  return random.pick(keepsLog || random.chance(50) ? LARGE_COUNTS : HUGE_COUNTS);
}

/** Durations in whole microseconds. `largestMax`: no window allows more. */
function randomPolicy(random, { algorithm, units, largestMax = Infinity }) {
  const unit = random.pick(units);
  const limits = Array.from({ length: random.chance(50) ? 1 : random.between(2, 3) }, () => ({
    interval: random.between(1, 40) * unit,
    maxInInterval: Math.min(randomMax(random, algorithm), largestMax),
  }));
  const blocks = random.chance(55) ? 0 : random.between(1, 3);
  // What nobody exceeds starts no blocks.
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

/** One window and nothing else, as most have it, of so many actions that roundings add up. */
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

/** The moments that an answer tells of, where one microsecond makes the difference. */
function boundariesOf({ timeLeft, wait, windows }, now, { blockUntil }, { limits }) {
  const waits = [timeLeft, wait, ...windows.map(({ resetIn }) => resetIn)];
  const moments = waits.filter((micros) => micros > 0).map((micros) => now + micros);
  if (blockUntil === undefined) return moments;
  // Offences are forgotten at the second one: it is come upon seldom enough.
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

const KINDS = [
  ...Array(11).fill('attempt'),
  ...Array(2).fill('peek'),
  ...Array(2).fill('refund'),
  ...['call', 'callback', 'limitWithInfo', 'wouldLimitWithInfo', 'attemptMany'],
];
const CLEARING = ['clear', 'clear', 'clearAll'];
/** What the core and the scripts know. */
const CORE_KINDS = [
  ...Array(11).fill('attempt'),
  ...Array(2).fill('peek'),
  ...Array(2).fill('refund'),
  'usage',
];

/**
 * `{ policy, operations }`; an operation is { kind, now, id, cost }, or ids, or `of`, the place in the
 * list of the attempt that is taken back. Where the oracle leaves the answer of a refund to the store,
 * or a store may forget what a clock that steps back would bring to mind, nothing is asked.
 */
function randomTrace(random, { policy, steps, ids = IDS, kinds = KINDS }) {
  const { algorithm, unit } = policy;
  const largestCost = Math.min(...policy.limits.map(({ maxInInterval }) => maxInInterval));
  const oracles = new Oracles(policy);
  const stepsBack = random.chance(50);
  const operations = [];
  const refundable = [];
  let now = randomStart(random, unit);
  let notBefore = -Infinity;
  let boundaries = [];
  while (operations.length < steps) {
    now = nextTime(random, { now, notBefore, boundaries, unit, stepsBack });
    const kind = random.pick(random.chance(3) ? CLEARING : kinds);
    const id = random.pick(ids);
    const operation = { kind, now, id };
    if (kind === 'attempt' || kind === 'peek') operation.cost = randomCost(random, largestCost);
    if (kind === 'attemptMany') {
      operation.ids = Array.from({ length: random.between(0, 4) }, () => random.pick(ids));
    }
    if (kind === 'refund') {
      if (refundable.length === 0) continue;
      operation.of = random.pick(refundable);
      operation.id = operations[operation.of].id;
    }
    const place = operations.length;
    const expected = oracles.perform(operation, place);
    if (expected === undefined) continue;
    operations.push(operation);
    if (kind === 'attempt') {
      refundable.push(place);
      const known = boundaries.filter((moment) => moment > now).slice(-4);
      boundaries = [...known, ...boundariesOf(expected, now, oracles.of(id).state, policy)];
    }
    // A log may have forgotten what was outside of every window.
    if (kind === 'refund' && expected && algorithm === 'sliding-window-log') {
      notBefore = Math.max(notBefore, now);
    }
  }
  return { policy, operations };
}

/** An oracle for each id, and what each operation of a trace comes to. */
class Oracles {
  #policy;
  #oracles = new Map();
  #attempts = new Map(); // by the place of the operation

  constructor(policy) {
    this.#policy = policy;
  }

  of(id) {
    if (!this.#oracles.has(id)) this.#oracles.set(id, new Oracle(this.#policy));
    return this.#oracles.get(id);
  }

  /** The oracle's answer or answers; undefined where the store may answer as it likes. */
  perform({ kind, now, id, ids, cost, of }, place) {
    const oracle = this.of(id);
    switch (kind) {
      case 'attempt': {
        const answer = oracle.attempt(now, cost);
        this.#attempts.set(place, answer.attempt);
        return answer;
      }
      case 'call':
      case 'callback':
      case 'limitWithInfo':
        return oracle.attempt(now);
      case 'peek':
        return oracle.peek(now, cost);
      case 'wouldLimitWithInfo':
        return oracle.peek(now);
      case 'usage':
        return oracle.usage(now);
      case 'attemptMany':
        return ids.map((each) => this.of(each).attempt(now));
      case 'refund':
        return oracle.refund(this.#attempts.get(of), now);
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
}

module.exports = {
  CORE_KINDS,
  LONG_UNITS,
  Oracles,
  SHORT_UNITS,
  largePolicy,
  randomCost,
  randomPolicy,
  randomTrace,
};
