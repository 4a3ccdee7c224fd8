// The slots of a concurrency limiter in this process: their sums are native, and who holds them is known here.
'use strict';

const { loadBinding } = require('#native');
const { throwClosed, throwInvalidId, throwOutOfMemory } = require('../base/errors');
const { FULL, Hold, Holds } = require('./holds');

/** How many releases are noted at most before the native side is told: each of its calls looks at the notes. */
const MOST_NOTED = 64;

const LARGEST_KEYS = 2 ** 48;

/** A store that answers at once. Costs and maxima are checked. */
class LocalSlots {
  answersAtOnce = true;
  /** Whether other processes hold slots of the same ids, so that waiting calls must ask again. */
  hasOthers = false;
  holds;
  #functions;
  #events;
  #maxKeys;
  /** Whether the time is read in each call. */
  #isTimed;
  /** For the native side: how many numbers follow; a handle and a cost for each release. */
  #released = new Float64Array(1 + 2 * MOST_NOTED);
  /** What the native side says beside its result. */
  #numbers = new Float64Array(3);
  /** How many there have been. A hold has the number of its time: with another one, its handle may be void. */
  #clearings = 0;
  #isClosed = false;

  /**
   * @param {Function} events.ended (hold, how) => void: it counted until now, and was 'released', 'lost' or 'leaked'
   * @param {Function} events.cleared (id?) => void: the id, or all of them
   */
  constructor({ maxKeys, maxAge, clock }, events) {
    this.#events = events;
    this.#maxKeys = maxKeys;
    this.holds = new Holds(this, { maxAge, clock });
    this.#isTimed = this.holds.isTimed;
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
    const now = this.#isTimed ? this.holds.loseOld() : undefined;
    this.assertOpen();
    const { acquire } = this.#functions;
    const used = cost === 1 ? acquire(id, max) : acquire(id, max, cost);
    if (used < 0) return this.#numbers[1] === 0 ? used : this.#refuseForRoom();
    const [handle] = this.#numbers;
    const hold = new Hold(this, { id, cost, used, handle, clearings: this.#clearings });
    if (now !== undefined) this.holds.add(hold, now);
    return hold;
  }

  #refuseForRoom() {
    const what = `slots of ${this.#maxKeys} ids are held (maxKeys), so other ids are refused`;
    this.holds.warnOnce('ROLLGATE_SLOTS_FULL', what);
    return FULL;
  }

  /** Returns whether it was held until now. */
  release(hold) {
    if (hold.isOver || this.#isClosed) return false;
    if (this.#isTimed) this.holds.loseOldIfPossible();
    return this.end(hold, 'released');
  }

  /** The first call ends the hold; returns whether it counted until now. */
  end(hold, how) {
    if (this.#isClosed) return false;
    const wasHeld = this.counts(hold);
    if (hold.isOver) return false;
    hold.isOver = true;
    if (hold.since !== undefined || hold.controller !== undefined) this.holds.forget(hold);
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

  counts(hold) {
    if (hold.isOver || this.#isClosed) return false;
    return hold.clearings === this.#clearings || this.#functions.counts(hold.handle);
  }

  usage(id) {
    if (this.#isTimed) this.holds.loseOld();
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
    return this.holds.msToLoss;
  }

  clear(id) {
    this.assertOpen();
    this.#functions.clear(id);
    this.#clearings++;
    this.holds.loseWatched(id ?? '');
    if (!this.#isClosed) this.#events.cleared(id);
  }

  clearAll() {
    this.assertOpen();
    this.#functions.clear();
    this.#clearings++;
    this.holds.loseWatched();
    if (!this.#isClosed) this.#events.cleared();
  }

  stats() {
    this.assertOpen();
    const now = this.holds.loseOld();
    this.assertOpen();
    this.#functions.stats();
    const [keys, held, bytes] = this.#numbers;
    return { keys, held, ...this.holds.stats(now), bytes };
  }

  assertOpen() {
    if (this.#isClosed) throwClosed();
  }

  /** Nothing is held any more. */
  close() {
    this.#isClosed = true;
    this.#functions.close();
    this.holds.close();
  }
}

module.exports = { LocalSlots };
