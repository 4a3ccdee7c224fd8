// Key-value stores: lets the core decide on bytes that are written if nobody else wrote meanwhile.
'use strict';

const { loadBinding } = require('#native');
const { random32 } = require('#platform');
const { durationToMicros } = require('../../base/clock');
const { RECORDS, decisionLength } = require('../../base/decision');
const { optionError, throwOutOfMemory } = require('../../base/errors');
const { nativePolicy } = require('../../native/policy');
const { Deadlines } = require('../remote/deadlines');
const { createRemoteStore } = require('../remote/store');
const { createDenoStore, isDenoKv, createPlainStore, FOREIGN, NOTHING } = require('./adapters');
const failures = require('./failures');
const { backOff, Lines } = require('./id-queues');

/** Added to TTLs, so that they never affect a decision. */
const TTL_MARGIN_MS = 1000;
/** A hundred years: stores add it to the time of day. */
const LONGEST_TTL_MS = 100 * 366 * 24 * 3600 * 1000;

const wallClock = () => Date.now() * 1000;

/** Tells a generation of an id from its earlier ones. */
const newGeneration = random32;

/** A state has the number of limits in a byte. */
const MOST_LIMITS = 255;

function assertFewLimits({ windows }) {
  if (windows.length <= MOST_LIMITS) return;
  const expected = `at most ${MOST_LIMITS} limits with a key-value store`;
  throw optionError('limits', `expected ${expected}, got ${windows.length}`);
}

/** A backend of remote/store.js, as docs/design/remote-stores.md specifies. */
function createKvBackend(checked) {
  assertFewLimits(checked);
  const { kv, namespace, commandTimeout } = checked.kv;
  const length = decisionLength(checked.windows.length);
  // The native side does not own this: it must live as long as the functions.
  const callbacks = { numbers: new Float64Array(length), exhausted: throwOutOfMemory };
  const createCore = (policy) =>
    loadBinding().createPortableLimiter(nativePolicy(policy), callbacks);
  /** An attempt keeps the one that was there when it was made, and so its limits. */
  let core = createCore(checked);
  const createStore = isDenoKv(kv) ? createDenoStore : createPlainStore;
  const store = createStore({ kv, namespace, largestState: core.largestState() });
  const deadlines = new Deadlines(commandTimeout, (call) => call.expire());
  const lines = new Lines(store, { deadlines, commandTimeout, ttlOf });
  /** The time of the last decision. */
  let decidedAt = 0;

  /** For how many ms to keep a state that was just decided. */
  function ttlOf(state) {
    const lifetimeMs = Math.ceil(core.lifetime(state, decidedAt) / 1000);
    return Math.min(lifetimeMs + TTL_MARGIN_MS, LONGEST_TTL_MS);
  }

  /** The next state by the result of the native side. */
  function nextOf(state, written) {
    if (written === null) throw failures.foreign();
    return written === undefined ? state : new Uint8Array(written);
  }

  function attempt(id, cost, records, _full, now, done, max) {
    const { decide: decideOn } = core;
    let numbers;
    function decide(state) {
      if (state === FOREIGN) throw failures.foreign();
      decidedAt = now ?? wallClock();
      const written = decideOn(state, cost, records, decidedAt, newGeneration(), max);
      numbers = callbacks.numbers.slice();
      return nextOf(state, written);
    }
    lines.add(id, decide, (error) => done(error, numbers));
  }

  /** One action outside of lines, with its own deadline. */
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

  function numbersOf(id, now) {
    return new Promise((resolve, reject) => {
      const done = (error, numbers) => (error ? reject(error) : resolve(numbers));
      attempt(id, 1, RECORDS.ATTEMPT, true, now, done);
    });
  }

  function inLine(id, decide) {
    return new Promise((resolve, reject) => {
      lines.add(id, decide, (error) => (error ? reject(error) : resolve()));
    });
  }

  return {
    attempt,

    /** If one id fails, the promise rejects, and others may have been recorded. */
    async attemptMany(ids, now = wallClock()) {
      const decisions = await Promise.all(ids.map((id) => numbersOf(id, now)));
      const all = new Float64Array(ids.length * length);
      for (const [i, numbers] of decisions.entries()) all.set(numbers, i * length);
      return all;
    },

    async settle(id, { at, cost, generation }, actual, now) {
      let isFound;
      function replaceCost(state) {
        isFound = false;
        if (state === FOREIGN) throw failures.foreign();
        if (state === NOTHING) return state;
        decidedAt = now ?? wallClock();
        const next = nextOf(state, core.settle(state, at, generation, cost, actual, decidedAt));
        isFound = next !== state;
        return next;
      }
      await inLine(id, replaceCost);
      return isFound;
    },

    block(id, ms, now) {
      return inLine(id, (state) => {
        if (state === FOREIGN) throw failures.foreign();
        decidedAt = now ?? wallClock();
        const written = core.block(state, durationToMicros(ms), decidedAt, newGeneration());
        return nextOf(state, written);
      });
    },

    setLimits(next) {
      const created = createCore(next);
      store.assertFits?.(created.largestState());
      core = created;
    },

    clear: (id) => inLine(id, () => NOTHING),

    clearAll: () => store.forgetAll(step),

    partOf: () => 0,

    isOutage: failures.isOutage,

    probe: (id) => step(() => store.read(store.keyOf(id))),

    stats: () => ({ pending: deadlines.pending, conflicts: lines.conflicts }),

    /** The owner closes the store; pending calls settle within their deadlines. */
    async close() {},
  };
}

function createKvStore(checked) {
  return createRemoteStore(checked, createKvBackend(checked), checked.kv.onError);
}

module.exports = { createKvStore };
