// What the application reads from req.rateLimit: the state of the window that is nearest to its limit.
'use strict';

const { keyToId } = require('../ids');

/** The fields are those of express-rate-limit; what the middleware itself must remember is private. */
class RequestInfo {
  #store;
  #earlier;
  #violated;

  /**
   * @param {unknown} store stands for where the request was counted
   * @param {unknown} earlier what the request had in the place of this one
   */
  constructor(decision, key, nowMs, store, earlier) {
    const window = tightestWindow(decision.limits);
    this.limit = window.maxInInterval;
    this.used = window.used;
    this.remaining = window.remaining;
    this.resetTime = new Date(nowMs + decision.resetIn);
    this.key = key;
    this.#store = store;
    this.#earlier = isInfo(earlier) ? earlier : undefined;
  }

  /** The older name of `used`. */
  get current() {
    return this.used;
  }

  static is(value) {
    return typeof value === 'object' && value !== null && #store in value;
  }

  /**
   * Whether the request was counted before in the same place under the same key. That time is forgotten
   * for this one: one request may be counted without end, such as the one a web socket began with.
   */
  static isCountedAgain(info) {
    const id = keyToId(info.key);
    let later = info;
    for (let earlier = info.#earlier; earlier !== undefined; earlier = earlier.#earlier) {
      if (earlier.#store === info.#store && keyToId(earlier.key) === id) {
        later.#earlier = earlier.#earlier;
        return true;
      }
      later = earlier;
    }
    return false;
  }

  /** The policies without room once the refused attempt is made: those that the client waits for. */
  static setViolated(info, { limits }, names) {
    info.#violated = names.filter((_name, i) => limits[i].remaining <= 0);
  }

  /** The names of the policies that refused the request; none where they have no names. */
  static violated(info) {
    return (isInfo(info) && info.#violated) || [];
  }
}

const isInfo = RequestInfo.is;

/** The window with the least left; of several, the one that takes longest to give more. */
function tightestWindow(windows) {
  let tightest = windows[0];
  for (let i = 1; i < windows.length; i++) {
    const window = windows[i];
    if (
      window.remaining < tightest.remaining ||
      (window.remaining === tightest.remaining && window.resetIn > tightest.resetIn)
    ) {
      tightest = window;
    }
  }
  return tightest;
}

module.exports = { RequestInfo, tightestWindow };
