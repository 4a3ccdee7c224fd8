// The slots of a concurrency limiter that counts at once: in this process, or in memory that processes share.
'use strict';

const { throwClosed } = require('../base/errors');
const { FULL, Hold, Holds } = require('./holds');

/** A store that answers at once. Costs and maxima are checked. */
class LocalSlots {
  answersAtOnce = true;
  holds;
  #counts;
  #events;
  /** Whether the time is read in each call. */
  #isTimed;
  #isClosed = false;

  /**
   * `counts` are HeldCounts or SharedCounts.
   *
   * @param {Function} events.ended (hold, how) => void: it counted until now, and was 'released', 'lost' or 'leaked'
   * @param {Function} events.cleared (id?) => void: the id, or all of them
   */
  constructor(counts, options, events) {
    this.#events = events;
    this.#counts = counts;
    const { readClock, looksEvery } = counts;
    this.holds = new Holds(this, { ...options, readClock, looksEvery });
    this.#isTimed = this.holds.isTimed;
  }

  /** Whether other processes hold slots of the same ids, so that waiting calls must ask again. */
  get hasOthers() {
    return this.#counts.hasOthers;
  }

  /** A Hold; if it is refused, -1 - what is used of the id, or FULL. */
  acquire(id, cost, max) {
    const now = this.#isTimed ? this.holds.loseOld() : undefined;
    this.assertOpen();
    const counts = this.#counts;
    const used = counts.acquire(id, cost, max, now);
    if (used < 0) return counts.isFull ? this.#refuseForRoom() : used;
    const hold = new Hold(this, {
      id,
      cost,
      used,
      handle: counts.handle,
      clearings: counts.clearings,
    });
    if (now !== undefined) this.holds.add(hold, now);
    return hold;
  }

  #refuseForRoom() {
    this.holds.warnOnce('ROLLGATE_SLOTS_FULL', this.#counts.fullness);
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
    if (hold.isOver || this.#isClosed) return false;
    hold.isOver = true;
    if (hold.since !== undefined || hold.controller !== undefined) this.holds.forget(hold);
    const wasHeld = this.#counts.release(hold);
    if (wasHeld) this.#events.ended(hold, how);
    return wasHeld;
  }

  counts(hold) {
    return !hold.isOver && !this.#isClosed && this.#counts.holds(hold);
  }

  usage(id) {
    const now = this.#isTimed ? this.holds.loseOld() : undefined;
    this.assertOpen();
    return this.#counts.used(id, now);
  }

  /** Whether an id that nobody holds may be held, as far as is known. */
  hasRoom() {
    return this.#counts.hasRoom();
  }

  /** After how many ms a refused acquisition makes sense again; Infinity if it does when something is freed. */
  get retryIn() {
    return this.holds.msToLoss;
  }

  clear(id) {
    this.assertOpen();
    this.#counts.clear(id);
    this.holds.loseWatched(id ?? '');
    if (!this.#isClosed) this.#events.cleared(id);
  }

  clearAll() {
    this.assertOpen();
    this.#counts.clearAll();
    this.holds.loseWatched();
    if (!this.#isClosed) this.#events.cleared();
  }

  stats() {
    this.assertOpen();
    const now = this.holds.loseOld();
    this.assertOpen();
    const { keys, held, bytes } = this.#counts.stats();
    const { oldest, leaked, errors } = this.holds.stats(now);
    return { keys, held, oldest, leaked, errors: errors + this.#counts.errors, bytes };
  }

  assertOpen() {
    if (this.#isClosed) throwClosed();
  }

  /** Nothing is held any more. */
  close() {
    this.#isClosed = true;
    this.#counts.close();
    this.holds.close();
  }
}

module.exports = { LocalSlots };
