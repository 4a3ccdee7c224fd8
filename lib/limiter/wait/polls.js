// Asks again for those who wait for what another process may free: all that wait in this process in one pass.
'use strict';

/** Between two passes, in ms. At random, so that processes do not ask in step. */
const SHORTEST_MS = 40;
const LONGEST_MS = 50;

/** 1,000 in 50 ms. If more wait, each of them is asked for less often. */
const MOST_OF_A_PASS = 800;

class Polls {
  #random;
  /** In the order in which they are due. */
  #polls = new Set();
  #timer;

  /** @param {() => number} random from 0 to below 1 */
  constructor(random = Math.random) {
    this.#random = random;
  }

  get length() {
    return this.#polls.size;
  }

  /** Calls `poll` once, in one of the next passes. It must not throw. Returns a function that cancels that. */
  add(poll) {
    this.#polls.add(poll);
    if (this.#timer === undefined) this.#arm();
    return () => this.#cancel(poll);
  }

  #arm() {
    const ms = SHORTEST_MS + (LONGEST_MS - SHORTEST_MS) * this.#random();
    this.#timer = setTimeout(() => this.#pass(), ms);
  }

  #cancel(poll) {
    if (!this.#polls.delete(poll) || this.#polls.size > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Those that are added meanwhile have their turn in a later pass. */
  #pass() {
    this.#timer = undefined; // those that are added meanwhile may begin the next one
    const due = [];
    for (const poll of this.#polls) if (due.push(poll) === MOST_OF_A_PASS) break;
    for (const poll of due) if (this.#polls.delete(poll)) poll();
    if (this.#polls.size > 0 && this.#timer === undefined) this.#arm();
  }
}

/** Those of this process, so that the calls of one pass share commands. */
const POLLS = new Polls();

module.exports = { POLLS, Polls };
