// A store of express-rate-limit as the limiter of a middleware: the store counts, the middleware compares with the limit.
'use strict';

const { failure, optionError, optionTypeError, show } = require('../../base/errors');
const { idToString } = require('../../base/ids');
const { COUNTS_REFUSALS } = require('../../base/internal-methods');
const { hasMethods } = require('../../options/values');
const { andThen, orElse } = require('./maybe-async');

const OPTIONAL_METHODS = ['init', 'get', 'resetAll', 'shutdown'];

/** The option `store`. */
function readStore(name, value) {
  if (!hasMethods(value, 'increment', 'decrement', 'resetKey')) {
    const expected =
      'a store of express-rate-limit (an object with the methods increment, decrement and resetKey)';
    const hint = 'Stores of express-rate-limit 5 and older are not supported.';
    throw optionError(name, `expected ${expected}, got ${show(value)}. ${hint}`);
  }
  for (const method of OPTIONAL_METHODS) {
    if (value[method] === undefined || hasMethods(value, method)) continue;
    throw optionTypeError(`${name}.${method}`, 'a function', value[method]);
  }
  return value;
}

/** Stores that a middleware counts in. */
const used = new WeakSet();

/**
 * Prepares the store for a middleware. An error that it throws is one of the set-up; a promise that it rejects is
 * reported, because the store may still work.
 *
 * @param {object} settings see options.js
 */
function initStore(settings, logger) {
  const { store, validate } = settings;
  if (used.has(store) && validate.unsharedStore) {
    logger.warn(
      'ROLLGATE_STORE_REUSED',
      'one store serves two middlewares: each sets the window of both, and requests may be counted twice.',
    );
  }
  const report = (error) =>
    logger.error('ROLLGATE_STORE_INIT', 'the promise of store.init was rejected.', error);
  const started = store.init?.(settings);
  used.add(store);
  orElse(() => andThen(started, () => {}), report);
}

/** What the store counts for a request, judged by the limit. */
class CountDecision {
  #key;
  #resetMs;

  /** `max` is the limit of this request. A store without reset times gets that of a window from now. */
  constructor(key, { totalHits, resetTime }, { interval, max }) {
    const nowMs = Date.now();
    this.#key = key;
    this.#resetMs = resetTime?.getTime();
    this.allowed = totalHits <= max;
    this.resetIn = resetTime === undefined ? interval : Math.max(0, resetTime.getTime() - nowMs);
    this.timeLeft = this.allowed ? 0 : Math.max(1, this.resetIn);
    const remaining = Math.max(0, max - totalHits);
    this.actionsLeft = remaining;
    this.blockedBy = this.allowed ? null : 'count';
    const { resetIn } = this;
    this.limits = [{ interval, maxInInterval: max, used: totalHits, remaining, resetIn }];
  }

  /** The key, unless its window has ended: what was counted in it is forgotten. */
  static keyToDecrement(decision) {
    const isOver = decision.#resetMs !== undefined && decision.#resetMs < Date.now();
    return isOver ? undefined : { key: decision.#key };
  }
}

/** Throws for what is no count: a request must not pass because the store answers wrongly. */
function readHits(hits) {
  const { totalHits } = hits ?? {};
  const resetTime = hits?.resetTime ?? undefined; // some stores give null
  const isCount = Number.isInteger(totalHits) && totalHits >= 0;
  const isTime = resetTime === undefined || !Number.isNaN(resetTime?.getTime?.() ?? Number.NaN);
  if (isCount && isTime) return { totalHits, resetTime };
  const expected = 'an object with totalHits, an integer >= 0, and resetTime, a Date or undefined';
  throw failure(
    'ERR_ROLLGATE_STORE',
    `store.increment: expected ${expected}, got ${show(isCount ? resetTime : totalHits)}`,
  );
}

/** Under a limit of Infinity nothing is counted. */
function openDecision({ interval }) {
  const all = Number.POSITIVE_INFINITY;
  const limits = [{ interval, maxInInterval: all, used: 0, remaining: all, resetIn: 0 }];
  return { allowed: true, timeLeft: 0, actionsLeft: all, resetIn: 0, blockedBy: null, limits };
}

/**
 * Has the methods of a limiter that a middleware calls. The maximum may come with each attempt. Keys become strings,
 * as for limiters: clients can send arrays, by repeating a query parameter, and a Map would count each array apart.
 */
function createCountingLimiter({ store, windowMs: interval, limit }) {
  return {
    /** The store has counted the request before it is known whether it is refused. */
    [COUNTS_REFUSALS]: true,

    attempt(key, { limits: max = limit } = {}) {
      const id = idToString(key);
      if (max === Number.POSITIVE_INFINITY) return openDecision({ interval });
      return andThen(
        store.increment(id),
        (hits) => new CountDecision(id, readHits(hits), { interval, max }),
      );
    },

    refund(decision) {
      const found = CountDecision.keyToDecrement(decision);
      return found === undefined ? false : andThen(store.decrement(found.key), () => true);
    },

    clear: (key) => store.resetKey(idToString(key)),
  };
}

/** What a store has counted for a key, for middleware.getKey. */
async function getFrom(store, key) {
  if (typeof store.get === 'function') return store.get(idToString(key));
  throw failure('ERR_ROLLGATE_UNSUPPORTED', 'getKey: the store has no method get');
}

module.exports = { createCountingLimiter, getFrom, initStore, readStore };
