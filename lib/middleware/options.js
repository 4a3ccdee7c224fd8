// The options of rateLimit(): what is wrong is refused here, once, and put in the form the rest works with.
'use strict';

const { optionTypeError, typeError } = require('../errors');
const { withoutUndefined } = require('../option-values');
const limiter = require('../options');
const { LIMITER_OPTIONS, RULE_OPTIONS, readLimiterOptions } = require('./limiter-options');
const { OWN_NAMES, readOwnOptions } = require('./own-options');
const { readRules } = require('./rules/read-rules');

/** Words of express-rate-limit for what is called otherwise here. */
const INSTEAD = {
  store:
    "counts are kept by limiters: expected 'redis', 'shared', 'kv' or 'limiter' in its place; a store " +
    "for express-rate-limit itself is require('rollgate/store')",
};

const KNOWN_OPTIONS = ['limiter', 'rules', ...OWN_NAMES, ...LIMITER_OPTIONS];

/**
 * The settings a middleware works with: every option checked, defaults filled in. `limiterOptions` is
 * what RateLimiter gets, or undefined where an existing `limiter` or `rules` were given; `rules` are as
 * of rules/read-rules.js.
 */
function readOptions(options = {}) {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw optionTypeError('options', 'an object', options);
  }
  const given = withoutUndefined(options);
  limiter.rejectUnknownOptions(given, KNOWN_OPTIONS, { instead: INSTEAD });
  const own = readOwnOptions(given);
  if (given.rules !== undefined) {
    const why = 'each of which has limits of its own';
    refuseBeside('rules', ['limiter', ...RULE_OPTIONS], given, why);
    return { ...own, ...readRules(given, own) };
  }
  return given.limiter === undefined
    ? { ...own, ...readLimiterOptions(given, own) }
    : { ...own, limiter: readExistingLimiter(given, own) };
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
  refuseBeside('limiter', LIMITER_OPTIONS, given, 'which has limits of its own');
  return limiter;
}

/** What would have no effect is refused, so that nobody relies on it. */
function refuseBeside(name, others, given, why) {
  const other = others.find((known) => known in given);
  if (other === undefined) return;
  throw typeError('ERR_ROLLGATE_OPTION', `option '${other}': not allowed beside '${name}', ${why}`);
}

module.exports = { readOptions };
