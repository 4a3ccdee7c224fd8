// A store that lies elsewhere: the functions of local-store.js, with promises of what they give there.
'use strict';

const { DECISIONS } = require('../channels');
const { clockReader } = require('../clock');
const { NUMBERS, decisionLength } = require('../decision');
const { throwInvalidCallback, throwClosed } = require('../errors');
const { createFallback, isOfBackend } = require('./fallback');
const { remoteIdToString } = require('../ids');
const { Outages } = require('./outage');

/** A double is exact up to here: what numbers can tell of a moment stops at it. */
const LONGEST_MICROS = 2 ** 53;

const readTimeLeft = (numbers) => numbers[NUMBERS.TIME_LEFT];

const readAnswer = (numbers) => ({
  timeLeft: numbers[NUMBERS.TIME_LEFT],
  actionsLeft: numbers[NUMBERS.ACTIONS_LEFT],
});

const publish = (message) => DECISIONS.channel.publish(message);

/** The user's clock in us, within what numbers can tell; without one, the backend has its own. */
function createClock(clock, onFailure) {
  if (clock === undefined) return () => undefined;
  const readClock = clockReader(clock, onFailure);
  return () => Math.max(-LONGEST_MICROS, Math.min(readClock(), LONGEST_MICROS));
}

/**
 * An asynchronous store: `decide` and `decideMany` promise what `read` makes of the numbers, which it
 * must take at once. What is wrong with a call rejects its promise. ARCHITECTURE.md tells what a
 * backend has to do.
 *
 * @param {object} checked options of the limiter, as checked by options.js
 * @param {object} backend what speaks to where the counts are
 * @param {string} onError as read by ./options.js
 */
function createRemoteStore(checked, backend, onError) {
  const { windows, clock } = checked;
  const length = decisionLength(windows.length);
  const counts = { allowed: 0, blocked: 0, errors: 0, fallbacks: 0 };
  const outages = new Outages((id) => backend.probe(id));
  const fallback = createFallback(onError, checked);
  const readNow = createClock(clock, () => counts.errors++);
  let isClosed = false;

  function assertOpen() {
    if (isClosed) throwClosed();
  }

  function openIdText(id) {
    assertOpen();
    return remoteIdToString(id);
  }

  /** Counts a decision that records, and tells of it. */
  function note(id, cost, numbers, offset = 0) {
    const allowed = numbers[offset + NUMBERS.BLOCKED] === 0;
    if (allowed) counts.allowed++;
    else counts.blocked++;
    if (DECISIONS.flag[0] === 0) return;
    const timeLeft = numbers[offset + NUMBERS.TIME_LEFT];
    // Later: whoever listens may ask the limiter itself, and the numbers are not its own.
    process.nextTick(publish, { limiter: store.call, id, cost, allowed, timeLeft });
  }

  /** Has the fallback decide, as `decide` does. */
  function decideWithout(id, cost, records, read, max) {
    counts.fallbacks++;
    const readCounted = (numbers) => {
      if (records) note(id, cost, numbers);
      return read(numbers);
    };
    return fallback.decide(id, cost, records, readCounted, max);
  }

  function noteOutage(error, text) {
    if (backend.isOutage(error)) outages.note(backend.partOf(text));
  }

  function isOutOfReach(text) {
    return fallback !== null && outages.isOn(backend.partOf(text), text);
  }

  /**
   * `isFull`: whether `read` wants more of the numbers than BLOCKED and TIME_LEFT; `max` as in
   * local-store.js.
   */
  function decide(id, cost, records, read, isFull, max) {
    return new Promise((resolve, reject) => {
      const text = openIdText(id);
      const now = readNow();
      assertOpen(); // the user's clock may have closed it
      if (isOutOfReach(text)) {
        resolve(decideWithout(text, cost, records, read, max));
        return;
      }
      const done = (error, numbers) => {
        if (error === null) {
          if (records) note(id, cost, numbers);
          resolve(read(numbers));
          return;
        }
        counts.errors++;
        if (fallback === null || isClosed) {
          reject(error);
          return;
        }
        noteOutage(error, text);
        try {
          resolve(decideWithout(text, cost, records, read, max));
        } catch (failed) {
          reject(failed);
        }
      };
      backend.attempt(text, cost, records, isFull, now, done, max);
    });
  }

  function noteAll(ids, numbers) {
    for (const [i, id] of ids.entries()) note(id, 1, numbers, i * length);
    return numbers;
  }

  function decideManyWithout(ids) {
    counts.fallbacks += ids.length;
    return fallback.decideMany(ids, (numbers) => noteAll(ids, numbers));
  }

  async function numbersOfMany(ids) {
    const texts = ids.map(openIdText);
    const now = readNow();
    if (texts.length === 0) return new Float64Array(0);
    // Decided together: where one of them cannot be asked for, none is.
    if (texts.filter(isOutOfReach).length > 0) return decideManyWithout(texts);
    try {
      return noteAll(texts, await backend.attemptMany(texts, now));
    } catch (error) {
      counts.errors++;
      if (fallback === null || isClosed) throw error;
      // With several parts, which of them failed is not known: the next call of each finds out.
      const parts = new Set(texts.map(backend.partOf));
      if (parts.size === 1) noteOutage(error, texts[0]);
      return decideManyWithout(texts);
    }
  }

  /** Calls back outside of every promise, where an exception of the callback's own is uncaught. */
  function callBack(id, callback) {
    if (typeof callback !== 'function') throwInvalidCallback(callback);
    decide(id, 1, true, readAnswer, true).then(
      ({ timeLeft, actionsLeft }) => process.nextTick(callback, null, timeLeft, actionsLeft),
      (error) => process.nextTick(callback, error),
    );
  }

  /** Runs what onError does not soften. */
  async function run(call) {
    try {
      return await call();
    } catch (error) {
      counts.errors++;
      throw error;
    }
  }

  const store = {
    detectedClientType: backend.detectedClientType,

    /** The limiter function itself. */
    call(id, callback) {
      if (callback !== undefined) return callBack(id, callback);
      if (typeof id === 'function') return callBack(undefined, id);
      return decide(id, 1, true, readTimeLeft, false);
    },

    decide: (id, cost, records, read, max) => decide(id, cost, records, read, true, max),

    async decideMany(ids, read) {
      assertOpen();
      return read(await numbersOfMany(ids));
    },

    async refund(receipt) {
      if (receipt === null) return false;
      if (!isOfBackend(receipt)) return fallback.refund(receipt);
      const now = readNow();
      assertOpen(); // the user's clock may have closed it
      return run(() => backend.refund(remoteIdToString(receipt.id), receipt, now));
    },

    async clear(id) {
      const text = openIdText(id);
      fallback?.clear(text);
      await run(() => backend.clear(text));
    },

    async clearAll() {
      assertOpen();
      fallback?.clearAll();
      await run(() => backend.clearAll());
    },

    stats() {
      assertOpen();
      const { allowed, blocked, errors, fallbacks } = counts;
      return {
        keys: null, // to know would take a scan
        allowed,
        blocked,
        evicted: fallback?.evicted() ?? 0,
        errors,
        bytes: null,
        fallbacks,
        connection: backend.stats(),
      };
    },

    /** How a call ends that makes no sense. */
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
