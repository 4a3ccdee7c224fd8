// What an application finds as req.rateLimit: how much of its limit a request has used, and `settle`.
'use strict';

const { costIn } = require('../../options/costs');
const { tightestWindow } = require('../../base/decision');
const { failure } = require('../../base/errors');
const { keyToId } = require('../../base/ids');

/** Those that have no room for the cost; without any, all. */
function relevantWindows({ allowed, limits }, cost) {
  if (allowed || limits.length === 1) return limits;
  const full = limits.filter(({ name, remaining }) => remaining < costIn(cost, name));
  return full.length === 0 ? limits : full;
}

/**
 * The application's req.rateLimit: the state of the window that refuses, or is nearest to its limit, and `settle`. The
 * public fields are those of express-rate-limit; what only the middleware needs is private.
 */
class RequestInfo {
  #decision;
  #cost;
  #limiter;
  #store; // undefined if nothing was counted
  #earlier;

  /**
   * @param {number | object} [cost] of the request, in the user's form
   * @param {{ limiter: object, store: unknown }} zone where the request was counted; `store` identifies it
   * @param {unknown} earlier the value of the property before
   */
  constructor(decision, key, cost, nowMs, { limiter, store }, earlier) {
    const window = tightestWindow(relevantWindows(decision, cost ?? 1));
    this.limit = window.maxInInterval;
    this.used = window.used;
    this.remaining = window.remaining;
    // Under a limit of Infinity nothing was counted.
    const isCounted = window.maxInInterval !== Number.POSITIVE_INFINITY;
    this.resetTime = isCounted ? new Date(nowMs + decision.resetIn) : undefined;
    this.key = key;
    this.#decision = decision;
    this.#cost = cost ?? 1;
    this.#limiter = limiter;
    this.#store = isCounted ? store : undefined;
    this.#earlier = RequestInfo.is(earlier) ? earlier : undefined;
  }

  /** The older name of `used`. */
  get current() {
    return this.used;
  }

  /** Replaces the cost of the request by what it came to: `settle` of the limiter that counted it. */
  settle(actual) {
    if (!this.#decision.allowed || !RequestInfo.isCounted(this)) return false;
    const limiter = this.#limiter;
    if (typeof limiter.settle === 'function') return limiter.settle(this.#decision, actual);
    const what = "settle: the middleware's limiter has no method settle";
    throw failure('ERR_ROLLGATE_UNSUPPORTED', what);
  }

  static is(value) {
    return typeof value === 'object' && value !== null && #store in value;
  }

  /**
   * Whether the request, which was counted, was counted before in the same store under the same key. Forgets that
   * earlier count, because some requests are counted without end, such as the one that opened a web socket.
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

  /** Whether the request was counted: not under a limit of Infinity. */
  static isCounted(info) {
    return info.#store !== undefined;
  }

  /** The decision of the limiter. */
  static decisionOf(info) {
    return info.#decision;
  }

  /** Of these names of policies, those without room for the blocked attempt. */
  static violatedOf(info, { limits }, names) {
    return names.filter((_, i) => limits[i].remaining < costIn(info.#cost, limits[i].name));
  }
}

module.exports = { RequestInfo };
