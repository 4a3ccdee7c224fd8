// The option limit (or max) as a function: how much a request's key may do, by that request.
'use strict';

const { rangeError, show, typeError } = require('../errors');
const { andThen } = require('./maybe-async');

/** A function (req, res) that gives the limit, checked, or a promise of it; undefined for a plain number. */
function createLimitOf(limit) {
  if (typeof limit !== 'function') return undefined;
  return (req, res) => andThen(limit(req, res), readLimit);
}

function readLimit(value) {
  // Beyond MAX_SAFE_INTEGER nothing is countable: such a limit is never reached, like that one.
  if (Number.isInteger(value) && value >= 0) return Math.min(value, Number.MAX_SAFE_INTEGER);
  const makeError = typeof value === 'number' ? rangeError : typeError;
  throw makeError(
    'ERR_ROLLGATE_LIMIT',
    `limit: expected the function to give an integer >= 0, got ${show(value)}`,
  );
}

module.exports = { createLimitOf };
