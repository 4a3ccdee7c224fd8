// The exports of the package on hosts without modules of Node: limiters in memory and over a key-value store.
'use strict';

const { attemptAll } = require('./attempt-all');
const RateLimiter = require('./limiter');

module.exports = Object.assign(RateLimiter, { RateLimiter, attemptAll });
