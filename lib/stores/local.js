// Stores that answer at once: the native functions of one limiter and their callbacks; the store in memory.
'use strict';

const { loadBinding } = require('#native');
const platform = require('#platform');
const { DECISIONS, EVICTIONS, NEVER } = require('../base/channels');
const { clockReader, durationToMicros } = require('../base/clock');
const { costToUser } = require('../options/costs');
const { NUMBERS, RECORDS, decisionLength, isSeen } = require('../base/decision');
const {
  throwClosed,
  throwInvalidCallback,
  throwInvalidId,
  throwOutOfMemory,
} = require('../base/errors');
const { nativePolicy } = require('../native/policy');

const STATS = { KEYS: 0, ALLOWED: 1, BLOCKED: 2, EVICTED: 3, BYTES: 4 };

/**
 * A function of a checked cost that returns it as native functions read it fastest. V8 moves a small array out of its
 * heap when native code asks for it, which takes longer than a decision. So costs are copied to an array that was
 * never in the heap. A user's clock may call the limiter before they are read; then they are passed as they are.
 */
function createToNative({ windows, clock }) {
  if (clock !== undefined) return (cost) => cost;
  const costs = new Float64Array(new ArrayBuffer(windows.length * Float64Array.BYTES_PER_ELEMENT));
  return (cost) => {
    if (typeof cost === 'number') return cost;
    for (let i = 0; i < costs.length; i++) costs[i] = cost[i];
    return costs;
  };
}

/**
 * A synchronous store. `call(id?, callback?)` is the limiter function itself. `decide` returns the result of
 * `read(numbers)`, which gets the numbers of the decision (see decision.js) and must copy what it needs; its `records`
 * is one of RECORDS; its `max` is the maximum of an attempt, for limiters with SETS_MAX.
 *
 * @param {object} checked checked options of the limiter
 * @param {Function} kind.create of the native side: (options, callbacks) => functions
 * @param {object} kind.options its options, besides the policy
 * @param {(kind: number, message: string) => never} [kind.failed] throws an error of the native side
 * @param {string} kind.evictionWarning the beginning of the warning that ids are dropped
 */
function createLocalStore(checked, { create, options, failed, evictionWarning }) {
  const { windows, clock, isInner } = checked;
  const observesDecisions = isInner ? NEVER : DECISIONS.flag;
  const observesEvictions = isInner ? NEVER : EVICTIONS.flag;
  const length = decisionLength(windows.length);
  const toNative = createToNative(checked);
  const numbers = new Float64Array(Math.max(length, 8));
  let errors = 0;
  let hasWarned = false;
  let isClosed = false;

  /** Calls back later, also with errors of the attempt. */
  function callBack(id, callback) {
    if (typeof callback !== 'function') throwInvalidCallback(callback);
    try {
      functions.decide(id);
    } catch (error) {
      platform.soon(callback, error);
      return;
    }
    const timeLeft = numbers[NUMBERS.TIME_LEFT];
    platform.soon(callback, null, timeLeft, numbers[NUMBERS.ACTIONS_LEFT]);
    if (observesDecisions[0] !== 0) publishDecision(id, timeLeft);
  }

  function publishDecision(id, timeLeft, cost = 1) {
    const limiter = functions.check;
    const shown = costToUser(cost, windows);
    DECISIONS.channel.publish({ limiter, id, cost: shown, allowed: timeLeft === 0, timeLeft });
  }

  function publishDecisions(ids, numbers) {
    const timesLeft = ids.map((_, i) => numbers[i * length + NUMBERS.TIME_LEFT]);
    for (const [i, id] of ids.entries()) publishDecision(id, timesLeft[i]);
  }

  function stats() {
    functions.stats();
    return {
      keys: numbers[STATS.KEYS],
      allowed: numbers[STATS.ALLOWED],
      blocked: numbers[STATS.BLOCKED],
      evicted: numbers[STATS.EVICTED],
      errors,
      bytes: numbers[STATS.BYTES],
    };
  }

  /** The native side calls this while a decision is in the numbers. */
  function publishEviction() {
    const decision = numbers.slice();
    const { keys, evicted } = stats();
    EVICTIONS.channel.publish({ limiter: functions.check, keys, evicted });
    numbers.set(decision);
  }

  function noteEviction() {
    if (!hasWarned) warnOfEviction();
    hasWarned = true;
    if (observesEvictions[0] !== 0) publishEviction();
  }

  function warnOfEviction() {
    platform.warn(
      `${evictionWarning} the id nearest to expiry for each new one; stats().evicted counts them`,
      'ROLLGATE_EVICTED',
    );
  }

  /** A closed limiter throws instead of reading its clock. */
  function openClockReader() {
    const readClock = clockReader(clock, () => errors++);
    return () => {
      if (isClosed) throwClosed();
      return readClock();
    };
  }

  // The native side does not own these: they must live as long as its functions.
  const callbacks = {
    numbers,
    refuse: throwInvalidId,
    closed: throwClosed,
    exhausted: throwOutOfMemory,
    callBack,
    evicted: noteEviction,
    decided: publishDecision,
    observesDecisions,
    observesEvictions,
    clock: clock && openClockReader(),
    failed:
      failed &&
      ((kind, message) => {
        errors++;
        failed(kind, message);
      }),
  };
  const functions = create({ ...nativePolicy(checked), ...options }, callbacks);

  return {
    callbacks,
    call: functions.check,
    answersAtOnce: true,

    decide(id, cost, records, read, max) {
      if (max !== undefined) functions.decide(id, cost, records, max);
      else if (cost === 1 && records === RECORDS.ATTEMPT) functions.decide(id);
      else functions.decide(id, toNative(cost), records);
      if (observesDecisions[0] === 0 || !isSeen(records, numbers[NUMBERS.BLOCKED]))
        return read(numbers);
      // Read first: a subscriber may call the limiter, which overwrites the numbers.
      const timeLeft = numbers[NUMBERS.TIME_LEFT];
      const answer = read(numbers);
      publishDecision(id, timeLeft, cost);
      return answer;
    },

    /** `read` gets the numbers of all decisions, in the order of the ids. */
    decideMany(ids, read) {
      const numbers = new Float64Array(ids.length * length);
      functions.decideMany(ids, numbers);
      const answer = read(numbers);
      if (observesDecisions[0] !== 0) publishDecisions(ids, numbers);
      return answer;
    },

    /** Replaces what an attempt cost by `actual`; 0 takes it back. Without a receipt there is nothing to settle. */
    settle(receipt, actual) {
      if (receipt === null) return false;
      const { id, at, generation, cost } = receipt;
      return functions.settle(id, at, generation, cost, actual);
    },

    /** `checked`: the options of the limiter with other limits of the same shape. */
    setLimits(checked) {
      functions.setLimits(nativePolicy(checked));
    },

    block(id, ms) {
      functions.block(id, durationToMicros(ms));
    },

    clear(id) {
      functions.clear(id);
    },

    clearAll() {
      functions.clear();
    },

    stats,

    /** How an invalid call ends: synchronous stores throw. */
    fail(error) {
      throw error;
    },

    assertOpen() {
      if (isClosed) throwClosed();
    },

    close() {
      isClosed = true;
      functions.close();
    },
  };
}

const LARGEST_KEYS = 2 ** 48;

/** The store in this process's memory. */
function createMemoryStore(checked) {
  const { maxKeys } = checked;
  return createLocalStore(checked, {
    create: loadBinding().createMemoryLimiter,
    options: { maxKeys: Math.min(maxKeys, LARGEST_KEYS) },
    evictionWarning: `a rollgate limiter holds ${maxKeys} ids (maxKeys) and drops`,
  });
}

module.exports = { createLocalStore, createMemoryStore };
