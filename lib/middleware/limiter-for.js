// The limiter behind a middleware: the one it was given, one that refuses everything, or one of its own.
'use strict';

const RateLimiter = require('../limiter');
const { createClosedLimiter } = require('./closed-limiter');
const { createLimiterByRequest } = require('./limiter-by-request');

/** All that the middleware asks of a limiter is attempt, peek and clear: the store is not its business. */
function limiterFor({ limiter, limiterOptions }) {
  if (limiter !== undefined) return limiter;
  const { maxInInterval } = limiterOptions;
  if (typeof maxInInterval === 'function') {
    return createLimiterByRequest(limiterOptions, closedLimiterOf(limiterOptions));
  }
  if (maxInInterval !== 0) return new RateLimiter(limiterOptions);
  // No limiter has a maximum of 0. One with 1, made and dropped, checks the other options.
  new RateLimiter({ ...limiterOptions, maxInInterval: 1 });
  return closedLimiterOf(limiterOptions);
}

function closedLimiterOf({ interval, blockFor = 0 }) {
  return createClosedLimiter(interval, Array.isArray(blockFor) ? blockFor[0] : blockFor);
}

module.exports = { limiterFor };
