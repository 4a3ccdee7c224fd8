// The limiter behind a middleware: a given one, its own, or one of the forms that only a middleware has.
'use strict';

const stores = require('#stores');
const { sharedByCopies } = require('../../base/copies');
const { costIn, isCost, wrongEntryOf } = require('../../options/costs');
const { tightestWindow, windowState } = require('../../base/decision');
const { optionError, rangeError, show, typeError } = require('../../base/errors');
const { ASSERT_FITS, ATTEMPT_OR_REFUSE, USAGE } = require('../../base/internal-methods');
const RateLimiter = require('../../limiter');
const { isPlainObject } = require('../../options/values');
const { ANY_COST, comesByRequest } = require('./limiter-options');
const { andThen, orElse } = require('./maybe-async');

/**
 * Limiters that adapters made, and the options of `usage` for them. Of a given one, only methods are called, which the
 * user may have replaced.
 */
const own = new WeakMap();

/** The middleware calls attempt, peek, settle, refund and clear of a limiter and knows nothing of its store. */
function limiterFor({ limiter, limit, limiterOptions }) {
  if (limiter !== undefined) return limiter;
  if (typeof limit === 'function' && limiterOptions.lease !== undefined) {
    throw optionError('lease', "conflicts with a 'limit' that each request brings");
  }
  if (!comesByRequest(limit) || limiterOptions.limits !== undefined) {
    const made = new RateLimiter(limiterOptions);
    own.set(made, undefined);
    return made;
  }
  return limiterByRequest({ ...limiterOptions, lease: undefined }); // 0 or Infinity: nothing to take
}

/** A log in shared memory has room for so many actions, and a log of refusals keeps so many. */
const BOUNDED_MAX = 1000;

/** A limiter with one window and without `maxInInterval`: each attempt brings its limit. */
function limiterByRequest(options) {
  const { shared, algorithm = 'sliding-window-log', countBlocked } = options;
  const isBounded =
    algorithm === 'sliding-window-log' && (shared !== undefined || countBlocked === true);
  const unbounded = { maxInInterval: isBounded ? BOUNDED_MAX : Number.MAX_SAFE_INTEGER };
  const isGcra = algorithm === 'gcra';
  const made = new RateLimiter({ ...options, ...(isGcra ? { maxInInterval: 1 } : unbounded) });
  // Under a limit of 0, GCRA shows what it counts under that of the last attempt.
  own.set(made, isGcra ? { limits: 0 } : undefined);
  return made;
}

/** A decision that no limiter made: nothing is left of these windows. */
function refusal(blockedBy, timeLeft, windows) {
  const limits = windows.map((window) => {
    return windowState(window, window.maxInInterval, window.maxInInterval, timeLeft);
  });
  return { allowed: false, timeLeft, actionsLeft: 0, resetIn: timeLeft, blockedBy, limits };
}

/**
 * A function (req, res) that returns the limits of a request, or a promise; undefined if they are the limiter's. The
 * limiter checks limits by name.
 */
function createLimitOf(limit, canHaveNames = true) {
  const expected = `an integer >= 0 or Infinity${canHaveNames ? ', or an object of them by name' : ''}`;
  const read = (value) => {
    if (value === Number.POSITIVE_INFINITY || (Number.isInteger(value) && value >= 0)) return value;
    if (canHaveNames && isPlainObject(value)) return value;
    throw resultError('limit', expected, value);
  };
  if (typeof limit === 'function') return (req, res) => andThen(limit(req, res), read);
  return comesByRequest(limit) ? () => limit : undefined;
}

/** A function (req, res) that returns the checked cost of a request, or a promise; undefined without the option. */
function createCostOf(cost) {
  if (typeof cost !== 'function') return cost === undefined ? undefined : () => cost;
  return (req, res) => andThen(cost(req, res), assertCost);
}

function assertCost(value) {
  if (isCost(value)) return value;
  if (!isPlainObject(value)) throw resultError('cost', ANY_COST, value);
  const [name, cost] = wrongEntryOf(value);
  throw resultError('cost', `an integer from 0 as the cost of ${show(name)}`, cost);
}

/** For what the function given as the option `name` returned. */
function resultError(name, expected, value) {
  const makeError = typeof value === 'number' ? rangeError : typeError;
  return makeError(
    `ERR_ROLLGATE_${name.toUpperCase()}`,
    `${name}: expected the function to give ${expected}, got ${show(value)}`,
  );
}

/** As attempt, by a given limiter, which throws for a cost that can never pass. */
function attemptOrRefuse(limiter, key, options) {
  const refuse = (error) => {
    const isWrong = typeof options.cost === 'object' && error?.name === 'TypeError';
    if (error?.code !== 'ERR_ROLLGATE_COST' || isWrong) throw error;
    const fail = () => {
      throw error; // the cost is wrong, whatever the store says
    };
    return andThen(
      orElse(() => windowsOf(limiter, key), fail),
      (windows) => endlessRefusal(windows, options.cost) ?? fail(),
    );
  };
  return orElse(() => limiter.attempt(key, options), refuse);
}

/** Undefined if the cost is wrong for another reason: an object that fits into every window. */
function endlessRefusal(limits, cost) {
  const fits = ({ name, maxInInterval }) => costIn(cost, name) <= maxInInterval;
  if (typeof cost === 'object' && limits.every(fits)) return undefined;
  const { remaining, resetIn } = tightestWindow(limits);
  const timeLeft = Number.POSITIVE_INFINITY;
  return { allowed: false, timeLeft, actionsLeft: remaining, resetIn, blockedBy: 'count', limits };
}

/** The decision of an attempt at a cost and under limits, each undefined without; or a promise of it. */
function attemptAt(limiter, id, cost, limits) {
  if (cost === undefined && limits === undefined) return limiter.attempt(id);
  const options = { cost, limits };
  if (!own.has(limiter)) return attemptOrRefuse(limiter, id, options);
  const fail = (error) => {
    limiter[ASSERT_FITS](options); // else the cost is wrong, whatever the store says
    throw error;
  };
  return orElse(() => limiter[ATTEMPT_OR_REFUSE](id, options), fail);
}

/** Errors of the request, or of the functions `limit` and `cost`: a client that sends invalid ids must not pass unlimited. */
const ERRORS_OF_REQUEST = ['ERR_ROLLGATE_ID', 'ERR_ROLLGATE_LIMIT', 'ERR_ROLLGATE_COST'];

/** Instead of a decision: the limiter failed, and passOnStoreError lets the request pass unreported. */
const PASSED = Symbol('passed');

/** The function `attempt`; with the option passOnStoreError, a request passes, uncounted, if that fails. */
function passOnStoreError(settings, logger, attempt) {
  if (!settings.passOnStoreError) return attempt;
  const pass = (error) => {
    if (ERRORS_OF_REQUEST.includes(error?.code)) throw error;
    const what =
      'no decision could be made: allowing the request without counting it (passOnStoreError).';
    logger.error('ROLLGATE_PASSED_ON_STORE_ERROR', what, error);
    return PASSED;
  };
  return (...args) => orElse(() => attempt(...args), pass);
}

const numbering = sharedByCopies('numbering', () => ({ numbers: new WeakMap(), count: 0 }));

/** Numbers limiters, clients, stores and option objects by identity. */
function numberOf(object) {
  const { numbers } = numbering;
  if (!numbers.has(object)) numbers.set(object, ++numbering.count);
  return numbers.get(object);
}

/**
 * Identifies where a middleware counts: equal for two of them exactly if they share counts. In shared memory
 * that is the region; in other stores the namespace and the URL, client or object. A limiter without a store
 * or namespace shares its counts with no other.
 *
 * @param {object | undefined} limiterOptions checked options
 */
function storeIdentity(limiterOptions, limiter) {
  const { namespace, redis, client, connection, shared, kv } = limiterOptions ?? {};
  if (shared !== undefined) return stores.shared.pathOf(shared);
  const place = redis ?? client ?? connection ?? kv;
  if (place === undefined || namespace === undefined) return limiter;
  // A client of ioredis has a method `client`.
  const isClient = stores.redis.clientKindOf(place) !== undefined;
  const store = isClient ? place : (place?.client ?? place);
  return `${typeof store === 'string' ? store : numberOf(store)} ${namespace}`;
}

/**
 * What is counted for a key, for getKey; undefined if nothing is. Of several limiters that count something for the
 * key, the one with the least left answers.
 */
async function countOf(limiters, key) {
  const windows = await Promise.all(limiters.map((limiter) => windowsOf(limiter, key)));
  const counting = windows.map(tightestWindow).filter(({ used }) => used > 0);
  if (counting.length === 0) return undefined;
  const { used, resetIn } = tightestWindow(counting);
  return { totalHits: used, resetTime: new Date(Date.now() + resetIn) };
}

/** The windows of a key without an attempt, or a promise of them. */
function windowsOf(limiter, key) {
  // A user's own limiter only has peek.
  const usage =
    limiter[USAGE] === undefined
      ? andThen(limiter.peek(key), withoutAttempt)
      : limiter[USAGE](key, own.get(limiter));
  return andThen(usage, ({ limits }) => limits);
}

/** Subtracts the hypothetical attempt of a peek: the current usage. */
function withoutAttempt({ allowed, timeLeft, limits }) {
  const withoutOne = (window) => {
    return { ...window, used: window.used - 1, remaining: window.remaining + 1 };
  };
  return { timeLeft, limits: allowed ? limits.map(withoutOne) : limits };
}

module.exports = {
  PASSED,
  attemptAt,
  countOf,
  createCostOf,
  createLimitOf,
  limiterByRequest,
  limiterFor,
  numberOf,
  passOnStoreError,
  refusal,
  storeIdentity,
};
