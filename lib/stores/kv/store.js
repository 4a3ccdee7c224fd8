// Key-value stores: lets the core decide on bytes that are written if nobody else wrote meanwhile.
'use strict';

const { loadBinding } = require('#native');
const { random32 } = require('#platform');
const { durationToMicros } = require('../../base/clock');
const { decisionLength } = require('../../base/decision');
const { optionError, throwOutOfMemory } = require('../../base/errors');
const { CalendarFinder } = require('../../native/calendars');
const { nativePolicy } = require('../../native/policy');
const { Deadlines } = require('../remote/deadlines');
const { OPERATIONS, askFor, isDecision } = require('../remote/operations');
const { RemoteStore } = require('../remote/store');
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
class KvBackend {
  #core;
  #callbacks;
  #length;
  #calendars;
  #store;
  #deadlines;
  #lines;
  #commandTimeout;
  /** The time of the last decision. */
  #decidedAt = 0;

  constructor(checked) {
    assertFewLimits(checked);
    const { kv, namespace, commandTimeout } = checked.kv;
    this.#length = decisionLength(checked.windows.length);
    this.#calendars = new CalendarFinder(checked.windows);
    // The native side does not own this: it must live as long as the functions.
    this.#callbacks = {
      numbers: new Float64Array(this.#length),
      exhausted: throwOutOfMemory,
      span: this.#calendars.span,
      findWindow: this.#calendars.findWindow,
    };
    this.#core = this.#createCore(checked);
    const createStore = isDenoKv(kv) ? createDenoStore : createPlainStore;
    this.#store = createStore({ kv, namespace, largestState: this.#core.largestState() });
    this.#commandTimeout = commandTimeout;
    this.#deadlines = new Deadlines(commandTimeout, (call) => call.expire());
    const ttlOf = (state) => this.#ttlOf(state);
    this.#lines = new Lines(this.#store, { deadlines: this.#deadlines, commandTimeout, ttlOf });
  }

  #createCore(policy) {
    return loadBinding().createPortableLimiter(nativePolicy(policy), this.#callbacks);
  }

  /** For how many ms to keep a state that was just decided. */
  #ttlOf(state) {
    const lifetimeMs = Math.ceil(this.#core.lifetime(state, this.#decidedAt) / 1000);
    return Math.min(lifetimeMs + TTL_MARGIN_MS, LONGEST_TTL_MS);
  }

  ask(call) {
    const { operation, id, done } = call;
    if (operation === OPERATIONS.PROBE) {
      this.#step(() => this.#store.read(this.#store.keyOf(id))).then(() => done(null), done);
      return;
    }
    const core = this.#core; // so that it keeps the limits that it was made under
    let result;
    const change = (state) => {
      const [next, resultNow] = this.#change(call, core, state);
      result = resultNow;
      return next;
    };
    this.#lines.add(id, change, (error) => done(error, result));
  }

  /** The next state after a call, and the call's result. */
  #change({ operation, cost, now, terms, receipt, actual, ms }, core, state) {
    if (operation === OPERATIONS.CLEAR) return [NOTHING];
    if (state === FOREIGN) throw failures.foreign();
    const at = now ?? wallClock();
    this.#decidedAt = at;
    if (isDecision(operation)) {
      this.#calendars.ofCall = terms?.calendars;
      const hasCalendars = terms?.calendars !== undefined;
      const written = core.decide(
        state,
        cost,
        operation,
        at,
        newGeneration(),
        terms?.limits,
        hasCalendars,
      );
      return [nextOf(state, written), this.#callbacks.numbers.slice()];
    }
    if (operation === OPERATIONS.BLOCK) {
      return [nextOf(state, core.block(state, durationToMicros(ms), at, newGeneration()))];
    }
    if (state === NOTHING) return [state, false];
    const { at: madeAt, generation, cost: reserved } = receipt;
    const next = nextOf(state, core.settle(state, madeAt, generation, reserved, actual, at));
    return [next, next !== state];
  }

  /** One action outside of lines, with its own deadline. */
  #step(action) {
    return new Promise((resolve, reject) => {
      const deadlines = this.#deadlines;
      let obstacle;
      const call = { expire: () => reject(failures.timeout(this.#commandTimeout, obstacle)) };
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

  /** If one id fails, the promise rejects, and others may have been recorded. */
  async attemptMany(ids, now = wallClock()) {
    const attempt = { operation: OPERATIONS.ATTEMPT, cost: 1, now };
    const ask = (call) => this.ask(call);
    const decisions = await Promise.all(ids.map((id) => askFor(ask, { ...attempt, id })));
    const all = new Float64Array(ids.length * this.#length);
    for (const [i, numbers] of decisions.entries()) all.set(numbers, i * this.#length);
    return all;
  }

  setLimits(next) {
    const created = this.#createCore(next);
    this.#store.assertFits?.(created.largestState());
    this.#core = created;
    this.#calendars.windows = next.windows;
  }

  clearAll() {
    return this.#store.forgetAll((action) => this.#step(action));
  }

  partOf() {
    return 0;
  }

  isOutage(failed) {
    return failures.isOutage(failed);
  }

  stats() {
    return { pending: this.#deadlines.pending, conflicts: this.#lines.conflicts };
  }

  /** The owner closes the store; pending calls settle within their deadlines. */
  async close() {}
}

/** The next state by the result of the native side. */
function nextOf(state, written) {
  if (written === null) throw failures.foreign();
  return written === undefined ? state : new Uint8Array(written);
}

function createKvStore(checked) {
  return new RemoteStore(checked, new KvBackend(checked), checked.kv.onError);
}

module.exports = { createKvStore };
