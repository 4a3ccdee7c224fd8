// The slots of a concurrency limiter in this process: their sums are native, and who holds them is known here.
'use strict';

const { loadBinding } = require('#native');
const platform = require('#platform');
const { clockReader, durationToMicros } = require('../base/clock');
const { failure, throwClosed, throwInvalidId, throwOutOfMemory } = require('../base/errors');
const { idToString } = require('../base/ids');
const { Queue } = require('../base/queue');
const { longTimeout } = require('../base/timers');

/** What `acquire` returns where as many other ids are held as may be. */
const FULL = Number.NEGATIVE_INFINITY;

/** How many releases are noted at most before the native side is told: each of its calls looks at the notes. */
const MOST_NOTED = 64;

const LARGEST_KEYS = 2 ** 48;

const lostError = () => failure('ERR_ROLLGATE_SLOT_LOST', 'the slot does not count any more');

/** What was acquired, until it is released or lost. */
class Hold {
  isOver = false;
  isLost = false;
  /** Made when somebody asks for the signal. */
  controller = undefined;
  /** In us: how old it is, once it is in the queue of its store, which `next` and `previous` belong to. */
  since = undefined;
  next = null;
  previous = null;

  /** `clearings`: how many there had been. */
  constructor(store, { id, cost, used, handle, clearings }) {
    this.store = store;
    this.id = id;
    this.cost = cost;
    this.used = used;
    this.handle = handle;
    this.clearings = clearings;
  }
}

/** A store that answers at once. Costs and maxima are checked. */
class LocalSlots {
  answersAtOnce = true;
  #functions;
  #events;
  #maxKeys;
  #maxAge;
  #readClock;
  /** Whether the time is read in each call. */
  #isTimed;
  /** For the native side: how many numbers follow; a handle and a cost for each release. */
  #released = new Float64Array(1 + 2 * MOST_NOTED);
  /** What the native side says beside its result. */
  #numbers = new Float64Array(3);
  /** By age: the holds that have outlived the turn of the event loop in which they began; all if it is timed. */
  #queue = new Queue();
  /** By id: the holds whose signal somebody has. */
  #watched = new Map();
  #clearings = 0;
  #leaked = 0;
  #errors = 0;
  #warned = new Set();
  #isClosed = false;

  /**
   * @param {Function} events.ended (hold, how) => void: it counted until now, and was 'released', 'lost' or 'leaked'
   * @param {Function} events.cleared (id?) => void: the id, or all of them
   */
  constructor({ maxKeys, maxAge, clock }, events) {
    this.#events = events;
    this.#maxKeys = maxKeys;
    this.#maxAge = maxAge === undefined ? Infinity : durationToMicros(maxAge);
    this.#isTimed = maxAge !== undefined || clock !== undefined;
    this.#readClock =
      clock === undefined
        ? () => Math.round(platform.monotonicMs() * 1000)
        : clockReader(clock, () => this.#errors++);
    /** The native side does not own these: they must live as long as its functions. */
    this.callbacks = {
      released: this.#released,
      numbers: this.#numbers,
      refuse: throwInvalidId,
      exhausted: throwOutOfMemory,
    };
    const create = loadBinding().createHeldCounts;
    this.#functions = create(Math.min(maxKeys, LARGEST_KEYS), this.callbacks);
  }

  /** A Hold; if it is refused, -1 - what is used of the id, or FULL. */
  acquire(id, cost, max) {
    const now = this.#isTimed ? this.#loseOld() : undefined;
    this.assertOpen();
    const { acquire } = this.#functions;
    const used = cost === 1 ? acquire(id, max) : acquire(id, max, cost);
    if (used < 0) return this.#numbers[1] === 0 ? used : this.#refuseForRoom();
    const [handle] = this.#numbers;
    const hold = new Hold(this, { id, cost, used, handle, clearings: this.#clearings });
    if (now !== undefined) this.#enqueue(hold, now);
    return hold;
  }

  #refuseForRoom() {
    const what = `slots of ${this.#maxKeys} ids are held (maxKeys), so other ids are refused`;
    this.#warnOnce('ROLLGATE_SLOTS_FULL', what);
    return FULL;
  }

  #warnOnce(code, what) {
    if (this.#warned.has(code)) return;
    this.#warned.add(code);
    platform.warn(what, code);
  }

  /** Returns whether it was held until now. */
  release(hold) {
    if (hold.isOver || this.#isClosed) return false;
    this.#loseOldIfPossible();
    return this.#end(hold, 'released');
  }

  /** As `release`, for what the program has forgotten. */
  collected(hold) {
    if (!this.#end(hold, 'leaked')) return;
    this.#leaked++;
    this.#warnOnce('ROLLGATE_SLOT_LEAKED', 'a slot was collected before its release');
  }

  /** The first call ends the hold; returns whether it counted until now. */
  #end(hold, how) {
    if (this.#isClosed) return false;
    const wasHeld = this.#counts(hold);
    if (hold.isOver) return false;
    hold.isOver = true;
    if (hold.since !== undefined) this.#queue.remove(hold);
    if (hold.controller !== undefined) this.#unwatch(hold);
    this.#note(hold);
    if (wasHeld) this.#events.ended(hold, how);
    return wasHeld;
  }

  #note({ handle, cost }) {
    const released = this.#released;
    const end = released[0];
    released[end + 1] = handle;
    released[end + 2] = cost;
    released[0] = end + 2;
    if (end + 2 === 2 * MOST_NOTED) this.#functions.flush();
  }

  #counts(hold) {
    if (hold.isOver || this.#isClosed) return false;
    return hold.clearings === this.#clearings || this.#functions.counts(hold.handle);
  }

  /** Ends what is older than `maxAge`. Returns the time. */
  #loseOld() {
    const now = this.#readClock();
    // Listeners of a signal may release others, or close the limiter.
    for (let { first } = this.#queue; first !== null; { first } = this.#queue) {
      if (now - first.since < this.#maxAge || this.#isClosed) break;
      this.#lose(first);
    }
    return now;
  }

  /** A listener of another signal may have released it, or closed the limiter. */
  #lose(hold) {
    if (hold.isOver || this.#isClosed) return;
    hold.isLost = true;
    const { controller } = hold;
    this.#end(hold, 'lost');
    controller?.abort(lostError());
  }

  #enqueue(hold, now) {
    hold.since = now;
    this.#queue.add(hold);
  }

  /** Must be called with what is still held after the turn of the event loop in which it began. */
  outlivesTurn(hold) {
    if (hold.since === undefined && this.#counts(hold)) this.#enqueue(hold, this.#readClock());
  }

  /** An AbortSignal that aborts when the hold is lost. */
  signalOf(hold) {
    if (!this.#isClosed) this.#loseOldIfPossible();
    if (hold.controller === undefined) {
      hold.controller = new AbortController();
      if (!this.#isClosed) this.#watch(hold);
    }
    return hold.controller.signal;
  }

  #watch(hold) {
    if (this.#counts(hold)) {
      const key = idToString(hold.id);
      if (!this.#watched.has(key)) this.#watched.set(key, new Set());
      this.#watched.get(key).add(hold);
      if (this.#maxAge < Infinity) this.#watchAge(hold);
    } else if (hold.isLost || !hold.isOver) {
      hold.controller.abort(lostError());
    }
  }

  /** A timer may be early, and the user's clock slow. */
  #watchAge(hold) {
    const look = () => {
      if (this.#isClosed) return;
      this.#loseOldIfPossible();
      if (!hold.isOver) this.#watchAge(hold);
    };
    hold.stopTimer = longTimeout(look, this.#msLeftOf(hold), true);
  }

  #msLeftOf({ since }) {
    let now = since;
    try {
      now = this.#readClock();
    } catch {
      // The user's clock failed, which stats().errors counts.
    }
    return Math.max(1, Math.ceil((since + this.#maxAge - now) / 1000));
  }

  /** For calls that make sense without the time. stats().errors counts failures of the user's clock. */
  #loseOldIfPossible() {
    try {
      if (this.#isTimed) this.#loseOld();
    } catch {}
  }

  #unwatch(hold) {
    hold.stopTimer?.();
    const key = idToString(hold.id);
    const holds = this.#watched.get(key);
    if (holds?.delete(hold) && holds.size === 0) this.#watched.delete(key);
  }

  usage(id) {
    if (this.#isTimed) this.#loseOld();
    this.assertOpen();
    return this.#functions.used(id);
  }

  /** Whether an id that nobody holds may be held. */
  hasRoom() {
    this.#functions.stats();
    return this.#numbers[0] < this.#maxKeys;
  }

  /** After how many ms a refused acquisition makes sense again; Infinity if it does when something is freed. */
  get retryIn() {
    const { first } = this.#queue;
    if (first === null || this.#maxAge === Infinity) return Infinity;
    return Math.max(0, (first.since + this.#maxAge - this.#readClock()) / 1000);
  }

  clear(id) {
    this.assertOpen();
    this.#functions.clear(id);
    this.#clearings++;
    const watched = this.#watched.get(idToString(id)) ?? [];
    for (const hold of [...watched]) this.#lose(hold);
    if (!this.#isClosed) this.#events.cleared(id);
  }

  clearAll() {
    this.assertOpen();
    this.#functions.clear();
    this.#clearings++;
    const watched = [...this.#watched.values()].flatMap((holds) => [...holds]);
    for (const hold of watched) this.#lose(hold);
    if (!this.#isClosed) this.#events.cleared();
  }

  stats() {
    this.assertOpen();
    const now = this.#loseOld();
    this.assertOpen();
    this.#functions.stats();
    const [keys, held, bytes] = this.#numbers;
    return {
      keys,
      held,
      oldest: this.#oldestAt(now),
      leaked: this.#leaked,
      errors: this.#errors,
      bytes,
    };
  }

  #oldestAt(now) {
    for (let { first } = this.#queue; first !== null; { first } = this.#queue) {
      if (this.#counts(first)) return Math.max(0, (now - first.since) / 1000);
      this.#queue.remove(first); // it was cleared
      first.since = undefined;
    }
    return 0;
  }

  assertOpen() {
    if (this.#isClosed) throwClosed();
  }

  /** Nothing is held any more. */
  close() {
    this.#isClosed = true;
    this.#functions.close();
    for (const holds of this.#watched.values()) for (const hold of holds) hold.stopTimer?.();
    this.#watched.clear();
    this.#queue = new Queue();
  }
}

module.exports = { FULL, LocalSlots };
