// The limiter behind a middleware: a given one, its own, or one of the forms that only a middleware has.
'use strict';

const stores = require('#stores');
const { BOUND_TO_LIMIT } = require('../../options/algorithms');
const { sharedByCopies } = require('../../base/copies');
const { costIn, isCost, wrongEntryOf } = require('../../options/costs');
const { tightestWindow } = require('../../base/decision');
const { optionError, rangeError, show, typeError } = require('../../base/errors');
const {
  ATTEMPT_WITHIN,
  PEEK_WITHIN,
  READ_COST,
  SETS_MAX,
  USAGE,
} = require('../../base/internal-methods');
const RateLimiter = require('../../limiter');
const { isPlainObject } = require('../../options/values');
const { ANY_COST, isUncountable } = require('./limiter-options');
const { andThen, orElse } = require('./maybe-async');

/** Limiters that the middleware made. Of a given one, only methods are called, which the user may have replaced. */
const own = new WeakSet();

/** The middleware calls attempt, peek, settle, refund and clear of a limiter and knows nothing of its store. */
function limiterFor({ limiter, limiterOptions }) {
  if (limiter !== undefined) return limiter;
  const made = makeLimiter(limiterOptions);
  own.add(made);
  return made;
}

function makeLimiter(limiterOptions) {
  const { maxInInterval } = limiterOptions;
  if (typeof maxInInterval === 'function') return createLimiterByRequest(limiterOptions);
  if (!isUncountable(maxInInterval)) return new RateLimiter(limiterOptions);
  // A limiter cannot have such a maximum. This one only checks the other options.
  new RateLimiter({ ...limiterOptions, maxInInterval: 1 });
  return createUncountingLimiter(limiterOptions, maxInInterval);
}

/** The limiter for a maximum of 0 or Infinity: it stores nothing. */
function createUncountingLimiter(limiterOptions, max) {
  const decide =
    max === 0 ? () => closedDecision(limiterOptions) : () => openDecision(limiterOptions);
  return {
    attempt: decide,
    [USAGE]: decide,
    refund: () => false,
    clear: async () => {},
  };
}

/** No better time to retry is known, so a client waits for the whole window, or for the block if that is longer. */
function closedDecision({ interval, blockFor = 0 }) {
  const blockForMs = Array.isArray(blockFor) ? blockFor[0] : blockFor;
  const timeLeft = Math.ceil(Math.max(interval, blockForMs));
  return refusal('count', timeLeft, [{ interval, maxInInterval: 0 }]);
}

function openDecision({ interval }) {
  const all = Number.POSITIVE_INFINITY;
  const limits = [{ interval, maxInInterval: all, used: 0, remaining: all, resetIn: 0 }];
  return { allowed: true, timeLeft: 0, actionsLeft: all, resetIn: 0, blockedBy: null, limits };
}

/** Whether a decision is that of a limit of Infinity. */
function isOpen({ actionsLeft }) {
  return actionsLeft === Number.POSITIVE_INFINITY;
}

/** A decision that no limiter made: nothing is left of these windows. */
function refusal(blockedBy, timeLeft, windows) {
  const limits = windows.map((window) => {
    return { ...window, used: window.maxInInterval, remaining: 0, resetIn: timeLeft };
  });
  return { allowed: false, timeLeft, actionsLeft: 0, resetIn: timeLeft, blockedBy, limits };
}

/**
 * The limiter for a function as limit: one count for each id, judged by the maximum of each
 * attempt(id, options, max). Under a maximum of 0 or Infinity it counts nothing.
 */
function createLimiterByRequest(limiterOptions) {
  const { algorithm } = limiterOptions;
  if (BOUND_TO_LIMIT.includes(algorithm)) {
    throw optionError(
      'limit',
      `a function is not possible with algorithm '${algorithm}', whose memory depends on the limit`,
    );
  }
  const limiter = new RateLimiter({ ...limiterOptions, maxInInterval: 1, [SETS_MAX]: true });
  function attemptAtMost(id, max, options) {
    if (max === 0) return closedDecision(limiterOptions);
    if (max === Number.POSITIVE_INFINITY) return openDecision(limiterOptions);
    return limiter[ATTEMPT_WITHIN](id, max, options);
  }
  return {
    attempt: (id, options, max) => attemptAtMost(id, max, options),
    [ATTEMPT_WITHIN]: attemptAtMost,
    settle: (decision, actual) => limiter.settle(decision, actual),
    refund: (decision) => !isOpen(decision) && limiter.refund(decision), // open ones of shadow rules
    [READ_COST]: (cost) => limiter[READ_COST](cost),
    clear: (id) => limiter.clear(id),
    [USAGE]: (id) => {
      return andThen(limiter[PEEK_WITHIN](id, Number.MAX_SAFE_INTEGER), withoutAttempt);
    },
  };
}

/** A function (req, res) that returns the checked limit of a request, or a promise; undefined for a number. */
function createLimitOf(limit) {
  if (typeof limit !== 'function') return undefined;
  return (req, res) => andThen(limit(req, res), readLimit);
}

function readLimit(value) {
  if (value === Number.POSITIVE_INFINITY) return value;
  // Counts stop at MAX_SAFE_INTEGER, so a higher integer is equivalent to it.
  if (Number.isInteger(value) && value >= 0) return Math.min(value, Number.MAX_SAFE_INTEGER);
  throw resultError('limit', 'an integer >= 0 or Infinity', value);
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

/** As ATTEMPT_WITHIN (base/internal-methods.js). */
function attemptWithin(limiter, key, options, max) {
  const fail = (error) => {
    assertCanPass(limiter, options.cost, max); // else the cost is wrong, whatever the store says
    throw error;
  };
  return orElse(() => limiter[ATTEMPT_WITHIN](key, max, options), fail);
}

function assertCanPass(limiter, cost, max) {
  if (max === undefined) limiter[READ_COST](cost);
  else if (cost > max) throw resultError('cost', `an integer from 1 to ${max}, the limit`, cost);
}

/** As ATTEMPT_WITHIN, by a given limiter, which throws for a cost that can never pass. */
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

/** The decision of an attempt at a cost and under a maximum, each undefined without one; or a promise of it. */
function attemptAt(limiter, id, cost, max) {
  if (cost !== undefined) {
    const isOwn = own.has(limiter) && limiter[ATTEMPT_WITHIN] !== undefined;
    return isOwn
      ? attemptWithin(limiter, id, { cost }, max)
      : attemptOrRefuse(limiter, id, { cost });
  }
  return max === undefined ? limiter.attempt(id) : limiter.attempt(id, undefined, max);
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
    limiter[USAGE] === undefined ? andThen(limiter.peek(key), withoutAttempt) : limiter[USAGE](key);
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
  limiterFor,
  numberOf,
  openDecision,
  passOnStoreError,
  refusal,
  storeIdentity,
};
