// The oracle for every store: it remembers all that happened to one id, counts and searches.
// It shares no formula with the stores. What is used at a moment is counted from everything that was ever
// recorded, and every wait is found by search. Times and durations are whole microseconds.
'use strict';

const { ALGORITHMS } = require('../../lib/options/algorithms');
const { fixedWindow, slidingWindowCounter } = require('./rules/counts');
const gcra = require('./rules/gcra');
const { hasNames, isAny, longestOf } = require('./rules/history');
const slidingWindowLog = require('./rules/sliding-window-log');

// Globals are slow inside Jest.
const { ceil, floor, max, min } = Math;

/**
 * By algorithm:
 *
 * - `clampsTime`: whether time counts as no earlier than the newest action
 * - `countsBlocked`: whether a refusal can count
 * - `newestOf(history)`: when the newest action was, for minDifference
 * - `usedBy(history, i, policy)`: what is used of the i-th window, as a function of the moment
 * - `isOpen(history, policy)`, optional: whether stores may answer differently after it
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

/** The policy of a call that brings limits (one for each window, or undefined) and calendars. */
function policyWithin(policy, { limits, calendars } = {}) {
  return {
    ...policy,
    limits: policy.limits.map((limit, i) => ({
      ...limit,
      maxInInterval: limits?.[i] ?? limit.maxInInterval,
      calendar: calendars?.[i] ?? limit.calendar,
    })),
  };
}

const costsOf = (cost, { limits }) => (Array.isArray(cost) ? cost : limits.map(() => cost));

/** What users see as the wait for what can never pass: the longest window if a limit is 0, for ever if one is too low. */
function closedFor(at, costs, { limits, blockFor: [block = 0], findWindow }) {
  if (limits.some(({ maxInInterval }, i) => maxInInterval > 0 && costs[i] > maxInInterval)) {
    return Infinity;
  }
  const lengths = limits.map(({ interval, calendar }) =>
    calendar ? findWindow(calendar, at).end - at : interval,
  );
  return max(block, ...lengths);
}

/** A history under the policy of a call, with the last block of blockFor and that by a call. */
class View {
  constructor({ history, blockUntil = -Infinity, blockedByCall = -Infinity }, policy) {
    const rule = RULES[policy.algorithm];
    this.blockUntil = max(blockUntil, blockedByCall);
    this.keepsMax = policy.countBlocked && rule.keepsMax && !hasNames(policy);
    this.policy = policy;
    this.newest = rule.newestOf(history);
    this.clampsTime = rule.clampsTime;
    this.used = policy.limits.map((_, i) => rule.usedBy(history, i, policy));
  }

  /** When an attempt counts as made. */
  atOf(now) {
    return this.clampsTime && this.newest !== undefined ? max(now, this.newest) : now;
  }

  canPass(costs) {
    return this.policy.limits.every(({ maxInInterval }, i) => costs[i] <= maxInInterval);
  }

  /** Why an attempt that can pass is refused, in bits; 0 if it is allowed. */
  blockedBy(now, costs) {
    const { limits, minDifference } = this.policy;
    const at = this.atOf(now);
    if (at < this.blockUntil) return BLOCKED_BY.BLOCK;
    if (!isAny(costs)) return 0; // only asks what is used
    const isFull = limits.some(
      ({ maxInInterval }, i) => costs[i] > 0 && costs[i] > maxInInterval - this.used[i](at),
    );
    const isSoon =
      minDifference > 0 && this.newest !== undefined && at - this.newest < minDifference;
    return (isFull ? BLOCKED_BY.COUNT : 0) + (isSoon ? BLOCKED_BY.MIN_DIFFERENCE : 0);
  }

  /** Leaves out the windows that the attempt can never pass. */
  waitFor(now, costs) {
    const { policy } = this;
    const limits = policy.limits.map((limit, i) =>
      costs[i] > limit.maxInInterval ? { ...limit, maxInInterval: Infinity } : limit,
    );
    const view = Object.assign(Object.create(View.prototype), this, {
      policy: { ...policy, limits },
    });
    return leastFor((micros) => view.blockedBy(now + micros, costs) === 0);
  }

  windowsAt(now, at) {
    return this.policy.limits.map(({ maxInInterval }, i) => {
      const truly = this.used[i](at);
      const taken = min(truly, maxInInterval);
      const used = this.keepsMax ? taken : truly;
      const resetIn =
        taken === 0 ? 0 : at - now + leastFor((micros) => this.used[i](at + micros) < taken);
      return { used, remaining: maxInInterval - taken, resetIn };
    });
  }
}

/**
 * `roomForRecords`: how many actions a log without names keeps of records at least; 1,024 by default.
 * A policy has the largest maximum that it ever had (`largestOwn`) and that calls brought (`seen`), if others did.
 *
 * @typedef {{ unit: string, timeZone: string, startsOn?: number | string }} OracleCalendar
 * @typedef {{ algorithm: string, limits: { name?: string, interval?: number, calendar?: OracleCalendar,
 *   maxInInterval: number }[], largestOwn?: number, seen?: number, roomForRecords?: number, minDifference: number, countBlocked: boolean, blockFor: number[],
 *   findWindow?: (calendar: OracleCalendar, at: number) => { ordinal: number, end: number } }} OraclePolicy
 * @typedef {{ limits?: number[], calendars?: OracleCalendar[] }} Terms what a call brings, by window
 * @typedef {{ neverPasses: boolean, closedFor: number, attempt: number, allowed: boolean, blockedBy: number, at: number, timeLeft: number,
 *   wait: number, actionsLeft: number, resetIn: number, limits: OraclePolicy['limits'],
 *   windows: { used: number, remaining: number, resetIn: number }[] }} Answer
 */
class Oracle {
  /** @param {OraclePolicy} policy */
  constructor(policy) {
    this.policy = policy;
    this.attempts = 0;
    this.clear();
  }

  /**
   * `cost` is that of every window, or an array of those of each. Undefined, and nothing changes, if stores may answer
   * differently from then on.
   */
  attempt(now, cost = 1, terms = undefined) {
    const { answer, state, record } = this.judge(now, cost, terms, this.attempts + 1);
    if (this.isOpen(state)) return undefined;
    this.attempts += 1;
    this.become(state);
    if (answer.allowed) this.refundable.set(answer.attempt, record);
    return answer;
  }

  /** @returns {Answer} what attempt() would answer; a cost of 0 asks what is used. Changes nothing. */
  peek(now, cost = 1, terms = undefined) {
    const { answer, state } = this.judge(now, cost, terms, 0);
    return this.isOpen(state) ? undefined : answer;
  }

  /** Records what has already happened, whatever is used or blocked. Answers as a peek at cost 0 after it. */
  record(now, cost = 1, terms = undefined) {
    const entry = this.entryOf(this.view.atOf(now), cost, terms, this.attempts + 1);
    const history = [...this.state.history, { ...entry, isRecord: true }];
    const state = { ...this.state, history };
    if (this.isOpen(state)) return undefined;
    this.attempts += 1;
    this.become(state);
    return this.peek(now, 0, terms);
  }

  /** Other limits of the same shape: what was counted stays. */
  setPolicy(policy) {
    this.policy = policy;
    this.become(this.state);
  }

  isOpen({ history }) {
    return RULES[this.policy.algorithm].isOpen?.(history, this.policy) ?? false;
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
    const settled = { settles: attempt, actual: costsOf(actual, this.policy), now };
    this.become({ ...this.state, history: [...this.state.history, settled] });
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

  /** An entry of a history. */
  entryOf(at, cost, terms, attempt) {
    const own = max(...this.policy.limits.map(({ maxInInterval }) => maxInInterval));
    const { largestOwn = own } = this.policy;
    const { limits } = policyWithin(this.policy, terms);
    return { at, costs: costsOf(cost, this.policy), attempt, limits, own, largestOwn };
  }

  judge(now, cost, terms, attempt) {
    const policy = policyWithin(this.policy, terms);
    const view = terms === undefined ? this.view : new View(this.state, policy);
    const at = view.atOf(now);
    const record = this.entryOf(at, cost, terms, attempt);
    const { costs } = record;
    const neverPasses = !view.canPass(costs);
    const blockedBy = neverPasses ? BLOCKED_BY.COUNT : view.blockedBy(now, costs);
    const state = neverPasses ? this.state : this.stateAfter(blockedBy, at, record);
    const after = state === this.state ? view : new View(state, policy);
    const allowed = blockedBy === 0;
    const timeUntilAllowed = neverPasses ? Infinity : after.waitFor(now, costs);
    const timeLeft = allowed ? 0 : timeUntilAllowed;
    const windows = after.windowsAt(now, at);
    const actionsLeft = min(...windows.map(({ remaining }) => remaining));
    const tightest = windows.filter(({ remaining }) => remaining === actionsLeft);
    const asksTightest = allowed || neverPasses;
    const resetIn = asksTightest ? max(...tightest.map((window) => window.resetIn)) : timeLeft;
    const one = costsOf(1, policy);
    const wait = after.canPass(one) ? after.waitFor(now, one) : Infinity;
    const answer = {
      neverPasses,
      closedFor: closedFor(at, isAny(costs) ? costs : one, policy),
      attempt,
      allowed,
      blockedBy,
      at,
      timeLeft,
      wait,
      actionsLeft,
      resetIn,
      limits: policy.limits,
      windows,
    };
    return { answer, state, record };
  }

  stateAfter(blockedBy, at, record) {
    if (blockedBy === BLOCKED_BY.BLOCK) return this.state;
    const isRecorded = isAny(record.costs) && (blockedBy === 0 || this.policy.countBlocked);
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

/** The windows of an answer, as users see them. */
function shownWindows({ windows, limits }) {
  return windows.map(({ used, remaining, resetIn }, i) => {
    const { name, interval, calendar, maxInInterval } = limits[i];
    return {
      ...(name !== undefined && { name }),
      ...(calendar ? { calendar: calendar.unit } : { interval: interval / 1000 }),
      maxInInterval,
      used,
      remaining,
      resetIn: toMs(resetIn),
    };
  });
}

/** An answer as the Decision of attempt() and peek(). */
function decisionOf(answer) {
  const { allowed, actionsLeft, blockedBy, neverPasses, closedFor } = answer;
  const isClosed = neverPasses && closedFor < Infinity;
  const [timeLeft, resetIn] = isClosed ? [closedFor, closedFor] : [answer.timeLeft, answer.resetIn];
  return {
    allowed,
    timeLeft: toMs(timeLeft),
    actionsLeft,
    resetIn: toMs(resetIn),
    blockedBy: reasonOf(blockedBy),
    limits: shownWindows(answer),
  };
}

/** An answer to what costs nothing, as usage() and record() give it. */
function usageOf(answer) {
  const limits = shownWindows(answer);
  const least = min(...limits.map(({ remaining }) => remaining));
  const tightest = limits.filter(({ remaining }) => remaining === least);
  const resetIn = max(...tightest.map((window) => window.resetIn));
  const { used, remaining } = tightest.find((window) => window.resetIn === resetIn);
  const wait = answer.wait === Infinity ? answer.closedFor : answer.wait;
  return {
    allowed: wait === 0,
    used,
    remaining,
    resetIn,
    timeLeft: toMs(wait),
    limits,
  };
}

module.exports = {
  ALGORITHM_NAMES: ALGORITHMS,
  BLOCKED_BY,
  Oracle,
  RULES,
  decisionOf,
  toMs,
  usageOf,
};
