// The options of rateLimit(): names, defaults and checks. What is wrong is refused here, once.
'use strict';

const { optionTypeError, optionRangeError, typeError } = require('../errors');
const limiter = require('../options');
const { HEADER_DRAFTS } = require('./headers');
const { clientKey } = require('./client-key');
const { respond } = require('./respond');

const DEFAULTS = {
  interval: 60_000,
  maxInInterval: 5,
  message: 'Too many requests, please try again later.',
  statusCode: 429,
  legacyHeaders: true,
  standardHeaders: false,
  requestPropertyName: 'rateLimit',
  keyGenerator: clientKey,
  handler: respond,
};

/** Options of the limiter that have other names here, the strongest name first. */
const INTERVAL_NAMES = ['windowMs', 'interval'];
const MAX_NAMES = ['limit', 'max', 'maxInInterval'];

const RENAMED = [...INTERVAL_NAMES, ...MAX_NAMES];

/** The options that RateLimiter checks and uses; the middleware only hands them on. */
const HANDED_ON = limiter.LIMITER_NAMES.filter((name) => !RENAMED.includes(name));

const LIMITER_OPTIONS = [...RENAMED, ...HANDED_ON];

const OWN_OPTIONS = [
  'limiter',
  'keyGenerator',
  'skip',
  'handler',
  'message',
  'statusCode',
  'legacyHeaders',
  'standardHeaders',
  'requestPropertyName',
];

/** Known words that this version cannot honour: refusing them is kinder than ignoring them. */
const NOT_YET = [
  ...limiter.NOT_YET,
  'authenticate',
  'identifier',
  'ipv6Subnet',
  'logger',
  'onAuthError',
  'passOnStoreError',
  'problemDetails',
  'requestWasSuccessful',
  'rules',
  'skipFailedRequests',
  'skipSuccessfulRequests',
  'store',
  'validate',
];

const KNOWN_OPTIONS = [...OWN_OPTIONS, ...LIMITER_OPTIONS];

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
  const own = readOwnOptions({ ...DEFAULTS, ...given });
  return given.limiter === undefined
    ? { ...own, ...readLimiterOptions(given) }
    : { ...own, limiter: readExistingLimiter(given) };
}

/** `undefined` is the same as leaving the option out, so that optional configuration can be passed on. */
function withoutUndefined(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function readOwnOptions(options) {
  for (const name of ['keyGenerator', 'skip', 'handler']) {
    const value = options[name];
    if (value !== undefined && typeof value !== 'function') {
      throw optionTypeError(name, 'a function', value);
    }
  }
  return {
    keyGenerator: options.keyGenerator,
    skip: options.skip,
    handler: options.handler,
    message: readMessage(options.message),
    statusCode: readStatusCode(options.statusCode),
    legacyHeaders: readLegacyHeaders(options.legacyHeaders),
    standardHeaders: readStandardHeaders(options.standardHeaders),
    requestPropertyName: readRequestPropertyName(options.requestPropertyName),
  };
}

function readMessage(value) {
  const isBody = typeof value === 'string' || (typeof value === 'object' && value !== null);
  if (!isBody && typeof value !== 'function') {
    throw optionTypeError('message', 'a string, an object or a function', value);
  }
  return value;
}

function readStatusCode(value) {
  if (typeof value !== 'number') throw optionTypeError('statusCode', 'a number', value);
  if (!Number.isInteger(value) || value < 200 || value > 999) {
    throw optionRangeError('statusCode', 'an integer from 200 to 999', value);
  }
  return value;
}

function readLegacyHeaders(value) {
  if (typeof value !== 'boolean') throw optionTypeError('legacyHeaders', 'true or false', value);
  return value;
}

function readStandardHeaders(value) {
  if (value === true) return 'draft-6';
  if (value === false || HEADER_DRAFTS.includes(value)) return value;
  const drafts = HEADER_DRAFTS.map((draft) => `'${draft}'`).join(', ');
  throw optionTypeError('standardHeaders', `true, false or one of ${drafts}`, value);
}

function readRequestPropertyName(value) {
  if (typeof value !== 'string') throw optionTypeError('requestPropertyName', 'a string', value);
  if (value === '') throw optionRangeError('requestPropertyName', 'a non-empty string', value);
  return value;
}

function readExistingLimiter(given) {
  const { limiter } = given;
  const isObject =
    (typeof limiter === 'object' && limiter !== null) || typeof limiter === 'function';
  if (!isObject || typeof limiter.attempt !== 'function') {
    throw optionTypeError('limiter', 'a limiter (an object with the method attempt)', limiter);
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
function readLimiterOptions(given) {
  const limiterOptions = {};
  for (const name of HANDED_ON) {
    if (name in given) limiterOptions[name] = given[name];
  }
  const windowMs = firstOf(given, INTERVAL_NAMES, limiter.readInterval) ?? DEFAULTS.interval;
  const limit = firstOf(given, MAX_NAMES, readMax) ?? DEFAULTS.maxInInterval;
  // `limits` replaces interval, maxInInterval and minDifference, also where both are given.
  if ('limits' in given) return { limiterOptions };

  limiterOptions.interval = windowMs;
  limiterOptions.maxInInterval = limit;
  return { windowMs, limit, limiterOptions };
}

/** The value under the first of several names of one thing; the values under the others are checked, too. */
function firstOf(given, names, read) {
  return names.filter((name) => name in given).map((name) => read(name, given[name]))[0];
}

/** Unlike a limiter's, it may be 0: that refuses all. */
function readMax(name, value) {
  const expected = 'an integer >= 0';
  if (typeof value !== 'number') throw optionTypeError(name, expected, value);
  if (!Number.isInteger(value) || value < 0) throw optionRangeError(name, expected, value);
  return value;
}

module.exports = { readOptions };
