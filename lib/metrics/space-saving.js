// The most frequent among any number of things, in memory for few of them.
'use strict';

const { Queue } = require('../queue');

/**
 * Space-Saving, in steps whose number does not depend on the capacity. Of n things counted, any that came
 * more than n / capacity times has a counter; a counter is never less than the true count, and too high by
 * at most its `overcount`.
 *
 * Source: Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data
 * Streams (2005).
 */
class SpaceSaving {
  /** By count, for counters only ever go up by one: the next count above the least is the least plus one. */
  #byCount = new Map();
  #least = 0;
  #size = 0;
  #capacity;

  constructor(capacity) {
    this.#capacity = capacity;
  }

  /** The counter of a thing that had none. The one `dropped` for it counts its thing no more. */
  add(thing) {
    const dropped = this.#size < this.#capacity ? undefined : this.#dropLeast();
    const overcount = dropped?.count ?? 0;
    const counter = { thing, count: overcount + 1, overcount };
    this.#place(counter);
    this.#size++;
    // A counter that was dropped may have been the last of the least.
    if (overcount === 0 || !this.#byCount.has(overcount)) this.#least = counter.count;
    return { counter, dropped };
  }

  increment(counter) {
    const { count } = counter;
    this.#displace(counter);
    counter.count = count + 1;
    this.#place(counter);
    if (!this.#byCount.has(this.#least)) this.#least = counter.count;
  }

  clear() {
    this.#byCount.clear();
    this.#size = 0;
  }

  /** In no order. */
  *counters() {
    for (const equals of this.#byCount.values()) {
      for (let counter = equals.first; counter !== null; counter = counter.next) yield counter;
    }
  }

  #place(counter) {
    let equals = this.#byCount.get(counter.count);
    if (equals === undefined) {
      equals = new Queue();
      this.#byCount.set(counter.count, equals);
    }
    equals.add(counter);
  }

  #displace(counter) {
    const equals = this.#byCount.get(counter.count);
    equals.remove(counter);
    if (equals.length === 0) this.#byCount.delete(counter.count);
  }

  /** Of those with the least count the one that has stood there longest. */
  #dropLeast() {
    const counter = this.#byCount.get(this.#least).first;
    this.#displace(counter);
    this.#size--;
    return counter;
  }
}

module.exports = { SpaceSaving };
