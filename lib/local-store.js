// A store that answers at once: the native functions of one limiter and what they call back.
'use strict';

const { DECISIONS, EVICTIONS, NEVER } = require('./channels');
const { clockReader } = require('./clock');
const { NUMBERS, decisionLength } = require('./decision');
const { failure, throwInvalidCallback, throwClosed, throwInvalidId } = require('./errors');
const { nativePolicy } = require('./native-policy');

const STATS = { KEYS: 0, ALLOWED: 1, BLOCKED: 2, EVICTED: 3, BYTES: 4 };

function refuseForWantOfMemory() {
  throw failure('ERR_ROLLGATE_MEMORY', 'there is not enough memory for the log of this id');
}

/**
 * A synchronous store. `call(id?, callback?)` is the limiter function itself. `decide` hands the
 * numbers of a decision (see decision.js) to `read`, which must take what it wants at once, and
 * returns what that makes of them; it gets the window's maximum where that is told at every attempt.
 *
 * @param {object} checked options of the limiter, as checked by options.js
 * @param {object} kind
 * @param {Function} kind.create what the native side has for it: (options, keep) => functions
 * @param {object} kind.options for it, besides the policy
 * @param {(kind: number, message: string) => never} [kind.failed] throws what the native side cannot
 * @param {string} kind.evictionText how the warning begins that ids are dropped
 */
function createLocalStore(checked, { create, options, failed, evictionText }) {
  const { windows, clock, isInner } = checked;
  const observesDecisions = isInner ? NEVER : DECISIONS.flag;
  const observesEvictions = isInner ? NEVER : EVICTIONS.flag;
  const length = decisionLength(windows.length);
  const report = new Float64Array(Math.max(length, 8));
  let errors = 0;
  let hasWarned = false;
  let isClosed = false;

  /** Calls back later, whatever comes of the attempt. */
  function callBack(id, callback) {
    if (typeof callback !== 'function') throwInvalidCallback(callback);
    let error = null;
    try {
      functions.decide(id);
    } catch (thrown) {
      error = thrown;
    }
    if (error === null) {
      const timeLeft = report[NUMBERS.TIME_LEFT];
      process.nextTick(callback, null, timeLeft, report[NUMBERS.ACTIONS_LEFT]);
      if (observesDecisions[0] !== 0) publishDecision(id, timeLeft);
    } else {
      process.nextTick(callback, error);
    }
  }

  function publishDecision(id, timeLeft, cost = 1) {
    const limiter = functions.check;
    DECISIONS.channel.publish({ limiter, id, cost, allowed: timeLeft === 0, timeLeft });
  }

  function publishDecisions(ids, numbers) {
    const timesLeft = ids.map((_, i) => numbers[i * length + NUMBERS.TIME_LEFT]);
    for (const [i, id] of ids.entries()) publishDecision(id, timesLeft[i]);
  }

  function stats() {
    functions.stats();
    return {
      keys: report[STATS.KEYS],
      allowed: report[STATS.ALLOWED],
      blocked: report[STATS.BLOCKED],
      evicted: report[STATS.EVICTED],
      errors,
      bytes: report[STATS.BYTES],
    };
  }

  /** Called while a decision is in the report. */
  function publishEviction() {
    const decision = report.slice();
    const { keys, evicted } = stats();
    EVICTIONS.channel.publish({ limiter: functions.check, keys, evicted });
    report.set(decision);
  }

  function tellOfEviction() {
    if (!hasWarned) warnOfEviction();
    hasWarned = true;
    if (observesEvictions[0] !== 0) publishEviction();
  }

  function warnOfEviction() {
    process.emitWarning(
      `${evictionText} the id nearest to expiry for each new one; stats().evicted counts them`,
      { type: 'RollgateWarning', code: 'ROLLGATE_EVICTED' },
    );
  }

  /** A closed limiter says so, and asks its clock no more. */
  function openClockReader() {
    const readClock = clockReader(clock, () => errors++);
    return () => {
      if (isClosed) throwClosed();
      return readClock();
    };
  }

  // The native side only borrows these: they must live as long as its functions.
  const keep = {
    report,
    refuse: throwInvalidId,
    closed: throwClosed,
    exhausted: refuseForWantOfMemory,
    callBack,
    evicted: tellOfEviction,
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
  const functions = create({ ...nativePolicy(checked), ...options }, keep);

  return {
    keep,
    call: functions.check,

    decide(id, cost, records, read, max) {
      if (max !== undefined) functions.decide(id, cost, records, max);
      else if (cost === 1 && records) functions.decide(id);
      else functions.decide(id, cost, records);
      if (!records || observesDecisions[0] === 0) return read(report);
      // Whoever listens may ask the limiter itself.
      const timeLeft = report[NUMBERS.TIME_LEFT];
      const answer = read(report);
      publishDecision(id, timeLeft, cost);
      return answer;
    },

    /** The numbers of many decisions, one behind the other. */
    decideMany(ids, read) {
      const numbers = new Float64Array(ids.length * length);
      functions.decideMany(ids, numbers);
      const answer = read(numbers);
      if (observesDecisions[0] !== 0) publishDecisions(ids, numbers);
      return answer;
    },

    /** Without a receipt there is nothing to take back. */
    refund(receipt) {
      if (receipt === null) return false;
      return functions.refund(receipt.id, receipt.at, receipt.cost, receipt.incarnation);
    },

    clear(id) {
      functions.clear(id);
    },

    clearAll() {
      functions.clear();
    },

    stats,

    /** How a call ends that makes no sense: in a store that answers at once, by throwing. */
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

module.exports = { createLocalStore };
