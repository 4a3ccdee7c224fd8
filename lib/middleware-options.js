// The options that a limiter has not, but its middleware has: what to say of them.
'use strict';

/** Apart from those of a limiter. */
const NAMES = [
  'windowMs',
  'limit',
  'max',
  'standardHeaders',
  'legacyHeaders',
  'keyGenerator',
  'ipv6Subnet',
  'authenticate',
  'onAuthError',
  'rules',
  'limiter',
  'skip',
  'skipFailedRequests',
  'skipSuccessfulRequests',
  'requestWasSuccessful',
  'handler',
  'message',
  'statusCode',
  'problemDetails',
  'identifier',
  'requestPropertyName',
  'passOnStoreError',
  'validate',
  'logger',
  'store',
];

/** A limiter has these, too. */
const OWN_WORDS = { windowMs: 'interval', limit: 'maxInInterval', max: 'maxInInterval' };

function whatToSay(name) {
  const text = "belongs to the middleware, which is require('rollgate').rateLimit";
  const own = OWN_WORDS[name];
  return own === undefined ? text : `${text}; a limiter has '${own}'`;
}

/** By name, for rejectUnknownOptions. */
const OF_MIDDLEWARE = Object.fromEntries(NAMES.map((name) => [name, whatToSay(name)]));

module.exports = { OF_MIDDLEWARE };
