// The oracle for every store: it remembers all that happened to one id, counts and searches.
// It shares no formula with the stores. What is used at a moment is counted from everything that was ever
// recorded, and every wait is found by search. Times and durations are whole microseconds.
'use strict';

const { ALGORITHMS } = require('../../lib/options/algorithms');

// Globals are slow inside Jest.
const { ceil, floor, max, min } = Math;
const [big, number] = [BigInt, Number];

// A history is an array of { at, cost, attempt } and { settles: attempt, actual, now }, in the order of the calls.

/** What was recorded, at the costs that it came to, if any. */
function standing(history) {
  const actual = new Map(history.map((entry) => [entry.settles, entry.actual]));
  return history
    .filter(({ attempt }) => attempt !== undefined)
    .map((record) => ({ ...record, cost: actual.get(record.attempt) ?? record.cost }))
    .filter(({ cost }) => cost > 0);
}

const sumOf = (records) => records.reduce((sum, { cost = 0 }) => sum + cost, 0);
const lastRecordAt = (history) => history.findLast(({ at }) => at !== undefined)?.at;
const longestOf = ({ limits }) => max(...limits.map(({ interval }) => interval));

/** Counts stop here; policies with small limits have small counts. */
function largestCount({ limits }) {
  const isSmall = limits.every(({ maxInInterval }) => maxInInterval < 2 ** 24 - 1);
  return isSmall ? 2 ** 24 - 1 : 2 ** 53 - 1;
}

const slidingWindowLog = {
  clampsTime: true,
  countsBlocked: true,
  keepsMax: true,
  newestOf: (history) => standing(history).at(-1)?.at,

  /** An action is in the window if it happened less than the interval ago. */
  usedBy(history, { interval }) {
    const records = standing(history);
    return (t) => sumOf(records.filter(({ at }) => at > t - interval && at <= t));
  },

  /** Unknown if counted refusals may have displaced it, the clock stepped back, or it left every window. */
  findsIn(history, { at }, policy, now) {
    const isLate = now - at >= longestOf(policy);
    if (policy.countBlocked || isLate || now < this.newestOf(history)) return undefined;
    return true;
  },

  fullFor: (interval) => interval,
  fullForAfterRefusal: (interval) => interval,
  keeps: ['0 0 100'],
};

/** Number of the window, aligned to the epoch, that contains a moment. */
const windowOf = (t, interval) => floor(t / interval);

/** How much was recorded in the n-th window, as a function of n. */
function countsOf(history, interval, policy) {
  const counts = new Map();
  for (const { at, cost } of standing(history)) {
    const n = windowOf(at, interval);
    counts.set(n, min((counts.get(n) ?? 0) + cost, largestCount(policy)));
  }
  return (n) => counts.get(n) ?? 0;
}

/**
 * Whether a count that is kept for so many windows still contains an attempt. Unknown if the id may have
 * expired, or if a count may have stopped at the largest.
 */
function findsWithin(windows, history, { at }, policy, now) {
  const newest = lastRecordAt(history);
  if (now - newest >= windows * longestOf(policy)) return undefined;
  if (sumOf(history) >= largestCount(policy)) return undefined;
  return policy.limits.some(
    ({ interval }) => windowOf(newest, interval) - windowOf(at, interval) < windows,
  );
}

const fixedWindow = {
  clampsTime: true,
  countsBlocked: true,
  newestOf: lastRecordAt,

  usedBy(history, { interval }, policy) {
    const countIn = countsOf(history, interval, policy);
    return (t) => countIn(windowOf(t, interval));
  },

  findsIn: (...args) => findsWithin(1, ...args),
  fullFor: (interval) => interval,
  fullForAfterRefusal: (interval) => interval / 2, // until the next window begins
  keeps: ['0 0 100', '90 90 110'],
};

const slidingWindowCounter = {
  clampsTime: true,
  countsBlocked: true,
  newestOf: lastRecordAt,

  /** floor(current + previous x overlap), in exact integers. */
  usedBy(history, { interval }, policy) {
    const countIn = countsOf(history, interval, policy);
    const length = big(interval);
    return (t) => {
      const n = windowOf(t, interval);
      const overlap = big(n + 1) * length - big(t); // of `length`
      return countIn(n) + number((big(countIn(n - 1)) * overlap) / length);
    };
  },

  findsIn: (...args) => findsWithin(2, ...args),
  // The first place becomes free one microsecond after the window ended.
  fullFor: (interval) => interval + 1,
  fullForAfterRefusal: (interval) => interval + 1,
  keeps: ['90 90 110'],
};

/** Above this max, 53 bits cannot tell each attempt from those before the id was cleared. */
const MOST_TOLD_APART = 2 ** 40;

/** Math.max and Math.min take no BigInt. */
const ordered = (a, b) => (a < b ? [a, b] : [b, a]);

/** Parts of a microsecond in which the emission interval is whole: exact up to 1000 actions. */
function unitsOf({ interval, maxInInterval }) {
  const [length, most] = [big(interval), big(maxInInterval)];
  if (most <= 1000n) return { perMicro: most, emission: length };
  return { perMicro: 1000n, emission: ordered((length * 1000n + most - 1n) / most, 1n)[1] };
}

/**
 * The theoretical arrival time after a history, and what its last entry found to settle. A refund gives back
 * what has not leaked of its attempt. All later attempts are above it in the bucket, even those that were taken
 * back, except for the newest: its place becomes free.
 */
function replayBucket(history, limit) {
  const { perMicro, emission } = unitsOf(limit);
  const full = big(limit.maxInInterval) * emission;
  const records = new Map();
  let recorded = 0n; // total cost
  let arrival;
  let found = false;
  for (const { at, cost, attempt, settles, actual, now } of history) {
    found = false;
    if (settles === undefined) {
      const moment = big(at) * perMicro;
      arrival = ordered(arrival ?? moment, moment)[1] + big(cost) * emission;
      recorded += big(cost);
      records.set(attempt, { at, cost: big(cost), end: recorded });
    } else if (records.has(settles)) {
      const taken = records.get(settles);
      const less = taken.cost - big(actual);
      const moment = big(now) * perMicro;
      const left = arrival - (recorded - taken.end) * emission - moment;
      found = left > 0n && moment - big(taken.at) * perMicro < full;
      if (found) arrival -= ordered(left, less * emission)[0];
      if (taken.end === recorded) recorded -= less;
    }
  }
  return { arrival, emission, perMicro, found };
}

const gcra = {
  clampsTime: false,
  countsBlocked: false,
  newestOf: lastRecordAt,

  usedBy(history, limit) {
    const { arrival, emission, perMicro } = replayBucket(history, limit);
    return (t) => {
      if (arrival === undefined) return 0;
      const ahead = arrival - big(t) * perMicro;
      return ahead <= 0n ? 0 : number((ahead + emission - 1n) / emission);
    };
  },

  /** Unknown if the clock stepped back behind the newest attempt, or numbers are too large to tell. */
  findsIn(history, { attempt }, { limits }, now) {
    const newest = max(...history.map(({ at = -Infinity }) => at));
    if (now < newest || sumOf(history) >= Number.MAX_SAFE_INTEGER) return undefined;
    const after = [...history, { settles: attempt, actual: 0, now }];
    return limits.some((limit) => replayBucket(after, limit).found);
  },

  mayFindGone: ({ limits }) => limits.some(({ maxInInterval }) => maxInInterval > MOST_TOLD_APART),
  fullFor: (interval, most) => interval / most,
  keeps: ['0 0 99', '0 0 100'],
};

/**
 * By algorithm:
 *
 * - `clampsTime`: whether time counts as no earlier than the newest action
 * - `countsBlocked`: whether a refusal can count
 * - `newestOf(history)`: when the newest action was, for minDifference
 * - `usedBy(history, limit, policy)`: what is used of the limit, as a function of the moment
 * - `findsIn(history, record, policy, now)`: whether the attempt can be settled; undefined if a store may answer
 *   either way
 * - `mayFindGone(policy)`, optional: whether a refund may find an attempt from before a clear
 * - `keepsMax`: whether no more refusals count than the maximum
 * - `fullFor(interval, max)`: how long a window stays full that is filled as it begins, by one attempt
 * - `keeps`: which of the moments of actions in traces.test.js keep to two in 100 us
 */
const RULES = {
  'sliding-window-log': slidingWindowLog,
  'fixed-window': fixedWindow,
  'sliding-window-counter': slidingWindowCounter,
  gcra,
};

const BLOCKED_BY = { COUNT: 1, MIN_DIFFERENCE: 2, BLOCK: 4 };

/** The least n >= 0 for which a predicate holds that stays true once it is. */
function leastFor(holds) {
  if (holds(0)) return 0;
  let above = 1;
  while (!holds(above)) above *= 2;
  let below = floor(above / 2);
  while (above - below > 1) {
    const middle = below + floor((above - below) / 2);
    if (holds(middle)) above = middle;
    else below = middle;
  }
  return above;
}

/** A history under a policy, with the last block of blockFor and that by a call. */
class View {
  constructor({ history, blockUntil = -Infinity, blockedByCall = -Infinity }, policy) {
    const rule = RULES[policy.algorithm];
    this.blockUntil = max(blockUntil, blockedByCall);
    this.keepsMax = policy.countBlocked && rule.keepsMax;
    this.policy = policy;
    this.newest = rule.newestOf(history);
    this.clampsTime = rule.clampsTime;
    this.used = policy.limits.map((limit) => rule.usedBy(history, limit, policy));
  }

  /** When an attempt counts as made. */
  atOf(now) {
    return this.clampsTime && this.newest !== undefined ? max(now, this.newest) : now;
  }

  /** Why an attempt is refused, in bits; 0 if it is allowed. */
  blockedBy(now, cost) {
    const { limits, minDifference } = this.policy;
    const at = this.atOf(now);
    if (at < this.blockUntil) return BLOCKED_BY.BLOCK;
    if (cost === 0) return 0; // only asks what is used
    const isFull = limits.some(({ maxInInterval }, i) => cost > maxInInterval - this.used[i](at));
    const isSoon =
      minDifference > 0 && this.newest !== undefined && at - this.newest < minDifference;
    return (isFull ? BLOCKED_BY.COUNT : 0) + (isSoon ? BLOCKED_BY.MIN_DIFFERENCE : 0);
  }

  waitFor(now, cost) {
    return leastFor((micros) => this.blockedBy(now + micros, cost) === 0);
  }

  windowsAt(now, at) {
    return this.policy.limits.map(({ maxInInterval }, i) => {
      const truly = this.used[i](at);
      const taken = min(truly, maxInInterval);
      const used = this.keepsMax ? taken : truly;
      const resetIn =
        used === 0 ? 0 : at - now + leastFor((micros) => this.used[i](at + micros) < taken);
      return { used, remaining: maxInInterval - taken, resetIn };
    });
  }
}

/**
 * @typedef {{ algorithm: string, limits: { interval: number, maxInInterval: number }[],
 *   minDifference: number, countBlocked: boolean, blockFor: number[] }} OraclePolicy
 * @typedef {{ attempt: number, allowed: boolean, blockedBy: number, at: number, timeLeft: number,
 *   wait: number, actionsLeft: number, resetIn: number,
 *   windows: { used: number, remaining: number, resetIn: number }[] }} Answer
 */
class Oracle {
  /** @param {OraclePolicy} policy */
  constructor(policy) {
    this.policy = policy;
    this.attempts = 0;
    this.clear();
  }

  attempt(now, cost = 1) {
    const attempt = this.attempts + 1;
    const { answer, state } = this.judge(now, cost, attempt);
    this.attempts = attempt;
    this.become(state);
    if (answer.allowed) this.refundable.set(attempt, { at: answer.at, cost, attempt });
    return answer;
  }

  /** @returns {Answer} what attempt() would answer; a cost of 0 asks what is used. Changes nothing. */
  peek(now, cost = 1) {
    return this.judge(now, cost, 0).answer;
  }

  /** Settles an attempt; returns whether it is found, or undefined if a store may answer either way. */
  settle(attempt, now, actual = 0) {
    const record = this.refundable.get(attempt);
    const rule = RULES[this.policy.algorithm];
    if (record === undefined) return rule.mayFindGone?.(this.policy) ? undefined : false;
    const found = rule.findsIn(this.state.history, record, this.policy, now);
    if (found) this.replaceCost(attempt, now, actual);
    if (found === false) this.refundable.delete(attempt);
    return found;
  }

  /** Settles an allowed attempt, whether or not a store would find it. */
  replaceCost(attempt, now, actual = 0) {
    this.refundable.delete(attempt);
    const history = [...this.state.history, { settles: attempt, actual, now }];
    this.become({ ...this.state, history });
  }

  /** Refuses all attempts for so long; 0 ends every block. */
  block(now, length) {
    const { blockUntil, blockedByCall = -Infinity } = this.state;
    const next =
      length > 0
        ? { blockedByCall: max(blockedByCall, this.view.atOf(now) + length) }
        : { blockedByCall: undefined, blockUntil: blockUntil && min(blockUntil, now) };
    this.become({ ...this.state, ...next });
  }

  /** Forgets everything: earlier attempts cannot be taken back. */
  clear() {
    this.refundable = new Map();
    this.become({ history: [], blockUntil: undefined, blockedByCall: undefined, offences: 0 });
  }

  become(state) {
    this.state = state;
    this.view = new View(state, this.policy);
  }

  judge(now, cost, attempt) {
    const at = this.view.atOf(now);
    const blockedBy = this.view.blockedBy(now, cost);
    const state = this.stateAfter(blockedBy, at, { at, cost, attempt });
    const after = state === this.state ? this.view : new View(state, this.policy);
    const allowed = blockedBy === 0;
    const timeLeft = allowed ? 0 : after.waitFor(now, cost);
    const windows = after.windowsAt(now, at);
    const actionsLeft = min(...windows.map(({ remaining }) => remaining));
    const tightest = windows.filter(({ remaining }) => remaining === actionsLeft);
    const resetIn = allowed ? max(...tightest.map((window) => window.resetIn)) : timeLeft;
    const wait = after.waitFor(now, 1);
    const answer = {
      attempt,
      allowed,
      blockedBy,
      at,
      timeLeft,
      wait,
      actionsLeft,
      resetIn,
      windows,
    };
    return { answer, state };
  }

  stateAfter(blockedBy, at, record) {
    if (blockedBy === BLOCKED_BY.BLOCK) return this.state;
    const isRecorded = record.cost > 0 && (blockedBy === 0 || this.policy.countBlocked);
    const history = isRecorded ? [...this.state.history, record] : this.state.history;
    if (blockedBy === 0) return { ...this.state, history };
    return { ...this.state, history, ...this.blockAfterRefusal(at) };
  }

  /** Each offence takes the next length, until no offence was made for long enough. */
  blockAfterRefusal(at) {
    const { blockFor } = this.policy;
    if (blockFor.length === 0) return {};
    const { blockUntil, offences } = this.state;
    const isForgotten = blockUntil === undefined || at >= blockUntil + longestOf(this.policy);
    const offence = min((isForgotten ? 0 : offences) + 1, blockFor.length);
    return { blockUntil: at + blockFor[offence - 1], offences: offence };
  }
}

/** Whole microseconds to whole ms, rounded up. */
const toMs = (micros) => ceil(micros / 1000);

function reasonOf(blockedBy) {
  if (blockedBy === 0) return null;
  if (blockedBy === BLOCKED_BY.BLOCK) return 'block';
  return blockedBy & BLOCKED_BY.COUNT ? 'count' : 'minDifference';
}

/** An answer as the Decision of attempt() and peek(). */
function decisionOf({ allowed, timeLeft, actionsLeft, resetIn, blockedBy, windows }, { limits }) {
  return {
    allowed,
    timeLeft: toMs(timeLeft),
    actionsLeft,
    resetIn: toMs(resetIn),
    blockedBy: reasonOf(blockedBy),
    limits: windows.map((window, i) => ({
      ...window,
      interval: limits[i].interval / 1000,
      maxInInterval: limits[i].maxInInterval,
      resetIn: toMs(window.resetIn),
    })),
  };
}

module.exports = { ALGORITHM_NAMES: ALGORITHMS, BLOCKED_BY, Oracle, RULES, decisionOf, toMs };
