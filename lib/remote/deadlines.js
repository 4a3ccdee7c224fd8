// The deadlines of calls that are all given the same time: one timer, and none while nothing is pending.
'use strict';

const COMPACTED_FROM = 1024;
/** A loop that comes so much later than asked has been busy, and reads its sockets first for a while. */
const LATE_MS = 5;
const GRACE_MS = 20;

/**
 * `expire(call)` is called for each call whose deadline passes before end(call). Calls are objects of
 * their owner's; `deadline` and `isPending` in them belong to this.
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

  /** Whether the call was pending still. */
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
    // One grace only, or a loop that is always busy would put everything off for ever.
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
    // Not before all have ended: what follows from the end of one sends nothing of another that is due.
    for (const call of due) this.#expire(call);
  }
}

module.exports = { Deadlines };
