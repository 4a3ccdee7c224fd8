// The option localRefusals: remembers refusals of a remote store, and repeats them as long as nothing can change them.
'use strict';

const { monotonicMs } = require('#platform');
const {
  BLOCKED_BY_BLOCK,
  BLOCKED_BY_COUNT,
  BLOCKED_BY_MIN_DIFFERENCE,
  NUMBERS,
  decisionLength,
  isDuration,
} = require('../../base/decision');
const { OPERATIONS, isAttempt } = require('./operations');

/** The time in us: the user's, or a monotonic one. */
const timeOf = (now) => now ?? monotonicMs() * 1000;

/** Stores round up to whole ms. What is left of a duration, never more than it is. */
const atLeastMicros = (ms) => (ms - 1) * 1000;

/**
 * A refusal is repeated for the same id and cost, and until the next attempt would change something on the server.
 * Calls with terms of their own are always asked, and make this forget the id:
 *
 * - Without `blockFor`, refusals are not counted (options.js makes sure), so it holds for its timeLeft.
 * - With `blockFor`, it holds for the rest of its block. In full windows, the next attempt after that starts another.
 *
 * The server decides between the sending of an attempt and its answer. A refusal ends as if that was when the attempt
 * was sent, so never too late. Durations are shown as if it was when the answer came, so never too short.
 */
class LocalRefusals {
  #windows;
  #shortestBlock;
  #hasMinDifference;
  #usesFallOneByOne;
  #maxKeys;
  #numbers;
  #refusals = new Map();
  /** The id of the oldest refusal, and an iterator over the ids after it. */
  #oldest;
  #ids = this.#refusals.keys();
  /** How often something was forgotten: an answer to an earlier attempt may be out of date. */
  #forgettings = 0;

  constructor({ windows, blockFor, minDifference, maxKeys, algorithm }) {
    this.setLimits({ windows, minDifference });
    this.#usesFallOneByOne = algorithm !== 'fixed-window';
    this.#shortestBlock = blockFor.length === 0 ? undefined : Math.min(...blockFor);
    this.#maxKeys = maxKeys;
    this.#numbers = new Float64Array(decisionLength(windows.length));
  }

  setLimits({ windows, minDifference }) {
    this.#windows = windows;
    this.#hasMinDifference = minDifference > 0;
    this.forget();
  }

  /** The numbers of a refusal, valid until the next call; undefined if the store has to be asked. */
  find(id, cost, isFull, now) {
    const refusal = this.#refusals.get(id);
    if (refusal === undefined) return undefined;
    const time = timeOf(now);
    if (time >= refusal.until || time < refusal.sentAt) {
      this.#refusals.delete(id);
      return undefined;
    }
    if (!isSameCost(cost, refusal.cost) || (isFull && time >= refusal.fullUntil)) return undefined;
    return this.#age(refusal.numbers, (time - refusal.shownFrom) / 1000);
  }

  #age(numbers, passed) {
    const aged = this.#numbers;
    for (let i = 0; i < numbers.length; i++) {
      aged[i] = isDuration(i) ? Math.max(0, Math.ceil(numbers[i] - passed)) : numbers[i];
    }
    return aged;
  }

  /** The call, whose answer is remembered, or makes this forget. */
  observe(call) {
    const { operation, id, terms, done } = call;
    if (operation === OPERATIONS.PEEK) return call;
    if (isAttempt(operation) && terms === undefined) return this.#observeAttempt(call);
    const forgetAndDone = (failed, result) => {
      this.forget(id); // also after a failure, which may have been done
      done(failed, result);
    };
    return { ...call, done: forgetAndDone };
  }

  #observeAttempt(call) {
    const { operation, id, cost, now, done } = call;
    // The others start no block.
    const isAsRemembered = operation === OPERATIONS.ATTEMPT || this.#shortestBlock === undefined;
    const sentAt = timeOf(now);
    const forgettings = this.#forgettings;
    const isFull = call.isFull || this.#shortestBlock !== undefined;
    const noteAndDone = (failed, numbers) => {
      if (failed === null && numbers[NUMBERS.BLOCKED] === 0) this.#refusals.delete(id);
      else if (failed === null && isAsRemembered && forgettings === this.#forgettings) {
        this.#remember(id, cost, sentAt, timeOf(now), numbers, isFull);
      }
      done(failed, numbers);
    };
    return { ...call, isFull, done: noteAndDone };
  }

  /** Forgets the refusals of the ids that were allowed. */
  forgetAllowed(ids, numbers) {
    const { length } = this.#numbers;
    for (const [i, id] of ids.entries()) {
      if (numbers[i * length + NUMBERS.BLOCKED] === 0) this.#refusals.delete(id);
    }
  }

  /** Without an id, all. */
  forget(id) {
    this.#forgettings += 1;
    if (id === undefined) this.#refusals.clear();
    else this.#refusals.delete(id);
  }

  #remember(id, cost, sentAt, shownFrom, came, isWhole) {
    if (came[NUMBERS.TIME_LEFT] === Number.POSITIVE_INFINITY) return; // it started no block
    const numbers = Array.from(isWhole ? came : came.subarray(0, NUMBERS.TIME_LEFT + 1));
    const hasBlocks = this.#shortestBlock !== undefined;
    const holdsFor = hasBlocks ? this.#blockLeft(numbers) : numbers[NUMBERS.TIME_LEFT];
    const until = sentAt + atLeastMicros(holdsFor);
    if (until <= shownFrom) return;
    // What started the block is refused by it from now on.
    if (hasBlocks) numbers[NUMBERS.BLOCKED] = BLOCKED_BY_BLOCK;
    const fullUntil = isWhole ? sentAt + atLeastMicros(this.#unchangedFor(numbers)) : sentAt;
    if (!this.#refusals.has(id)) this.#makeRoom(shownFrom);
    this.#refusals.set(id, { cost, sentAt, until, fullUntil, shownFrom, numbers });
  }

  /** For how many ms at least the block of a refusal lasts. */
  #blockLeft(numbers) {
    // WAIT is the longest of block, full windows and minDifference.
    let others = this.#hasMinDifference ? Number.POSITIVE_INFINITY : 0;
    for (const [i, { maxInInterval }] of this.#windows.entries()) {
      const used = NUMBERS.WINDOWS + 2 * i;
      if (numbers[used] >= maxInInterval) others = Math.max(others, numbers[used + 1]);
    }
    if (numbers[NUMBERS.WAIT] > others) return numbers[NUMBERS.WAIT];
    const isOld = (numbers[NUMBERS.BLOCKED] & BLOCKED_BY_BLOCK) !== 0;
    return isOld ? 0 : this.#shortestBlock;
  }

  /**
   * For how many ms a full refusal only ages: until a window has more room, or its reason is over. What is used beyond
   * the maximum becomes less before that, at a time that is not known.
   */
  #unchangedFor(numbers) {
    const blocked = numbers[NUMBERS.BLOCKED];
    if (blocked === (BLOCKED_BY_COUNT | BLOCKED_BY_MIN_DIFFERENCE)) return 0;
    let least = numbers[NUMBERS.TIME_LEFT];
    if ((blocked & BLOCKED_BY_BLOCK) !== 0) least = Math.min(least, this.#blockLeft(numbers));
    for (const [i, { maxInInterval }] of this.#windows.entries()) {
      const used = numbers[NUMBERS.WINDOWS + 2 * i];
      const resetIn = numbers[NUMBERS.WINDOWS + 2 * i + 1];
      if (used > maxInInterval && this.#usesFallOneByOne) return 0;
      if (resetIn > 0) least = Math.min(least, resetIn);
    }
    return least;
  }

  /** Drops the oldest ones as long as their time is over, or there are too many. */
  #makeRoom(time) {
    for (;;) {
      const refusal = this.#refusals.get(this.#oldest);
      const isNeeded = refusal !== undefined && time < refusal.until;
      if (isNeeded && this.#refusals.size < this.#maxKeys) return;
      this.#refusals.delete(this.#oldest);
      const { value, done } = this.#ids.next();
      this.#oldest = value;
      if (!done) continue;
      this.#ids = this.#refusals.keys(); // an iterator that has ended sees no later ids
      return;
    }
  }
}

/** Whether two checked costs are the same: numbers, or lists of a number for each window. */
function isSameCost(a, b) {
  if (typeof a === 'number' || typeof b === 'number') return a === b;
  return a.every((cost, i) => cost === b[i]);
}

module.exports = { LocalRefusals };
