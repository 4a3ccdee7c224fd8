// The options of rateLimit(), or of one of its rules, that say what its limiter allows.
'use strict';

const { optionTypeError, optionRangeError, typeError } = require('../errors');
const limiter = require('../options');

const DEFAULT_WINDOW_MS = 60_000;
const DEFAULT_LIMIT = 5;

/** Options of the limiter that have other names here, the strongest name first. */
const INTERVAL_NAMES = ['windowMs', 'interval'];
const MAX_NAMES = ['limit', 'max', 'maxInInterval'];

const RENAMED = [...INTERVAL_NAMES, ...MAX_NAMES];

/** The options that RateLimiter checks and uses; the middleware only hands them on. */
const HANDED_ON = limiter.LIMITER_NAMES.filter((name) => !RENAMED.includes(name));

const LIMITER_OPTIONS = [...RENAMED, ...HANDED_ON];

/** What makes a rule one that limits. */
const LIMIT_NAMES = [...RENAMED, 'minDifference', 'limits'];

/** What each rule says for itself; the other options of a limiter serve all rules. */
const RULE_OPTIONS = [...LIMIT_NAMES, 'countBlocked', 'algorithm', 'blockFor'];

const STORE_OPTIONS = LIMITER_OPTIONS.filter((name) => !RULE_OPTIONS.includes(name));

/** The middleware's own names stand before the limiter's: `limit` wins over `max`. */
function readLimiterOptions(given, { skipFailedRequests }) {
  const limiterOptions = pick(given, HANDED_ON);
  if (skipFailedRequests) limiterOptions.countBlocked = readUncounted(given.countBlocked);
  const windowMs = firstOf(given, INTERVAL_NAMES, limiter.readInterval) ?? DEFAULT_WINDOW_MS;
  const limit = firstOf(given, MAX_NAMES, readMax) ?? DEFAULT_LIMIT;
  // `limits` replaces interval, maxInInterval and minDifference, also where both are given.
  if ('limits' in given) return { limiterOptions };

  limiterOptions.interval = windowMs;
  limiterOptions.maxInInterval = limit;
  return { windowMs, limit, limiterOptions };
}

/** Those of the options that are given under one of these names. */
function pick(given, names) {
  const picked = {};
  for (const name of names) {
    if (name in given) picked[name] = given[name];
  }
  return picked;
}

/** A refused request has failed: it is not counted in the first place, which unlike a refund is exact. */
function readUncounted(countBlocked) {
  if (countBlocked !== true) return countBlocked ?? false;
  throw typeError(
    'ERR_ROLLGATE_OPTION',
    "option 'countBlocked': not true beside 'skipFailedRequests', by which refused requests do not count",
  );
}

/** The value under the first of several names of one thing; the values under the others are checked, too. */
function firstOf(given, names, read) {
  return names.filter((name) => name in given).map((name) => read(name, given[name]))[0];
}

/** Unlike a limiter's, it may be 0, which refuses all, or a function, which request-limit.js asks. */
function readMax(name, value) {
  if (typeof value === 'function') return value;
  const expected = 'an integer >= 0, or a function that gives one';
  if (typeof value !== 'number') throw optionTypeError(name, expected, value);
  if (!Number.isInteger(value) || value < 0) throw optionRangeError(name, expected, value);
  return value;
}

module.exports = {
  INTERVAL_NAMES,
  LIMITER_OPTIONS,
  LIMIT_NAMES,
  MAX_NAMES,
  RULE_OPTIONS,
  STORE_OPTIONS,
  pick,
  readLimiterOptions,
};
