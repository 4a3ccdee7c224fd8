// The exports of the package on hosts without modules of Node: limiters in memory and over a key-value store.
'use strict';

const ConcurrencyLimiter = require('./concurrency');
const { attemptAll } = require('./limiter/attempt-all');
const RateLimiter = require('./limiter');

module.exports = RateLimiter;
module.exports.RateLimiter = RateLimiter;
module.exports.ConcurrencyLimiter = ConcurrencyLimiter;
module.exports.attemptAll = attemptAll;
