// The limits that calls have brought: the same limits are one object, because most applications have few plans.
'use strict';

const MOST_PLANS = 1000;

/** Of one limiter, under its own limits. */
class Plans {
  /** Maps of maps by the maximum of each window; the last ones have Terms. */
  #root = new Map();
  #size = 0;
  #windows;
  /** For the maxima to find. */
  maxima;

  constructor(windows) {
    this.#windows = windows;
    this.maxima = new Float64Array(windows.length);
  }

  /** The Terms of a limit of the only window, undefined if it is new. */
  known(limit) {
    return this.#windows.length === 1 ? this.#root.get(limit) : undefined;
  }

  /**
   * The Terms of these maxima, which may be Infinity.
   *
   * @returns {Terms} see terms.js
   */
  find(maxima) {
    let found = this.#root;
    for (let i = 0; i < maxima.length; i++) {
      found = found.get(maxima[i]);
      if (found === undefined) return this.#add(maxima.slice());
    }
    return found;
  }

  #add(maxima) {
    if (this.#size === MOST_PLANS) {
      this.#root.clear();
      this.#size = 0;
    }
    this.#size += 1;
    const isUncounted = (max) => max === Number.POSITIVE_INFINITY;
    // A window that is not counted is judged at cost 0 under its own maximum, so that GCRA leaks as before.
    const limits = maxima.some(isUncounted)
      ? maxima.map((max, i) => (isUncounted(max) ? this.#windows[i].maxInInterval : max))
      : maxima;
    const terms = { limits, maxima, calendars: undefined };
    let map = this.#root;
    for (const max of maxima.subarray(0, -1)) {
      if (!map.has(max)) map.set(max, new Map());
      map = map.get(max);
    }
    map.set(maxima[maxima.length - 1], terms);
    return terms;
  }
}

module.exports = { Plans };
