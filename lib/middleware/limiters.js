// The limiter behind a middleware: a given one, its own, or one of the forms that only a middleware has.
'use strict';

const { BOUND_TO_LIMIT } = require('../algorithms');
const { optionError, rangeError, show, typeError } = require('../errors');
const { ATTEMPT_WITHIN, PEEK_WITHIN, SETS_MAX, USAGE } = require('../internal-methods');
const RateLimiter = require('../limiter');
const { regionPath } = require('../shared/region');
const { andThen, orElse } = require('./maybe-async');
const { PASSED, tightestWindow } = require('./report');

/** The middleware calls attempt, peek, refund and clear of a limiter and knows nothing of its store. */
function limiterFor({ limiter, limiterOptions }) {
  if (limiter !== undefined) return limiter;
  const { maxInInterval } = limiterOptions;
  if (typeof maxInInterval === 'function') return createLimiterByRequest(limiterOptions);
  if (maxInInterval !== 0) return new RateLimiter(limiterOptions);
  // A limiter cannot have a maximum of 0. This one only checks the other options.
  new RateLimiter({ ...limiterOptions, maxInInterval: 1 });
  return createClosedLimiter(limiterOptions);
}

/**
 * The limiter for limit 0: it blocks every request and stores nothing. No better time to retry is known, so a
 * client waits for the whole window, or for the block if that is longer.
 */
function createClosedLimiter({ interval, blockFor = 0 }) {
  const blockForMs = Array.isArray(blockFor) ? blockFor[0] : blockFor;
  const timeLeft = Math.ceil(Math.max(interval, blockForMs));
  const refuse = () => refusal('count', timeLeft, [{ interval, maxInInterval: 0 }]);
  return { attempt: refuse, peek: refuse, refund: () => false, clear: async () => {} };
}

/** A decision that no limiter made: nothing is left of these windows. */
function refusal(blockedBy, timeLeft, windows) {
  const exhausted = ({ interval, maxInInterval }) => {
    return { interval, maxInInterval, used: maxInInterval, remaining: 0, resetIn: timeLeft };
  };
  const limits = windows.map(exhausted);
  return { allowed: false, timeLeft, actionsLeft: 0, resetIn: timeLeft, blockedBy, limits };
}

/**
 * The limiter for a function as limit: one count for each id, judged by the maximum of each attempt(id, max).
 * A maximum of 0 blocks and counts nothing.
 */
function createLimiterByRequest(limiterOptions) {
  const { algorithm } = limiterOptions;
  if (BOUND_TO_LIMIT.includes(algorithm)) {
    throw optionError(
      'limit',
      `a function is not possible with algorithm '${algorithm}', whose memory depends on the limit`,
    );
  }
  const closedLimiter = createClosedLimiter(limiterOptions);
  const limiter = new RateLimiter({ ...limiterOptions, maxInInterval: 1, [SETS_MAX]: true });
  return {
    attempt: (id, max) => (max === 0 ? closedLimiter.attempt() : limiter[ATTEMPT_WITHIN](id, max)),
    refund: (decision) => limiter.refund(decision),
    clear: (id) => limiter.clear(id),
    [USAGE]: (id) => {
      return andThen(limiter[PEEK_WITHIN](id, Number.MAX_SAFE_INTEGER), withoutAttempt);
    },
  };
}

/** From a peek under a maximum that nobody reaches: the usage without the attempt that was imagined. */
function withoutAttempt(decision) {
  const [window] = decision.limits;
  if (decision.allowed) window.used -= 1;
  return decision;
}

/** A function (req, res) that returns the checked limit of a request, or a promise; undefined for a number. */
function createLimitOf(limit) {
  if (typeof limit !== 'function') return undefined;
  return (req, res) => andThen(limit(req, res), readLimit);
}

function readLimit(value) {
  // Counts stop at MAX_SAFE_INTEGER, so a higher limit is equivalent to it.
  if (Number.isInteger(value) && value >= 0) return Math.min(value, Number.MAX_SAFE_INTEGER);
  const makeError = typeof value === 'number' ? rangeError : typeError;
  throw makeError(
    'ERR_ROLLGATE_LIMIT',
    `limit: expected the function to give an integer >= 0, got ${show(value)}`,
  );
}

/** Errors of the request, or of the function `limit`: a client that sends invalid ids must not pass unlimited. */
const ERRORS_OF_REQUEST = ['ERR_ROLLGATE_ID', 'ERR_ROLLGATE_LIMIT'];

/** passOnStoreError: lets a request pass, uncounted, if the limiter fails. */
function passOnStoreError(limiter, reporter) {
  function pass(error) {
    if (ERRORS_OF_REQUEST.includes(error?.code)) throw error;
    reporter.error(
      'ROLLGATE_PASSED_ON_STORE_ERROR',
      'no decision could be made, so the request passed without being counted (passOnStoreError).',
      error,
    );
    return PASSED;
  }

  return {
    attempt: (key, max) => orElse(() => limiter.attempt(key, max), pass),
  };
}

/** Numbers limiters, clients, stores and option objects by identity. */
const numberOf = (() => {
  const numbers = new WeakMap();
  let count = 0;
  return (object) => {
    if (!numbers.has(object)) numbers.set(object, ++count);
    return numbers.get(object);
  };
})();

/**
 * Identifies where a middleware counts: equal for two of them exactly if they share counts. In shared memory
 * that is the region; in other stores the namespace and the URL, client or object. A limiter without a store
 * or namespace shares its counts with no other.
 *
 * @param {object | undefined} limiterOptions checked options
 */
function storeIdentity(limiterOptions, limiter) {
  const { namespace, redis, client, shared, kv } = limiterOptions ?? {};
  if (shared !== undefined) return regionPath(shared);
  const connection = redis ?? client ?? kv;
  if (connection === undefined || namespace === undefined) return limiter;
  const store = connection?.client ?? connection;
  return `${typeof store === 'string' ? store : numberOf(store)} ${namespace}`;
}

/**
 * middleware.getKey(key): what is counted for a key, named as in express-rate-limit. Of several limiters that
 * count something for the key, the one with the least left answers.
 */
function createGetKey(limiters) {
  return async function getKey(key) {
    const usages = await Promise.all(limiters().map((limiter) => usageOf(limiter, key)));
    const counting = usages.filter(({ used }) => used > 0);
    if (counting.length === 0) return undefined;
    const { used, resetIn } = tightestWindow(counting);
    return { totalHits: used, resetTime: new Date(Date.now() + resetIn) };
  };
}

async function usageOf(limiter, key) {
  if (typeof limiter[USAGE] === 'function')
    return tightestWindow((await limiter[USAGE](key)).limits);
  // A user's own limiter only has peek, whose result includes an attempt that would be allowed.
  const decision = await limiter.peek(key);
  const { used, remaining, resetIn } = tightestWindow(decision.limits);
  return { used: decision.allowed ? used - 1 : used, remaining, resetIn };
}

module.exports = {
  createGetKey,
  createLimitOf,
  limiterFor,
  numberOf,
  passOnStoreError,
  refusal,
  storeIdentity,
};
