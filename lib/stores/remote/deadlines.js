// The deadlines of calls with a common timeout: one timer, and none while no call is pending.
'use strict';

const COMPACTED_FROM = 1024;
/** If the timer is this late, the event loop was busy, and gets a grace period to read its sockets first. */
const LATE_MS = 5;
const GRACE_MS = 20;

/**
 * Calls `expire(call)` for each call whose deadline passes before end(call). Calls are objects of the user of
 * this class, which sets their `deadline` and `isPending`.
 */
class Deadlines {
  #timeoutMs;
  #expire;
  #calls = []; // in the order of their deadlines
  #first = 0; // in #calls: the oldest that is pending
  #timer;
  #isInGrace = false;
  pending = 0;

  constructor(timeoutMs, expire) {
    this.#timeoutMs = timeoutMs;
    this.#expire = expire;
  }

  begin(call) {
    call.deadline = performance.now() + this.#timeoutMs;
    call.isPending = true;
    this.#calls.push(call);
    this.pending += 1;
    if (this.#timer === undefined) this.#arm(this.#timeoutMs);
  }

  /** Ends a call; returns whether it was still pending. */
  end(call) {
    if (!call.isPending) return false;
    call.isPending = false;
    this.pending -= 1;
    if (this.pending === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#isInGrace = false;
      this.#calls = [];
      this.#first = 0;
    } else {
      this.#skipEnded();
    }
    return true;
  }

  #arm(ms) {
    this.#timer = setTimeout(() => this.#expireDue(), ms);
  }

  #skipEnded() {
    const calls = this.#calls;
    while (this.#first < calls.length && !calls[this.#first].isPending) this.#first += 1;
    if (this.#first >= COMPACTED_FROM && this.#first * 2 >= calls.length) {
      this.#calls = calls.slice(this.#first);
      this.#first = 0;
    }
  }

  #expireDue() {
    this.#timer = undefined;
    const now = performance.now();
    // One grace period only, or a loop that is always busy would postpone every deadline forever.
    this.#isInGrace = !this.#isInGrace && now - this.#calls[this.#first].deadline > LATE_MS;
    if (this.#isInGrace) {
      this.#arm(GRACE_MS);
      return;
    }
    const due = [];
    while (this.pending > 0) {
      const oldest = this.#calls[this.#first];
      if (oldest.deadline > now) {
        this.#arm(Math.ceil(oldest.deadline - now));
        break;
      }
      this.end(oldest);
      due.push(oldest);
    }
    // Only after all have ended, so that no callback sends a call that is due.
    for (const call of due) this.#expire(call);
  }
}

module.exports = { Deadlines };
