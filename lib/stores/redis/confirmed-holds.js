// The holds that the server has confirmed lately: they are renewed, and lost if they cannot be.
'use strict';

const { clearTimeout, setTimeout } = require('node:timers'); // as they are now: fake timers of tests must not stop them
const { LONGEST_TIMER } = require('../../base/timers');
const { elapsedMs, readClocks } = require('./clocks');

/** A part of `ttl`. One renewal may fail. */
const RENEWED_AFTER = 1 / 3;
const BELIEVED_FOR = 7 / 8;

/** The earlier one by each clock: one of them may have stepped between the two. */
const earlierOf = (one, other) => ({
  boot: Math.min(one.boot, other.boot),
  steady: Math.min(one.steady, other.steady),
  wall: Math.min(one.wall, other.wall),
});

/** A hold has `sentAt`: when the last request was sent that confirmed it, as readClocks() tells. */
class ConfirmedHolds {
  /** What they cost together. */
  units = 0;
  #ttl;
  #holds;
  #renew;
  #held = new Set();
  /** None of them was confirmed earlier. */
  #earliest;
  #renewedAt;
  #timer;
  #timerDue = Infinity;
  #isClosed = false;

  /**
   * @param {Holds} holds of the store; its store must delete what is over
   * @param {Function} renew (holds, done) asks the server. It calls done(holds, isMissing) once for each part that was
   *   answered; isMissing(place in these holds) tells whether the server does not have it
   */
  constructor(ttl, holds, renew) {
    this.#ttl = ttl;
    this.#holds = holds;
    this.#renew = renew;
  }

  [Symbol.iterator]() {
    return this.#held.values();
  }

  has(hold) {
    return this.#held.has(hold);
  }

  add(hold, sentAt) {
    hold.sentAt = sentAt;
    this.#held.add(hold);
    this.units += hold.cost;
    const isFirst = this.#held.size === 1;
    if (isFirst) this.#renewedAt = sentAt;
    this.#earliest = isFirst ? sentAt : earlierOf(this.#earliest, sentAt);
    const lostAt = sentAt.boot + this.#ttl * BELIEVED_FOR;
    if (lostAt < this.#timerDue) this.#arm();
  }

  /** Returns whether it was one of them. */
  delete(hold) {
    if (!this.#held.delete(hold)) return false;
    this.units -= hold.cost;
    return true;
  }

  /** Whether a request that was sent at that time confirms nothing any more. */
  isTooOld(sentAt, now) {
    return elapsedMs(sentAt, now) >= this.#ttl * BELIEVED_FOR;
  }

  /** Loses those that were not confirmed for too long. */
  look() {
    const now = readClocks();
    if (this.#held.size === 0 || !this.isTooOld(this.#earliest, now)) return;
    const lost = [];
    let earliest = now;
    for (const hold of this.#held) {
      if (this.isTooOld(hold.sentAt, now)) lost.push(hold);
      else earliest = earlierOf(earliest, hold.sentAt);
    }
    this.#earliest = earliest;
    this.#holds.loseAll(lost);
  }

  /** For the next renewal or the next loss. Does not keep the process alive. */
  #arm() {
    clearTimeout(this.#timer);
    this.#timerDue = Infinity;
    if (this.#held.size === 0 || this.#isClosed) return;
    const now = readClocks();
    const untilRenewal = this.#ttl * RENEWED_AFTER - elapsedMs(this.#renewedAt, now);
    const untilLoss = this.#ttl * BELIEVED_FOR - elapsedMs(this.#earliest, now);
    const due = Math.min(untilRenewal, untilLoss, this.#untilMaxAge());
    const ms = Math.min(Math.max(1, Math.ceil(due)), LONGEST_TIMER);
    this.#timer = setTimeout(() => this.#tick(), ms);
    this.#timer.unref();
    this.#timerDue = now.boot + ms;
  }

  #untilMaxAge() {
    try {
      return this.#holds.msToLoss;
    } catch {
      return Infinity; // the user's clock failed, which stats().errors counts
    }
  }

  #tick() {
    this.look();
    this.#holds.loseOldIfPossible();
    const isDue = elapsedMs(this.#renewedAt) >= this.#ttl * RENEWED_AFTER;
    if (isDue && this.#held.size > 0 && !this.#isClosed) this.#renewAll();
    this.#arm();
  }

  #renewAll() {
    const sentAt = readClocks();
    this.#renewedAt = sentAt;
    this.#renew(this.#held, (holds, isMissing) => {
      for (const [place, hold] of holds.entries()) {
        if (isMissing(place)) this.#holds.lose(hold);
        else if (sentAt.boot > hold.sentAt.boot) hold.sentAt = sentAt;
      }
      this.look();
    });
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}

module.exports = { ConfirmedHolds };
