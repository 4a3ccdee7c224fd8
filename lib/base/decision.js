// The results of attempt() and peek(), built from the numbers that a store writes.
'use strict';

const { typeError, show } = require('./errors');

/**
 * Indexes of the numbers of one decision in every store (durations in ms). For each window follow two numbers: how
 * much of it is used, and its own resetIn.
 */
const NUMBERS = {
  BLOCKED: 0, // bits: 1 count, 2 minDifference, 4 block
  TIME_LEFT: 1,
  ACTIONS_LEFT: 2,
  RESET_IN: 3,
  WAIT: 4, // until the next action would be allowed, even if this one was
  AT: 5, // when it was recorded, in us
  GENERATION: 6, // of the id that recorded it
  WINDOWS: 7,
};

/**
 * What a call to a store records: Recording in src/core/decision.h. NOTHING shows what an ATTEMPT would answer, ASKING
 * what WAITING would. A refusal leaves no trace with IF_ALLOWED, and with WAITING it does not even count in stats().
 * RECORD is never refused; its numbers are those of a peek at cost 0 after it.
 */
const RECORDS = { NOTHING: 0, ATTEMPT: 1, IF_ALLOWED: 2, WAITING: 3, ASKING: 4, RECORD: 5 };

/** Whether stats() and the channel of decisions see it as an attempt. `blocked` is the number BLOCKED. */
function isSeen(records, blocked) {
  if (records === RECORDS.WAITING) return blocked === 0;
  return records === RECORDS.ATTEMPT || records === RECORDS.IF_ALLOWED;
}

const BLOCKED_BY_COUNT = 1;
const BLOCKED_BY_MIN_DIFFERENCE = 2;
const BLOCKED_BY_BLOCK = 4;

/** How many numbers a decision with this many windows has. */
function decisionLength(windowCount) {
  return NUMBERS.WINDOWS + 2 * windowCount;
}

/** Whether this number of a decision is a duration. */
function isDuration(i) {
  if (i >= NUMBERS.WINDOWS) return (i - NUMBERS.WINDOWS) % 2 === 1;
  return i === NUMBERS.TIME_LEFT || i === NUMBERS.RESET_IN || i === NUMBERS.WAIT;
}

/** The state of a window as users see it; `max` is its own maximum, or that of the call. */
function windowState({ interval, name, calendar }, maxInInterval, used, resetIn) {
  const remaining = used < maxInInterval ? maxInInterval - used : 0;
  if (calendar === undefined) {
    return name === undefined
      ? { interval, maxInInterval, used, remaining, resetIn }
      : { name, interval, maxInInterval, used, remaining, resetIn };
  }
  const { unit } = calendar;
  return name === undefined
    ? { calendar: unit, maxInInterval, used, remaining, resetIn }
    : { name, calendar: unit, maxInInterval, used, remaining, resetIn };
}

/** `maxima` are those of the call, undefined without. */
function readWindows(numbers, offset, windows, maxima) {
  const limits = new Array(windows.length);
  let next = offset + NUMBERS.WINDOWS;
  for (let i = 0; i < windows.length; i++) {
    const window = windows[i];
    const max = maxima === undefined ? window.maxInInterval : maxima[i];
    limits[i] = windowState(window, max, numbers[next++], numbers[next++]);
  }
  return limits;
}

/** If several reasons block, the count comes first. */
function readBlockedBy(blocked) {
  if (blocked & BLOCKED_BY_COUNT) return 'count';
  return blocked & BLOCKED_BY_MIN_DIFFERENCE ? 'minDifference' : 'block';
}

/**
 * What a decision remembers of its attempt; `cost` is checked (costs.js). Decision's constructor sets `at` and
 * `generation`.
 */
function newAttempt(limiter, id, cost, records) {
  const recorded = records !== RECORDS.NOTHING;
  return { limiter, id, cost, recorded, at: 0, generation: 0 };
}

/** One attempt: whether it was allowed, how long to wait, what is left. Durations in whole ms. */
class Decision {
  #attempt;

  /** `attempt` of newAttempt belongs to the decision from now on; `maxima` as in readWindows. */
  constructor(numbers, offset, windows, attempt, maxima) {
    const blocked = numbers[offset + NUMBERS.BLOCKED];
    this.allowed = blocked === 0;
    this.timeLeft = numbers[offset + NUMBERS.TIME_LEFT];
    this.actionsLeft = numbers[offset + NUMBERS.ACTIONS_LEFT];
    this.resetIn = numbers[offset + NUMBERS.RESET_IN];
    this.blockedBy = blocked === 0 ? null : readBlockedBy(blocked);
    this.limits = readWindows(numbers, offset, windows, maxima);
    attempt.recorded &&= this.allowed;
    attempt.at = numbers[offset + NUMBERS.AT];
    attempt.generation = numbers[offset + NUMBERS.GENERATION];
    this.#attempt = attempt;
  }

  /**
   * The attempt of a decision that this limiter made.
   *
   * @throws TypeError ERR_ROLLGATE_DECISION for anything else; `method` is what was called
   */
  static attemptOf(decision, limiter, method) {
    const isDecision = typeof decision === 'object' && decision !== null && #attempt in decision;
    if (isDecision && decision.#attempt.limiter === limiter) return decision.#attempt;
    const came = isDecision ? "another limiter's" : show(decision);
    throw typeError(
      'ERR_ROLLGATE_DECISION',
      `${method}: expected a Decision that this limiter made, got ${came}`,
    );
  }
}

/**
 * What a store needs to settle the attempt; null if it recorded nothing or was settled before. Marks the attempt as
 * settled: the next call returns null.
 */
function takeReceipt(attempt) {
  if (!attempt.recorded) return null;
  attempt.recorded = false;
  return attempt;
}

/** The window with the least left; of several, the one that resets last. */
function tightestWindow(windows) {
  let tightest = windows[0];
  for (let i = 1; i < windows.length; i++) {
    const window = windows[i];
    if (
      window.remaining < tightest.remaining ||
      (window.remaining === tightest.remaining && window.resetIn > tightest.resetIn)
    ) {
      tightest = window;
    }
  }
  return tightest;
}

/** The result of usage(), from the numbers of a peek at cost 0. */
function readUsage(numbers, windows, maxima) {
  const limits = readWindows(numbers, 0, windows, maxima);
  const { used, remaining, resetIn } = tightestWindow(limits);
  const timeLeft = numbers[NUMBERS.WAIT];
  return { allowed: timeLeft === 0, used, remaining, resetIn, timeLeft, limits };
}

/** The result of limitWithInfo and wouldLimitWithInfo, named as in rolling-rate-limiter. */
function readInfo(numbers) {
  const blocked = numbers[NUMBERS.BLOCKED];
  return {
    blocked: blocked !== 0,
    blockedDueToCount: (blocked & BLOCKED_BY_COUNT) !== 0,
    blockedDueToMinDifference: (blocked & BLOCKED_BY_MIN_DIFFERENCE) !== 0,
    millisecondsUntilAllowed: numbers[blocked === 0 ? NUMBERS.WAIT : NUMBERS.TIME_LEFT],
    actionsRemaining: numbers[NUMBERS.ACTIONS_LEFT],
  };
}

module.exports = {
  BLOCKED_BY_BLOCK,
  BLOCKED_BY_COUNT,
  BLOCKED_BY_MIN_DIFFERENCE,
  Decision,
  NUMBERS,
  RECORDS,
  decisionLength,
  isDuration,
  isSeen,
  newAttempt,
  readInfo,
  readUsage,
  takeReceipt,
  tightestWindow,
  windowState,
};
