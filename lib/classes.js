// The classes of rolling-rate-limiter 0.2 to 0.4.
'use strict';

const RateLimiter = require('./limiter');

/** A limiter in memory; `new InMemoryRateLimiter({ interval, maxInInterval, minDifference })`. */
class InMemoryRateLimiter extends RateLimiter {}

module.exports = { InMemoryRateLimiter };
