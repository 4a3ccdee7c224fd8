// The options of rateLimit(): every option checked once, defaults filled in.
'use strict';

const { optionError, optionTypeError } = require('../../base/errors');
const {
  hasMethods,
  readBoolean,
  readFunction,
  readInteger,
  readObject,
  readString,
  rejectUnknownOptions,
  withoutUndefined,
} = require('../../options/values');
const { readSubnet } = require('./client');
const { readStore } = require('./foreign-store');
const { HEADER_DRAFTS, readIdentifier } = require('./headers');
const {
  LIMITER_OPTIONS,
  PASSED_ON,
  RULE_OPTIONS,
  readRequestCost,
  readRequestLimits,
} = require('./limiter-options');
const { readTrustProxy } = require('./proxies');
const { respond, respondWithProblem } = require('./refusal');
const { readRules } = require('./rules/read');
const { readValidate, takesClientKey } = require('./warnings');

/**
 * The options that are not a limiter's, by name: how each is read, and its default. Those without a default
 * may be undefined; so may keyGenerator, because the default one is made for each middleware.
 */
const OWN_OPTIONS = {
  keyGenerator: { read: readFunction },
  ipv6Subnet: { read: functionOr(readSubnet), byDefault: 56 },
  trustProxy: { read: readTrustProxy },
  cost: { read: readRequestCost },
  skip: { read: readFunction },
  authenticate: { read: readFunction },
  onAuthError: { read: readFunction },
  handler: { read: readFunction },
  message: { read: readMessage, byDefault: 'Too many requests, please try again later.' },
  statusCode: { read: (name, value) => readInteger(name, value, 200, 999), byDefault: 429 },
  problemDetails: { read: readBoolean, byDefault: false },
  headers: { read: readBoolean },
  legacyHeaders: { read: readBoolean },
  standardHeaders: { read: readStandardHeaders, byDefault: false },
  identifier: { read: functionOr(readIdentifier) },
  requestPropertyName: { read: readPropertyName, byDefault: 'rateLimit' },
  skipSuccessfulRequests: { read: readBoolean, byDefault: false },
  skipFailedRequests: { read: readBoolean, byDefault: false },
  requestWasSuccessful: { read: readFunction, byDefault: (_req, res) => res.statusCode < 400 },
  passOnStoreError: { read: readBoolean, byDefault: false },
  validate: { read: readValidate, byDefault: true },
  logger: { read: readLogger },
};

const OWN_NAMES = Object.keys(OWN_OPTIONS);

const KNOWN_OPTIONS = ['limiter', 'rules', 'store', ...OWN_NAMES, ...LIMITER_OPTIONS];

/**
 * The settings of a middleware. `limiterOptions` are the options of its RateLimiter, undefined with an
 * existing `limiter` or with `rules`; `rules` are those of rules/read.js.
 */
function readOptions(options = {}) {
  const given = withoutUndefined(readObject('options', options));
  rejectUnknownOptions(given, KNOWN_OPTIONS);
  const own = readOwnOptions(given);
  if (given.rules !== undefined) {
    const why = 'each of which has limits of its own';
    rejectTogether('rules', ['limiter', 'store', 'cost', ...RULE_OPTIONS], given, why);
    return { ...own, ...readRules(given, own) };
  }
  if (given.store !== undefined) return { ...own, ...readCountingStore(given, own) };
  return given.limiter === undefined
    ? { ...own, ...readRequestLimits(given, own) }
    : { ...own, limiter: readExistingLimiter(given, own) };
}

/** The options with these names, which may have other defaults. */
function readOwnOptions(given, names = OWN_NAMES, defaults = {}) {
  const own = {};
  for (const name of names) {
    const { read, byDefault } = OWN_OPTIONS[name];
    const value = name in given ? given[name] : (defaults[name] ?? byDefault);
    own[name] = value === undefined ? undefined : read(name, value);
  }
  if (own.keyGenerator !== undefined && !takesClientKey(own.keyGenerator)) {
    const why = 'which makes its keys by itself unless it has a third parameter, clientKey';
    rejectTogether('keyGenerator', ['ipv6Subnet', 'trustProxy'], given, why);
  }
  if (own.authenticate !== undefined) {
    const ways = ['keyGenerator', 'ipv6Subnet', 'trustProxy'];
    rejectTogether('authenticate', ways, given, 'which identifies the caller');
  } else if (own.onAuthError !== undefined) {
    throw optionError('onAuthError', "requires 'authenticate'");
  }
  if (own.problemDetails && own.handler !== undefined) {
    rejectTogether('handler', ['problemDetails'], given, 'which answers by itself');
  }
  own.legacyHeaders ??= own.headers ?? true;
  own.handler ??= own.problemDetails ? respondWithProblem : respond;
  return own;
}

/** Rejects options that would have no effect together with `name`, so that nobody relies on them. */
function rejectTogether(name, others, given, why) {
  const other = others.find((known) => known in given);
  if (other !== undefined) throw optionError(other, `conflicts with '${name}', ${why}`);
}

function readExistingLimiter(given, { cost, skipFailedRequests, skipSuccessfulRequests }) {
  const { limiter } = given;
  if (!hasMethods(limiter, 'attempt')) {
    throw optionTypeError('limiter', 'a limiter (an object with the method attempt)', limiter);
  }
  if ((skipFailedRequests || skipSuccessfulRequests) && !hasMethods(limiter, 'refund')) {
    const skips = skipFailedRequests ? 'skipFailedRequests' : 'skipSuccessfulRequests';
    throw optionTypeError('limiter', `a limiter with the method refund, for '${skips}'`, limiter);
  }
  if (cost !== undefined && !hasMethods(limiter, 'peek')) {
    throw optionTypeError('limiter', "a limiter with the method peek, for 'cost'", limiter);
  }
  rejectTogether('limiter', LIMITER_OPTIONS, given, 'which has limits of its own');
  return limiter;
}

/** A store counts requests in a window; it knows nothing of the other options of limiters. */
function readCountingStore(given, own) {
  const store = readStore('store', given.store);
  rejectTogether(
    'store',
    ['limiter', 'cost', ...PASSED_ON],
    given,
    'which counts requests by itself',
  );
  const { windowMs, limit } = readRequestLimits(given, own);
  return { store, windowMs, limit };
}

function functionOr(read) {
  return (_name, value) => (typeof value === 'function' ? value : read(value));
}

function readMessage(name, value) {
  if (typeof value === 'string' || hasMethods(value)) return value;
  throw optionTypeError(name, 'a string, an object or a function', value);
}

function readStandardHeaders(name, value) {
  if (value === true) return 'draft-6';
  if (value === false || HEADER_DRAFTS.includes(value)) return value;
  const drafts = HEADER_DRAFTS.map((draft) => `'${draft}'`).join(', ');
  throw optionTypeError(name, `true, false or one of ${drafts}`, value);
}

function readPropertyName(name, value) {
  // An assignment to __proto__ creates no property.
  const isGood = (string) => string !== '' && string !== '__proto__';
  return readString(name, value, 'a non-empty string, not __proto__', isGood);
}

function readLogger(name, value) {
  if (hasMethods(value, 'warn', 'error')) return value;
  throw optionTypeError(name, 'an object with the methods warn and error', value);
}

module.exports = { KNOWN_OPTIONS, readOptions, readOwnOptions };
