// Admissions of one id of which only the beginning and the end of each call are known.
'use strict';

class Admissions {
  #calls = [];

  /** `tolerance`: ms by which the clock that decides may differ from the one that is read here. */
  constructor(limit, tolerance) {
    this.limit = limit;
    this.shortest = limit.interval - tolerance;
  }

  /** Adds an admission that was decided between start and end; false where it was one too many for sure. */
  add(start, end) {
    this.#calls = this.#calls.filter((call) => call.start > end - 2 * this.shortest);
    this.#calls.push({ start, end });
    const inside = this.#calls.filter((call) => call.start > end - this.shortest);
    return inside.length <= this.limit.maxInInterval;
  }
}

module.exports = { Admissions };
