// Counts in a key-value store: the core decides on bytes, which are written where nobody else did.
'use strict';

const { randomInt } = require('node:crypto');
const { decisionLength } = require('../decision');
const { failure } = require('../errors');
const { loadAddon } = require('../native');
const { nativePolicy } = require('../native-policy');
const { Deadlines } = require('../remote/deadlines');
const { backOff } = require('./back-off');
const { createDenoStore, isDenoKv } = require('./deno-kv');
const failures = require('./failures');
const { Lines } = require('./lines');
const { createPlainStore } = require('./plain-kv');
const { FOREIGN, NOTHING } = require('./state');

/** A TTL is no part of the decision: what it forgets has not mattered for a while. */
const TTL_MARGIN_MS = 1000;
/** A hundred years; stores add it to the time of day. */
const LONGEST_TTL_MS = 100 * 366 * 24 * 3600 * 1000;

const wallClock = () => Date.now() * 1000;

/** Tells a generation of an id from its earlier ones. */
const newGeneration = () => randomInt(2 ** 32);

function refuseForWantOfMemory() {
  throw failure('ERR_ROLLGATE_MEMORY', 'there is not enough memory for the state of this id');
}

/**
 * A backend of remote-store.js. ARCHITECTURE.md tells what backends have in common.
 *
 * @param {object} checked options of a limiter with `kv`, as checked by options.js
 */
function createKvBackend(checked) {
  const { kv, namespace, commandTimeout } = checked.kv;
  const length = decisionLength(checked.windows.length);
  // The native side only borrows this: it must live as long as its functions.
  const keep = { report: new Float64Array(length), exhausted: refuseForWantOfMemory };
  const core = loadAddon().createPortableLimiter(nativePolicy(checked), keep);
  const createStore = isDenoKv(kv) ? createDenoStore : createPlainStore;
  const store = createStore({ kv, namespace, largestState: core.largestState() });
  const deadlines = new Deadlines(commandTimeout, (call) => call.expire());
  const lines = new Lines(store, { deadlines, commandTimeout, ttlOf });
  /** When it was decided last. */
  let decidedAt = 0;

  /** For how many ms a state is kept that was decided just now. */
  function ttlOf(state) {
    const lifetimeMs = Math.ceil(core.lifetime(state, decidedAt) / 1000);
    return Math.min(lifetimeMs + TTL_MARGIN_MS, LONGEST_TTL_MS);
  }

  /** From what the native side gives to the next state. */
  function nextOf(state, written) {
    if (written === null) throw failures.foreign();
    return written === undefined ? state : new Uint8Array(written);
  }

  function attempt(id, cost, records, now, done, max) {
    let numbers;
    function decide(state) {
      if (state === FOREIGN) throw failures.foreign();
      decidedAt = now ?? wallClock();
      const written = core.decide(state, cost, records, decidedAt, newGeneration(), max);
      numbers = keep.report.slice();
      return nextOf(state, written);
    }
    lines.add(id, decide, (error) => done(error, numbers));
  }

  /** One action of the store's that no line is for, within a deadline of its own. */
  function step(action) {
    return new Promise((resolve, reject) => {
      let obstacle;
      const call = { expire: () => reject(failures.timeout(commandTimeout, obstacle)) };
      const settle = (settled, result) => deadlines.end(call) && settled(result);
      async function run() {
        for (let lost = 0; call.isPending; lost++) {
          try {
            return settle(resolve, await action());
          } catch (error) {
            if (!failures.isBusy(error)) return settle(reject, failures.from(error));
            obstacle = error;
            await backOff(lost);
          }
        }
      }
      deadlines.begin(call);
      run();
    });
  }

  /** A place in the id's line as a promise of what `resultOf()` gives then. */
  function inLine(id, decide, resultOf) {
    return new Promise((resolve, reject) => {
      lines.add(id, decide, (error) => (error === null ? resolve(resultOf()) : reject(error)));
    });
  }

  return {
    attempt: (id, cost, records, _full, now, done, max) =>
      attempt(id, cost, records, now, done, max),

    /** Where one id fails the promise rejects, and others may be recorded. */
    async attemptMany(ids, now = wallClock()) {
      const all = new Float64Array(ids.length * length);
      const one = (id, i) => {
        return new Promise((resolve, reject) => {
          attempt(id, 1, true, now, (error, numbers) => {
            if (error !== null) return reject(error);
            all.set(numbers, i * length);
            resolve();
          });
        });
      };
      await Promise.all(ids.map(one));
      return all;
    },

    refund(id, { at, cost, incarnation }, now) {
      let isFound;
      function takeBack(state) {
        isFound = false;
        if (state === FOREIGN) throw failures.foreign();
        if (state === NOTHING) return state;
        decidedAt = now ?? wallClock();
        const next = nextOf(state, core.refund(state, at, cost, incarnation, decidedAt));
        isFound = next !== state;
        return next;
      }
      return inLine(id, takeBack, () => isFound);
    },

    clear: (id) =>
      inLine(
        id,
        () => NOTHING,
        () => undefined,
      ),

    clearAll: () => store.forgetAll(step),

    partOf: () => 0,

    isOutage: failures.isOutage,

    probe: (id) => step(() => store.read(store.keyOf(id))),

    stats: () => ({ pending: deadlines.pending, conflicts: lines.conflicts }),

    /** The store is its owner's to close; what is pending settles in its time. */
    async close() {},
  };
}

module.exports = { createKvBackend };
