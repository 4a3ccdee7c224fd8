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
const { CalendarFinder } = require('../native/calendars');
const { nativePolicy } = require('../native/policy');

/** What the terms of a call have: see src/binding/local_limiter.h. */
const LIMITS = 1;
const CALENDARS = 2;

const outsideOfHeap = (count) =>
  new Float64Array(new ArrayBuffer(count * Float64Array.BYTES_PER_ELEMENT));

/**
 * A function of a checked cost that returns it as native functions read it fastest. V8 moves a small array out of its
 * heap when native code asks for it, which takes longer than a decision. So costs are copied to an array that was
 * never in the heap. A user's clock may call the limiter before they are read; then they are passed as they are.
 */
function createToNative({ windows, clock }) {
  if (clock !== undefined) return (cost) => cost;
  const costs = outsideOfHeap(windows.length);
  return (cost) => {
    if (typeof cost === 'number') return cost;
    for (let i = 0; i < costs.length; i++) costs[i] = cost[i];
    return costs;
  };
}

/**
 * A synchronous store. `call(id?, callback?)` is the limiter function itself. `decide` returns the result of
 * `read(numbers)`, which gets the numbers of the decision (see decision.js) and must copy what it needs; its `records`
 * is one of RECORDS; its `terms` what the call brings of its own: see limiter/terms.js.
 */
class LocalStore {
  answersAtOnce = true;
  #functions;
  #numbers;
  #windows;
  #length;
  #toNative;
  #observesDecisions;
  #observesEvictions;
  #errors = 0;
  #recorded = 0;
  #calendars;
  #limits;
  #hasWarned = false;
  #isClosed = false;

  /**
   * @param {object} checked checked options of the limiter
   * @param {Function} parts.create of the native side: (options, callbacks) => functions
   * @param {object} parts.options its options, besides the policy
   * @param {(kind: number, message: string) => never} [parts.failed] throws an error of the native side
   * @param {string} parts.evictionWarning the beginning of the warning that ids are dropped
   */
  constructor(checked, { create, options, failed, evictionWarning }) {
    const { windows, clock, isInner } = checked;
    this.#windows = windows;
    this.#calendars = new CalendarFinder(windows);
    this.#length = decisionLength(windows.length);
    this.#limits = outsideOfHeap(windows.length);
    this.#toNative = createToNative(checked);
    this.#numbers = new Float64Array(this.#length);
    this.#observesDecisions = isInner ? NEVER : DECISIONS.flag;
    this.#observesEvictions = isInner ? NEVER : EVICTIONS.flag;
    /** The native side does not own these: they must live as long as its functions. */
    this.callbacks = {
      numbers: this.#numbers,
      refuse: throwInvalidId,
      closed: throwClosed,
      exhausted: throwOutOfMemory,
      callBack: (id, callback) => this.#callBack(id, callback),
      evicted: () => this.#noteEviction(evictionWarning),
      decided: (id, timeLeft) => this.#publishDecision(id, timeLeft),
      observesDecisions: this.#observesDecisions,
      observesEvictions: this.#observesEvictions,
      clock: clock && this.#openClockReader(clock),
      limits: this.#limits,
      span: this.#calendars.span,
      findWindow: this.#calendars.findWindow,
      failed:
        failed &&
        ((kind, message) => {
          this.#errors++;
          failed(kind, message);
        }),
    };
    this.#functions = create({ policy: nativePolicy(checked), ...options }, this.callbacks);
    this.call = this.#functions.check;
  }

  /** A closed limiter throws instead of reading its clock. */
  #openClockReader(clock) {
    const readClock = clockReader(clock, () => this.#errors++);
    return () => {
      this.assertOpen();
      return readClock();
    };
  }

  #decideWithin(id, cost, records, { limits, calendars }) {
    // set() takes longer.
    if (limits !== undefined) for (let i = 0; i < limits.length; i++) this.#limits[i] = limits[i];
    if (calendars === undefined) return this.#decideWithBits(id, LIMITS, cost, records);
    const bits = CALENDARS + (limits === undefined ? 0 : LIMITS);
    const before = this.#calendars.ofCall; // the user's clock may call the limiter
    this.#calendars.ofCall = calendars;
    try {
      return this.#decideWithBits(id, bits, cost, records);
    } finally {
      this.#calendars.ofCall = before;
    }
  }

  #decideWithBits(id, bits, cost, records) {
    if (cost === 1 && records === RECORDS.ATTEMPT) this.#functions.decideWithin(id, bits);
    else this.#functions.decideWithin(id, bits, this.#toNative(cost), records);
  }

  decide(id, cost, records, read, terms) {
    if (terms !== undefined) this.#decideWithin(id, cost, records, terms);
    else if (cost === 1 && records === RECORDS.ATTEMPT) this.#functions.decide(id);
    else this.#functions.decide(id, this.#toNative(cost), records);
    const numbers = this.#numbers;
    if (records === RECORDS.RECORD) return this.#noteRecord(id, cost, read(numbers));
    if (this.#observesDecisions[0] === 0 || !isSeen(records, numbers[NUMBERS.BLOCKED]))
      return read(numbers);
    // Read first: a subscriber may call the limiter, which overwrites the numbers.
    const timeLeft = numbers[NUMBERS.TIME_LEFT];
    const answer = read(numbers);
    this.#publishDecision(id, timeLeft, cost);
    return answer;
  }

  /** `read` gets the numbers of all decisions, in the order of the ids. */
  decideMany(ids, read) {
    const numbers = new Float64Array(ids.length * this.#length);
    this.#functions.decideMany(ids, numbers);
    const answer = read(numbers);
    if (this.#observesDecisions[0] !== 0) {
      const timesLeft = ids.map((_, i) => numbers[i * this.#length + NUMBERS.TIME_LEFT]);
      for (const [i, id] of ids.entries()) this.#publishDecision(id, timesLeft[i]);
    }
    return answer;
  }

  /** Calls back later, also with errors of the attempt. */
  #callBack(id, callback) {
    if (typeof callback !== 'function') throwInvalidCallback(callback);
    try {
      this.#functions.decide(id);
    } catch (error) {
      platform.soon(callback, error);
      return;
    }
    const timeLeft = this.#numbers[NUMBERS.TIME_LEFT];
    platform.soon(callback, null, timeLeft, this.#numbers[NUMBERS.ACTIONS_LEFT]);
    if (this.#observesDecisions[0] !== 0) this.#publishDecision(id, timeLeft);
  }

  #noteRecord(id, cost, answer) {
    this.#recorded++;
    if (this.#observesDecisions[0] !== 0) {
      const shown = costToUser(cost, this.#windows);
      const message = { limiter: this.call, id, cost: shown, allowed: true, timeLeft: 0 };
      DECISIONS.channel.publish({ kind: 'record', ...message });
    }
    return answer;
  }

  #publishDecision(id, timeLeft, cost = 1) {
    const shown = costToUser(cost, this.#windows);
    const allowed = timeLeft === 0;
    DECISIONS.channel.publish({ limiter: this.call, id, cost: shown, allowed, timeLeft });
  }

  #noteEviction(warning) {
    if (!this.#hasWarned) {
      platform.warn(
        `${warning} the id nearest to expiry for each new one; stats().evicted counts them`,
        'ROLLGATE_EVICTED',
      );
    }
    this.#hasWarned = true;
    if (this.#observesEvictions[0] === 0) return;
    const decision = this.#numbers.slice(); // it is in the numbers while the native side calls this
    const { keys, evicted } = this.stats();
    EVICTIONS.channel.publish({ limiter: this.call, keys, evicted });
    this.#numbers.set(decision);
  }

  /** Replaces what an attempt cost by `actual`; 0 takes it back. Without a receipt there is nothing to settle. */
  settle(receipt, actual) {
    if (receipt === null) return false;
    const { id, at, generation, cost } = receipt;
    return this.#functions.settle(id, at, generation, cost, actual);
  }

  /** `checked`: the options of the limiter with other limits of the same shape. */
  setLimits(checked) {
    this.#functions.setLimits(nativePolicy(checked));
    this.#windows = checked.windows;
    this.#calendars.windows = checked.windows;
  }

  block(id, ms) {
    this.#functions.block(id, durationToMicros(ms));
  }

  clear(id) {
    this.#functions.clear(id);
  }

  clearAll() {
    this.#functions.clear();
  }

  stats() {
    this.#functions.stats();
    const [keys, allowed, blocked, evicted, bytes] = this.#numbers;
    const counts = { errors: this.#errors, recorded: this.#recorded };
    return { keys, allowed, blocked, evicted, ...counts, bytes };
  }

  /** How an invalid call ends: synchronous stores throw. */
  fail(error) {
    throw error;
  }

  assertOpen() {
    if (this.#isClosed) throwClosed();
  }

  close() {
    this.#isClosed = true;
    this.#functions.close();
  }
}

const LARGEST_KEYS = 2 ** 48;

/** The store in this process's memory. */
function createMemoryStore(checked) {
  const { maxKeys } = checked;
  return new LocalStore(checked, {
    create: loadBinding().createMemoryLimiter,
    options: { maxKeys: Math.min(maxKeys, LARGEST_KEYS) },
    evictionWarning: `a rollgate limiter holds ${maxKeys} ids (maxKeys) and drops`,
  });
}

module.exports = { LocalStore, createMemoryStore };
