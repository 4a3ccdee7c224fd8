// A store outside of this process: the functions of local.js, with promises of their results.
'use strict';

const platform = require('#platform');
const { DECISIONS, NEVER } = require('../../base/channels');
const { clockReader } = require('../../base/clock');
const { costToUser } = require('../../options/costs');
const { NUMBERS, RECORDS, decisionLength, isSeen } = require('../../base/decision');
const { errorOfFailure, throwInvalidCallback, throwClosed } = require('../../base/errors');
const { remoteIdToString } = require('../../base/ids');
const { createFallback, isOfBackend, Outages } = require('./on-error');
const { LocalRefusals } = require('./local-refusals');

/** Doubles are exact up to here; times stop at it. */
const LONGEST_MICROS = 2 ** 53;

const readTimeLeft = (numbers) => numbers[NUMBERS.TIME_LEFT];

const readAnswer = (numbers) => ({
  timeLeft: numbers[NUMBERS.TIME_LEFT],
  actionsLeft: numbers[NUMBERS.ACTIONS_LEFT],
});

/** The user's clock in us, within LONGEST_MICROS; without one, undefined: the backend has its own clock. */
function createClock(clock, onFailure) {
  if (clock === undefined) return () => undefined;
  const readClock = clockReader(clock, onFailure);
  return () => Math.max(-LONGEST_MICROS, Math.min(readClock(), LONGEST_MICROS));
}

/**
 * An asynchronous store: `decide` and `decideMany` promise the result of `read(numbers)`, which must copy what
 * it needs. Failures reject the promise with an Error. docs/design/remote-stores.md specifies backends.
 */
function createRemoteStore(checked, givenBackend, onError) {
  const { clock, isInner } = checked;
  const observesDecisions = isInner ? NEVER : DECISIONS.flag;
  let { windows } = checked;
  const length = decisionLength(windows.length);
  const counts = { allowed: 0, blocked: 0, errors: 0, fallbacks: 0, localRefusals: 0 };
  const refusals = checked.localRefusals ? new LocalRefusals(checked) : null;
  const backend = refusals === null ? givenBackend : refusals.observing(givenBackend);
  const outages = new Outages((id) => backend.probe(id));
  const fallback = createFallback(onError, checked);
  const readNow = createClock(clock, () => counts.errors++);
  let isClosed = false;

  function assertOpen() {
    if (isClosed) throwClosed();
  }

  function readId(id) {
    assertOpen();
    return remoteIdToString(id);
  }

  /** Counts a decision and publishes it. */
  function note(id, cost, records, numbers, offset = 0) {
    const blocked = numbers[offset + NUMBERS.BLOCKED];
    if (!isSeen(records, blocked)) return;
    const allowed = blocked === 0;
    if (allowed) counts.allowed++;
    else counts.blocked++;
    if (observesDecisions[0] === 0) return;
    const timeLeft = numbers[offset + NUMBERS.TIME_LEFT];
    const shown = costToUser(cost, windows);
    const message = { limiter: store.call, id, cost: shown, allowed, timeLeft };
    // Later, because a subscriber may call the limiter, which would overwrite the numbers. In a microtask,
    // because callers that only await microtasks would delay the next tick.
    queueMicrotask(() => DECISIONS.channel.publish(message));
  }

  /** `decide` by the fallback. */
  function decideByFallback(id, cost, records, read, max) {
    counts.fallbacks++;
    const readCounted = (numbers) => {
      note(id, cost, records, numbers);
      return read(numbers);
    };
    return fallback.decide(id, cost, records, readCounted, max);
  }

  function noteOutage(failed, part) {
    if (backend.isOutage(failed)) outages.note(part);
  }

  function readNowOpen() {
    const now = readNow();
    assertOpen(); // the user's clock may have closed it
    return now;
  }

  /** `call` has the id as given and as a string, the time, and how to settle. Must be called in its promise. */
  function ask(call, cost, records, read, isFull, max) {
    const { id, idString, now, resolve, reject } = call;
    // Before the call: after a failover, its failure says nothing about the part's successor.
    const part = fallback === null ? undefined : backend.partOf(idString);
    if (fallback !== null && outages.isOn(part, idString)) {
      resolve(decideByFallback(idString, cost, records, read, max));
      return;
    }
    const done = (failed, numbers) => {
      if (failed === null) {
        note(id, cost, records, numbers);
        resolve(read(numbers));
        return;
      }
      counts.errors++;
      if (fallback === null || isClosed) {
        reject(errorOfFailure(failed));
        return;
      }
      noteOutage(failed, part);
      try {
        resolve(decideByFallback(idString, cost, records, read, max));
      } catch (error) {
        reject(error);
      }
    };
    // To backends, WAITING is the same as IF_ALLOWED.
    const recording = records === RECORDS.WAITING ? RECORDS.IF_ALLOWED : records;
    backend.attempt(idString, cost, recording, isFull, now, done, max);
  }

  /** `isFull`: whether `read` needs more numbers than BLOCKED and TIME_LEFT; `max` as in local.js. */
  function askNow(id, cost, records, read, isFull, max) {
    return new Promise((resolve, reject) => {
      const call = { id, idString: readId(id), now: readNowOpen(), resolve, reject };
      ask(call, cost, records, read, isFull, max);
    });
  }

  /** The same, or a refusal repeated, which creates nothing but its promise. */
  async function repeatOrAsk(id, cost, records, read, isFull, max) {
    const idString = readId(id);
    const now = readNowOpen();
    const mayRepeat = records !== RECORDS.NOTHING && max === undefined;
    const numbers = mayRepeat ? refusals.find(idString, cost, isFull, now) : undefined;
    if (numbers !== undefined) {
      if (records !== RECORDS.WAITING) counts.localRefusals++;
      note(id, cost, records, numbers);
      return read(numbers);
    }
    return new Promise((resolve, reject) => {
      ask({ id, idString, now, resolve, reject }, cost, records, read, isFull, max);
    });
  }

  const decide = refusals === null ? askNow : repeatOrAsk;

  function noteAll(ids, numbers) {
    for (const [i, id] of ids.entries()) note(id, 1, RECORDS.ATTEMPT, numbers, i * length);
    return numbers;
  }

  function decideManyByFallback(ids) {
    counts.fallbacks += ids.length;
    return fallback.decideMany(ids, (numbers) => noteAll(ids, numbers));
  }

  async function numbersOfMany(ids) {
    const idStrings = ids.map(readId);
    const now = readNow();
    if (idStrings.length === 0) return new Float64Array(0);
    // All are decided in one place: if one is unreachable, by the fallback.
    const partOfId = fallback === null ? [] : idStrings.map(backend.partOf);
    const isAnyOut = partOfId.filter((part, i) => outages.isOn(part, idStrings[i])).length > 0;
    if (isAnyOut) return decideManyByFallback(idStrings);
    try {
      return noteAll(idStrings, await backend.attemptMany(idStrings, now));
    } catch (failed) {
      counts.errors++;
      if (fallback === null || isClosed) throw errorOfFailure(failed);
      // Of several parts it is not known which one failed; the next call of each finds out.
      if (new Set(partOfId).size === 1) noteOutage(failed, partOfId[0]);
      return decideManyByFallback(idStrings);
    }
  }

  /** Calls back outside of promises, so that an exception in the callback is uncaught. */
  function callBack(id, callback) {
    if (typeof callback !== 'function') throwInvalidCallback(callback);
    decide(id, 1, RECORDS.ATTEMPT, readAnswer, true).then(
      ({ timeLeft, actionsLeft }) => platform.soon(callback, null, timeLeft, actionsLeft),
      (error) => platform.soon(callback, error),
    );
  }

  /** For calls that onError does not apply to. */
  function countFailure(failed) {
    counts.errors++;
    throw errorOfFailure(failed);
  }

  const store = {
    detectedClientType: backend.detectedClientType,
    answersAtOnce: false,

    /** The limiter function itself. */
    call(id, callback) {
      if (callback !== undefined) return callBack(id, callback);
      if (typeof id === 'function') return callBack(undefined, id);
      return decide(id, 1, RECORDS.ATTEMPT, readTimeLeft, false);
    },

    /** As in local.js, but never ASKING. */
    decide: (id, cost, records, read, max) => decide(id, cost, records, read, true, max),

    async decideMany(ids, read) {
      assertOpen();
      return read(await numbersOfMany(ids));
    },

    async settle(receipt, actual) {
      if (receipt === null) return false;
      if (!isOfBackend(receipt)) return fallback.settle(receipt, actual);
      const now = readNowOpen();
      return backend.settle(remoteIdToString(receipt.id), receipt, actual, now).catch(countFailure);
    },

    /** `next`: the checked options of the limiter with other limits of the same shape. */
    setLimits(next) {
      assertOpen();
      backend.setLimits(next); // first, because it may refuse them
      ({ windows } = next);
      fallback?.setLimits(next);
    },

    async block(id, ms) {
      const idString = readId(id);
      const now = readNowOpen();
      fallback?.block(idString, ms);
      await backend.block(idString, ms, now).catch(countFailure);
    },

    async clear(id) {
      const idString = readId(id);
      fallback?.clear(idString);
      await backend.clear(idString).catch(countFailure);
    },

    async clearAll() {
      assertOpen();
      fallback?.clearAll();
      await backend.clearAll().catch(countFailure);
    },

    stats() {
      assertOpen();
      const { allowed, blocked, errors, fallbacks, localRefusals } = counts;
      return {
        keys: null, // would need a scan
        allowed,
        blocked,
        evicted: fallback?.evicted() ?? 0,
        errors,
        bytes: null,
        fallbacks,
        localRefusals,
        connection: backend.stats(),
      };
    },

    /** How an invalid call ends. */
    fail: (error) => Promise.reject(error),

    assertOpen,

    async close() {
      if (isClosed) return;
      isClosed = true;
      fallback?.close();
      await backend.close();
    },
  };
  backend.ownedBy?.(store.call);
  return store;
}

module.exports = { createRemoteStore };
