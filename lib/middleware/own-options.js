// The options of rateLimit() that are not its limiter's: names, defaults and checks.
'use strict';

const { optionTypeError, optionRangeError, typeError } = require('../errors');
const { HEADER_DRAFTS } = require('./headers');
const { readIdentifier } = require('./headers/policy-names');
const { respond } = require('./respond');
const { respondWithProblem } = require('./respond-with-problem');
const { readSubnet } = require('./subnet');
const { readValidate } = require('./validate');

const DEFAULTS = {
  message: 'Too many requests, please try again later.',
  statusCode: 429,
  legacyHeaders: true,
  standardHeaders: false,
  requestPropertyName: 'rateLimit',
  ipv6Subnet: 56,
  skipSuccessfulRequests: false,
  skipFailedRequests: false,
  requestWasSuccessful: (_req, res) => res.statusCode < 400,
  passOnStoreError: false,
  problemDetails: false,
  validate: true,
};

/** How each option is read; those without a default may be left out. */
const READERS = {
  keyGenerator: readFunction,
  ipv6Subnet: functionOr(readSubnet),
  skip: readFunction,
  authenticate: readFunction,
  onAuthError: readFunction,
  handler: readFunction,
  message: readMessage,
  statusCode: readStatusCode,
  problemDetails: readBoolean,
  legacyHeaders: readBoolean,
  standardHeaders: readStandardHeaders,
  identifier: functionOr(readIdentifier),
  requestPropertyName: readRequestPropertyName,
  skipSuccessfulRequests: readBoolean,
  skipFailedRequests: readBoolean,
  requestWasSuccessful: readFunction,
  passOnStoreError: readBoolean,
  validate: readValidate,
  logger: readLogger,
};

const OWN_NAMES = Object.keys(READERS);

/**
 * Every option checked, defaults filled in. Without a `keyGenerator` it stays undefined: the default one
 * belongs to a middleware.
 *
 * @param {object} given options, none of them undefined
 */
function readOwnOptions(given) {
  const own = {};
  for (const name of OWN_NAMES) {
    const value = name in given ? given[name] : DEFAULTS[name];
    own[name] = value === undefined ? undefined : READERS[name](value, name);
  }
  if ('ipv6Subnet' in given && own.keyGenerator !== undefined) {
    throw notBeside('ipv6Subnet', 'keyGenerator', 'which makes its keys by itself');
  }
  const ownWay = ['keyGenerator', 'ipv6Subnet'].find((name) => name in given);
  if (own.authenticate !== undefined && ownWay !== undefined) {
    throw notBeside(ownWay, 'authenticate', 'which tells the id by itself');
  }
  if (own.onAuthError !== undefined && own.authenticate === undefined) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      "option 'onAuthError': expected only beside 'authenticate', which is missing",
    );
  }
  if (own.problemDetails && own.handler !== undefined) {
    throw notBeside('problemDetails', 'handler', 'which answers by itself');
  }
  own.handler ??= own.problemDetails ? respondWithProblem : respond;
  return own;
}

/** What would have no effect is refused, so that nobody relies on it. */
function notBeside(name, other, why) {
  return typeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': not allowed beside '${other}', ${why}`,
  );
}

function functionOr(read) {
  return (value, name) => (typeof value === 'function' ? value : read(value, name));
}

function readFunction(value, name) {
  if (typeof value !== 'function') throw optionTypeError(name, 'a function', value);
  return value;
}

function readBoolean(value, name) {
  if (typeof value !== 'boolean') throw optionTypeError(name, 'true or false', value);
  return value;
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

function readStandardHeaders(value) {
  if (value === true) return 'draft-6';
  if (value === false || HEADER_DRAFTS.includes(value)) return value;
  const drafts = HEADER_DRAFTS.map((draft) => `'${draft}'`).join(', ');
  throw optionTypeError('standardHeaders', `true, false or one of ${drafts}`, value);
}

function readRequestPropertyName(value) {
  if (typeof value !== 'string') throw optionTypeError('requestPropertyName', 'a string', value);
  // To set __proto__ makes no property.
  if (value === '' || value === '__proto__') {
    throw optionRangeError('requestPropertyName', 'a non-empty string, not __proto__', value);
  }
  return value;
}

function readLogger(value) {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (!isObject || typeof value.warn !== 'function' || typeof value.error !== 'function') {
    throw optionTypeError('logger', 'an object with the methods warn and error', value);
  }
  return value;
}

module.exports = { OWN_NAMES, readOwnOptions };
