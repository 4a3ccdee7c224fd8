// The options of rateLimit(): what is wrong is refused here, once. Here are those of its limiter.
'use strict';

const { optionTypeError, optionRangeError, typeError } = require('../errors');
const limiter = require('../options');
const { OWN_NAMES, readOwnOptions } = require('./own-options');

const DEFAULT_WINDOW_MS = 60_000;
const DEFAULT_LIMIT = 5;

/** Options of the limiter that have other names here, the strongest name first. */
const INTERVAL_NAMES = ['windowMs', 'interval'];
const MAX_NAMES = ['limit', 'max', 'maxInInterval'];

const RENAMED = [...INTERVAL_NAMES, ...MAX_NAMES];

/** The options that RateLimiter checks and uses; the middleware only hands them on. */
const HANDED_ON = limiter.LIMITER_NAMES.filter((name) => !RENAMED.includes(name));

const LIMITER_OPTIONS = [...RENAMED, ...HANDED_ON];

/** Known words that this version cannot honour: refusing them is kinder than ignoring them. */
const NOT_YET = [...limiter.NOT_YET, 'authenticate', 'onAuthError', 'rules', 'store'];

const KNOWN_OPTIONS = ['limiter', ...OWN_NAMES, ...LIMITER_OPTIONS];

/**
 * The settings a middleware works with: every option checked, defaults filled in. `limiterOptions` is
 * what RateLimiter gets, or undefined where an existing `limiter` was given.
 */
function readOptions(options = {}) {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw optionTypeError('options', 'an object', options);
  }
  const given = withoutUndefined(options);
  limiter.rejectUnknownOptions(given, KNOWN_OPTIONS, { notYet: NOT_YET });
  const own = readOwnOptions(given);
  return given.limiter === undefined
    ? { ...own, ...readLimiterOptions(given, own) }
    : { ...own, limiter: readExistingLimiter(given, own) };
}

/** `undefined` is the same as leaving the option out, so that optional configuration can be passed on. */
function withoutUndefined(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function readExistingLimiter(given, { skipFailedRequests, skipSuccessfulRequests }) {
  const { limiter } = given;
  const isObject =
    (typeof limiter === 'object' && limiter !== null) || typeof limiter === 'function';
  if (!isObject || typeof limiter.attempt !== 'function') {
    throw optionTypeError('limiter', 'a limiter (an object with the method attempt)', limiter);
  }
  if ((skipFailedRequests || skipSuccessfulRequests) && typeof limiter.refund !== 'function') {
    const skips = skipFailedRequests ? 'skipFailedRequests' : 'skipSuccessfulRequests';
    throw optionTypeError('limiter', `a limiter with the method refund, for '${skips}'`, limiter);
  }
  const other = LIMITER_OPTIONS.find((name) => name in given);
  if (other !== undefined) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `option '${other}': not allowed beside 'limiter', which has limits of its own`,
    );
  }
  return limiter;
}

/** The middleware's own names stand before the limiter's: `limit` wins over `max`. */
function readLimiterOptions(given, { skipFailedRequests }) {
  const limiterOptions = {};
  for (const name of HANDED_ON) {
    if (name in given) limiterOptions[name] = given[name];
  }
  if (skipFailedRequests) limiterOptions.countBlocked = readUncounted(given.countBlocked);
  const windowMs = firstOf(given, INTERVAL_NAMES, limiter.readInterval) ?? DEFAULT_WINDOW_MS;
  const limit = firstOf(given, MAX_NAMES, readMax) ?? DEFAULT_LIMIT;
  // `limits` replaces interval, maxInInterval and minDifference, also where both are given.
  if ('limits' in given) return { limiterOptions };

  limiterOptions.interval = windowMs;
  limiterOptions.maxInInterval = limit;
  return { windowMs, limit, limiterOptions };
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

/** Unlike a limiter's, it may be 0: that refuses all. */
function readMax(name, value) {
  const expected = 'an integer >= 0';
  if (typeof value === 'function') {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `option '${name}': expected ${expected}; a function is not available in this version`,
    );
  }
  if (typeof value !== 'number') throw optionTypeError(name, expected, value);
  if (!Number.isInteger(value) || value < 0) throw optionRangeError(name, expected, value);
  return value;
}

module.exports = { readOptions };
