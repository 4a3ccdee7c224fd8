// What a process knows of the slots that it holds, whatever counts them: how old they are, who wants to know of their
// loss, and which ones the program has forgotten.
'use strict';

const platform = require('#platform');
const { clockReader, durationToMicros } = require('../base/clock');
const { failure } = require('../base/errors');
const { idToString } = require('../base/ids');
const { Queue } = require('../base/queue');
const { longTimeout } = require('../base/timers');

/** What `acquire` of a store returns where nothing more may be held, of whatever id. */
const FULL = Number.NEGATIVE_INFINITY;

const monotonicMicros = () => Math.round(platform.monotonicMs() * 1000);

const lostError = () => failure('ERR_ROLLGATE_SLOT_LOST', 'the slot does not count any more');

/** What was acquired, until it is released or lost. */
class Hold {
  isOver = false;
  isLost = false;
  /** Made when somebody asks for the signal. */
  controller = undefined;
  /** In us: how old it is, once it is in the queue of Holds, which `next` and `previous` belong to. */
  since = undefined;
  next = null;
  previous = null;

  /** `handle` and `clearings` belong to the store: see there. */
  constructor(store, { id, cost, used, handle, clearings }) {
    this.store = store;
    this.id = id;
    this.cost = cost;
    this.used = used;
    this.handle = handle;
    this.clearings = clearings;
  }
}

/** The holds of one store. */
class Holds {
  /** Whether the store must call `loseOld` in each call, and `add` with each hold. */
  isTimed;
  #store;
  #maxAge;
  #readClock;
  /** By age: the holds that have outlived the turn of the event loop in which they began; all if it is timed. */
  #queue = new Queue();
  /** By id: the holds whose signal somebody has. */
  #watched = new Map();
  #looksEvery;
  #lookout;
  #leaked = 0;
  #errors = 0;
  #warned = new Set();
  #isClosed = false;

  /**
   * @param {object} store
   * @param {Function} store.counts (hold) => whether it is held, as far as is known
   * @param {boolean} [store.addsHolds] itself, with each one that has an age
   * @param {Function} [store.look] () => void: loses what it knows to be lost
   * @param {Function} [options.readClock] () => us, where there is no user's clock
   * @param {number} [options.looksEvery] in ms: `counts` changes without a word
   * @param {Function} store.end (hold, how) => whether it was held until now. `how` is 'lost' or 'leaked'; calls `forget`
   */
  constructor(store, { maxAge, clock, readClock = monotonicMicros, looksEvery }) {
    this.#store = store;
    this.#looksEvery = looksEvery;
    this.#maxAge = maxAge === undefined ? Infinity : durationToMicros(maxAge);
    this.isTimed = maxAge !== undefined || clock !== undefined;
    this.#readClock = clock === undefined ? readClock : clockReader(clock, () => this.#errors++);
  }

  add(hold, now = this.#readClock()) {
    hold.since = now;
    this.#queue.add(hold);
  }

  /** Must be called with what is still held after the turn of the event loop in which it began. */
  outlivesTurn(hold) {
    const { addsHolds } = this.#store;
    if (!addsHolds && hold.since === undefined && this.#store.counts(hold)) this.add(hold);
  }

  /** Must be called with each hold that is over. */
  forget(hold) {
    if (hold.since !== undefined) this.#queue.remove(hold);
    if (hold.controller !== undefined) this.#unwatch(hold);
  }

  /** Ends what is older than `maxAge`. Returns the time. */
  loseOld() {
    const now = this.#readClock();
    // Listeners of a signal may release others, or close the limiter.
    for (let { first } = this.#queue; first !== null; { first } = this.#queue) {
      if (now - first.since < this.#maxAge || this.#isClosed) break;
      this.lose(first);
    }
    return now;
  }

  /** For calls that make sense without the time. stats().errors counts failures of the user's clock. */
  loseOldIfPossible() {
    try {
      if (this.isTimed) this.loseOld();
    } catch {}
  }

  /** A listener of another signal may have released it, or closed the limiter. */
  lose(hold) {
    if (hold.isOver || this.#isClosed) return;
    hold.isLost = true;
    const { controller } = hold;
    this.#store.end(hold, 'lost');
    controller?.abort(lostError());
  }

  /** As lose() of each, but none of them counts any more when the first listener is called. */
  loseAll(holds) {
    if (this.#isClosed) return;
    const lost = holds.filter((hold) => !hold.isOver);
    for (const hold of lost) hold.isLost = true;
    for (const hold of lost) this.#store.end(hold, 'lost');
    for (const { controller } of lost) controller?.abort(lostError());
  }

  /** Loses those whose signal somebody has: of the id, or all. */
  loseWatched(id) {
    const watched = id === undefined ? this.#allWatched() : this.#watched.get(idToString(id));
    for (const hold of [...(watched ?? [])]) this.lose(hold);
  }

  #allWatched() {
    return [...this.#watched.values()].flatMap((holds) => [...holds]);
  }

  /** Ends what the program has forgotten. */
  collected(hold) {
    if (!this.#store.end(hold, 'leaked')) return;
    this.#leaked++;
    this.warnOnce('ROLLGATE_SLOT_LEAKED', 'a slot was collected before its release');
  }

  warnOnce(code, what) {
    if (this.#warned.has(code)) return;
    this.#warned.add(code);
    platform.warn(what, code);
  }

  /** An AbortSignal that aborts when the hold is lost. */
  signalOf(hold) {
    if (!this.#isClosed) {
      this.#store.look?.();
      this.loseOldIfPossible();
    }
    const mayBeLost = this.#looksEvery !== undefined && hold.controller !== undefined;
    if (mayBeLost && !this.#store.counts(hold)) this.lose(hold);
    if (hold.isLost) hold.controller?.abort(lostError()); // a listener of another one asks first
    if (hold.controller === undefined) {
      hold.controller = new AbortController();
      if (!this.#isClosed) this.#watch(hold);
    }
    return hold.controller.signal;
  }

  #watch(hold) {
    if (this.#store.counts(hold)) {
      const key = idToString(hold.id);
      if (!this.#watched.has(key)) this.#watched.set(key, new Set());
      this.#watched.get(key).add(hold);
      if (this.#looksEvery !== undefined) this.#startLooking();
      if (this.#maxAge < Infinity && hold.since !== undefined) this.#watchAge(hold);
    } else if (hold.isLost || !hold.isOver) {
      hold.controller.abort(lostError());
    }
  }

  #startLooking() {
    if (this.#lookout !== undefined) return;
    this.#lookout = setInterval(() => {
      for (const hold of this.#allWatched()) {
        if (!this.#store.counts(hold)) this.lose(hold);
      }
    }, this.#looksEvery);
    this.#lookout.unref();
  }

  #stopLooking() {
    clearInterval(this.#lookout);
    this.#lookout = undefined;
  }

  /** A timer may be early, and the user's clock slow. */
  #watchAge(hold) {
    const look = () => {
      if (this.#isClosed) return;
      this.loseOldIfPossible();
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

  #unwatch(hold) {
    hold.stopTimer?.();
    const key = idToString(hold.id);
    const holds = this.#watched.get(key);
    if (holds?.delete(hold) && holds.size === 0) this.#watched.delete(key);
    if (this.#watched.size === 0) this.#stopLooking(); // its timer keeps the limiter
  }

  /** After how many ms the oldest hold is lost; Infinity if it is not. */
  get msToLoss() {
    const { first } = this.#queue;
    if (first === null || this.#maxAge === Infinity) return Infinity;
    return Math.max(0, (first.since + this.#maxAge - this.#readClock()) / 1000);
  }

  /** `now` is of loseOld(). */
  stats(now) {
    return { oldest: this.#oldestAt(now), leaked: this.#leaked, errors: this.#errors };
  }

  #oldestAt(now) {
    for (let { first } = this.#queue; first !== null; { first } = this.#queue) {
      if (this.#store.counts(first)) return Math.max(0, (now - first.since) / 1000);
      this.#queue.remove(first); // it was cleared
      first.since = undefined;
    }
    return 0;
  }

  /** Nothing is held any more, and no signal aborts. */
  close() {
    this.#isClosed = true;
    this.#stopLooking();
    for (const hold of this.#allWatched()) hold.stopTimer?.();
    this.#watched.clear();
    this.#queue = new Queue();
  }
}

module.exports = { FULL, Hold, Holds };
