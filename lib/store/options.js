// The options of RollgateStore, and what the options of express-rate-limit make of them.
'use strict';

const { optionTypeError, typeError } = require('../errors');
const limiters = require('../options');
const { readObject, withoutUndefined } = require('../option-values');
const { readNamespace } = require('../redis/options');
const { regionPath } = require('../shared/region');

const KNOWN = ['limiter', ...limiters.LIMITER_NAMES.filter((name) => name !== 'interval')];

/** What express-rate-limit tells the store. */
const OF_MIDDLEWARE = {
  interval: "expected as 'windowMs' of the middleware: rateLimit({ windowMs, limit, store })",
  windowMs: 'expected beside the store: rateLimit({ windowMs, limit, store })',
  limit: 'expected beside the store: rateLimit({ windowMs, limit, store })',
  max: "expected as 'limit' of the middleware: rateLimit({ windowMs, limit, store })",
};

const METHODS = ['attempt', 'peek', 'refund', 'clear', 'clearAll'];

/** Of limiters that exist: each needs a name of its own, or two of them look like one place. */
const nameOf = (() => {
  const names = new WeakMap();
  let count = 0;
  return (limiter) => {
    if (!names.has(limiter)) names.set(limiter, `limiter-${++count}:`);
    return names.get(limiter);
  };
})();

/**
 * @returns {{ limiter?: object, limiterOptions?: object, localKeys: boolean, prefix: string | undefined }}
 *   an existing limiter, or the options of one that init() completes
 */
function readStoreOptions(options = {}) {
  const given = withoutUndefined(readObject('options', options));
  limiters.rejectUnknownOptions(given, KNOWN, { instead: OF_MIDDLEWARE });
  return given.limiter === undefined ? readLimiterOptions(given) : readExistingLimiter(given);
}

function readExistingLimiter({ limiter, ...others }) {
  const isObject =
    (typeof limiter === 'object' && limiter !== null) || typeof limiter === 'function';
  if (!isObject || METHODS.some((method) => typeof limiter[method] !== 'function')) {
    throw optionTypeError('limiter', `a limiter (with ${METHODS.join(', ')})`, limiter);
  }
  const [other] = Object.keys(others);
  if (other !== undefined) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `option '${other}': not allowed beside 'limiter', which has limits of its own`,
    );
  }
  return { limiter, localKeys: false, prefix: nameOf(limiter) };
}

function readLimiterOptions(given) {
  // With some window, for a check of all that is known by now.
  limiters.readLimiterOptions({ maxInInterval: 1, ...given, interval: 1 });
  const { redis, client, shared, kv } = given;
  if ([redis, client, shared, kv].every((place) => place === undefined)) {
    return { limiterOptions: given, localKeys: true, prefix: undefined };
  }
  if (shared !== undefined) {
    return { limiterOptions: given, localKeys: false, prefix: `${regionPath(shared)}:` };
  }
  const namespace = readNamespace(given.namespace);
  return { limiterOptions: { ...given, namespace }, localKeys: false, prefix: namespace };
}

/**
 * The options of the limiter behind a middleware. The log is as long as its limit; where that is a function,
 * the store must be told the largest that it may give.
 */
function limiterOptionsFor(given, { windowMs, limit, skipFailedRequests }) {
  const options = { ...given };
  if (skipFailedRequests) options.countBlocked = readUncounted(given.countBlocked);
  if (given.limits !== undefined) return options;
  return { ...options, interval: windowMs, maxInInterval: longestLog(limit, given.maxInInterval) };
}

/** A limit of 0 refuses what was counted once, which takes a log of one. */
function longestLog(limit, maxInInterval) {
  if (typeof limit === 'number' && !Number.isNaN(limit)) {
    return Math.min(Math.max(1, Math.floor(limit)), Number.MAX_SAFE_INTEGER);
  }
  if (maxInInterval !== undefined) return maxInInterval;
  throw optionTypeError(
    'maxInInterval',
    "an integer >= 1, the largest that 'limit' may give, which is no number here",
    maxInInterval,
  );
}

/** A refused request has failed: it is not counted in the first place, which unlike a refund is exact. */
function readUncounted(countBlocked) {
  if (countBlocked !== true) return false;
  throw typeError(
    'ERR_ROLLGATE_OPTION',
    "option 'countBlocked': not true beside 'skipFailedRequests', by which refused requests do not count",
  );
}

module.exports = { limiterOptionsFor, readStoreOptions };
