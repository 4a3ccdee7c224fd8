// The options of rateLimit(), or of one of its rules, for its limiter.
'use strict';

const { isCost } = require('../../options/costs');
const { optionError, optionRangeError, optionTypeError } = require('../../base/errors');
const { readInterval, readNumber } = require('../../options/values');
const { LIMITER_NAMES } = require('../../limiter/options');

const DEFAULT_WINDOW_MS = 60_000;
const DEFAULT_LIMIT = 5;

/** A window to check other options with, before the right one is known: a lease must fit into it. */
const ANY_WINDOW_MS = 60_000;

/** Names of one option: the first one given wins, the last one is the limiter's. */
const INTERVAL_NAMES = ['windowMs', 'interval'];
const MAX_NAMES = ['limit', 'max', 'maxInInterval'];

const RENAMED = [...INTERVAL_NAMES, ...MAX_NAMES];

/** The options that RateLimiter checks and uses; the middleware passes them on. */
const PASSED_ON = LIMITER_NAMES.filter((name) => !RENAMED.includes(name));

const LIMITER_OPTIONS = [...RENAMED, ...PASSED_ON];

/** A rule with one of these limits requests; without, it lets them pass. */
const LIMIT_NAMES = [...RENAMED, 'minDifference', 'limits'];

/** The options that each rule has for itself; the other options of a limiter hold for all rules. */
const RULE_OPTIONS = [...LIMIT_NAMES, 'countBlocked', 'algorithm', 'blockFor'];

const STORE_OPTIONS = LIMITER_OPTIONS.filter((name) => !RULE_OPTIONS.includes(name));

function readRequestLimits(given, { skipFailedRequests }) {
  const limiterOptions = pick(given, PASSED_ON);
  limiterOptions.countBlocked = countBlockedOf(given, skipFailedRequests);
  const windowMs = firstOf(given, INTERVAL_NAMES, readInterval) ?? DEFAULT_WINDOW_MS;
  const limit = firstOf(given, MAX_NAMES, readMax) ?? DEFAULT_LIMIT;
  // `limits` replaces interval, maxInInterval and minDifference even if they are given; a function may change them.
  if ('limits' in given)
    return { limit: typeof limit === 'function' ? limit : undefined, limiterOptions };

  limiterOptions.interval = windowMs;
  limiterOptions.maxInInterval = comesByRequest(limit) ? 1 : limit;
  return { windowMs, limit, limiterOptions };
}

/** The given options that have one of these names. */
function pick(given, names) {
  const picked = {};
  for (const name of names) {
    if (name in given) picked[name] = given[name];
  }
  return picked;
}

/**
 * The option of a limiter of requests: by default refusals do not count, so that a client that asks too often gets its
 * limit in each window. With `skipFailedRequests` they cannot: a blocked request is a failed one, and not counting it
 * is exact, unlike a refund.
 */
function countBlockedOf({ countBlocked = false }, skipFailedRequests) {
  if (!skipFailedRequests || countBlocked !== true) return countBlocked;
  const why = "must not be true with 'skipFailedRequests', which does not count refused requests";
  throw optionError('countBlocked', why);
}

/** The value of the first given name; the values of the others are checked as well. */
function firstOf(given, names, read) {
  return names.filter((name) => name in given).map((name) => read(name, given[name]))[0];
}

/** Unlike a limiter's, it may be 0, which blocks every request, Infinity, or a function. */
function readMax(name, value) {
  if (typeof value === 'function') return value;
  const isInRange = (n) => n === Number.POSITIVE_INFINITY || (Number.isInteger(n) && n >= 0);
  const expected = 'an integer >= 0, Infinity, or a function that gives one of them';
  return readNumber(name, value, expected, isInRange);
}

/** Whether each request brings the limit: a limiter cannot have it as its own. */
function comesByRequest(limit) {
  return typeof limit === 'function' || limit === 0 || limit === Number.POSITIVE_INFINITY;
}

/** How a cost is described if the limits are not known yet. */
const ANY_COST =
  'an integer from 1 to 2^53 - 1, or an object of integers from 0 by name of a limit';

/** The cost of each request, or a function that gives it. */
function readRequestCost(name, value) {
  if (value === undefined || typeof value === 'function' || isCost(value)) return value;
  const makeError = typeof value === 'number' ? optionRangeError : optionTypeError;
  throw makeError(name, `${ANY_COST}, or a function that gives one`, value);
}

/**
 * Throws if the option `cost` is an object that is no cost of the limiter; one that is too high is refused later.
 * `read` checks a cost of that limiter.
 */
function assertIsCost(cost, read) {
  if (typeof cost !== 'object') return;
  try {
    read(cost);
  } catch (error) {
    // Not instanceof: a limiter may be of another realm.
    if (error.name === 'TypeError') throw optionError('cost', error.message.replace(/^cost: /, ''));
  }
}

module.exports = {
  ANY_COST,
  ANY_WINDOW_MS,
  INTERVAL_NAMES,
  LIMITER_OPTIONS,
  LIMIT_NAMES,
  MAX_NAMES,
  PASSED_ON,
  RULE_OPTIONS,
  STORE_OPTIONS,
  assertIsCost,
  comesByRequest,
  countBlockedOf,
  pick,
  readRequestCost,
  readRequestLimits,
};
