// The limiter behind a middleware: the one it was given, one that refuses everything, or one of its own.
'use strict';

const RateLimiter = require('../limiter');
const { USAGE } = require('../usage');
const { ATTEMPT_WITHIN, TAKES_MAX } = require('../within');
const { createClosedLimiter } = require('./closed-limiter');

/** All that the middleware asks of a limiter is attempt, peek and clear: the store is not its business. */
function limiterFor({ limiter, limiterOptions }) {
  if (limiter !== undefined) return limiter;
  const { maxInInterval, interval, blockFor = 0 } = limiterOptions;
  if (typeof maxInInterval === 'function') return createLimiterByRequest(limiterOptions);
  if (maxInInterval !== 0) return new RateLimiter(limiterOptions);
  // No limiter has a maximum of 0. One with 1, made and dropped, checks the other options.
  new RateLimiter({ ...limiterOptions, maxInInterval: 1 });
  return createClosedLimiter(interval, Array.isArray(blockFor) ? blockFor[0] : blockFor);
}

/** One count for each id, judged by what each attempt(id, max) is told. */
function createLimiterByRequest(limiterOptions) {
  const limiter = new RateLimiter({ ...limiterOptions, maxInInterval: 1, [TAKES_MAX]: true });
  return {
    attempt: (id, max) => limiter[ATTEMPT_WITHIN](id, max),
    refund: (decision) => limiter.refund(decision),
    clear: (id) => limiter.clear(id),
    [USAGE]: (id) => limiter[USAGE](id),
  };
}

module.exports = { limiterFor };
