// The options of concurrencyLimit(): every option checked once, defaults filled in.
'use strict';

const { MOST, LIMITER_NAMES } = require('../../concurrency/options');
const { optionError, optionTypeError, rangeError, show, typeError } = require('../../base/errors');
const {
  hasMethods,
  readCount,
  readNumber,
  readObject,
  rejectUnknownOptions,
  withoutUndefined,
} = require('../../options/values');
const { separatorOf } = require('../middleware/headers');
const { readOwnOptions } = require('../middleware/options');

/** The options that are those of rateLimit. */
const SHARED_NAMES = [
  ...['handler', 'identifier', 'ipv6Subnet', 'keyGenerator', 'logger', 'message', 'problemDetails'],
  ...['requestPropertyName', 'skip', 'standardHeaders', 'statusCode', 'trustProxy', 'validate'],
];
const OWN_NAMES = ['limiter', 'maxQueue', 'maxWait'];
const KNOWN = [...new Set([...LIMITER_NAMES, ...OWN_NAMES, ...SHARED_NAMES])];

const DEFAULT_MAX_QUEUE = 100;
const EXPECTED_MAX = `an integer from 0 to ${MOST}, or Infinity`;
const isMax = (max) => (Number.isInteger(max) && max >= 0 && max <= MOST) || max === Infinity;

/** With an existing limiter, undefined is the limiter's maximum. */
function readMax(max, limiter) {
  if (typeof max === 'function' || (max === undefined && limiter !== undefined)) return max;
  if (max === undefined) throw optionTypeError('max', `${EXPECTED_MAX}, or a function`, max);
  return readNumber('max', max, `${EXPECTED_MAX}, or a function`, isMax);
}

/** What the function `max` gave. */
function readMaxOf(max) {
  if (isMax(max)) return max;
  const makeError = typeof max === 'number' ? rangeError : typeError;
  const message = `max: expected the function to give ${EXPECTED_MAX}, got ${show(max)}`;
  throw makeError('ERR_ROLLGATE_LIMIT', message);
}

/** The older drafts have no policies, and names are those of policies. */
function assertHasPolicies(standardHeaders) {
  if (standardHeaders === false || separatorOf(standardHeaders) !== undefined) return;
  throw optionTypeError('standardHeaders', "false, 'draft-8' or 'draft-10'", standardHeaders);
}

function readMaxWait(maxWait = 0) {
  const isInRange = (ms) => ms >= 0 && ms < 1e12;
  return readNumber('maxWait', maxWait, 'a number of ms from 0 to below 1e12', isInRange);
}

/** `limiterOptions` are undefined with an existing `limiter`. */
function readOptions(options = {}) {
  const given = withoutUndefined(readObject('options', options));
  rejectUnknownOptions(given, KNOWN);
  const own = readOwnOptions(given, SHARED_NAMES, { requestPropertyName: 'concurrency' });
  assertHasPolicies(own.standardHeaders);
  const { limiter, maxQueue = DEFAULT_MAX_QUEUE, ...more } = given;
  const max = readMax(given.max, limiter);
  const settings = {
    ...own,
    max,
    maxWait: readMaxWait(given.maxWait),
    maxQueue: readCount('maxQueue', maxQueue),
  };
  if (limiter !== undefined) return { ...settings, limiter: readLimiter(limiter, given) };
  const ofLimiter = LIMITER_NAMES.filter((name) => name in more).map((name) => [name, more[name]]);
  const limiterOptions = { ...Object.fromEntries(ofLimiter), max: MOST };
  // A plain number is the limiter's own, so that setMax() changes it.
  const isOfLimiter = max >= 1 && max <= MOST;
  if (!isOfLimiter) return { ...settings, limiterOptions };
  return { ...settings, max: undefined, limiterOptions: { ...limiterOptions, max } };
}

/** Several middlewares may share a limiter. */
function readLimiter(limiter, given) {
  if (!hasMethods(limiter, 'acquire', 'wait')) {
    throw optionTypeError('limiter', 'a ConcurrencyLimiter', limiter);
  }
  const other = LIMITER_NAMES.find((name) => name !== 'max' && name in given);
  if (other !== undefined) throw optionError(other, "conflicts with 'limiter', which has its own");
  return limiter;
}

module.exports = { readMaxOf, readOptions };
