// What the package exports: the function RateLimiter, with everything else hung on it.
'use strict';

const classes = require('./classes');
const RateLimiter = require('./limiter');
const rateLimit = require('./middleware');
const { ipKeyGenerator } = require('./middleware/ip-key');
const { unlinkShared } = require('./shared/unlink');

module.exports = RateLimiter;
Object.assign(module.exports, { RateLimiter, ...classes, rateLimit, ipKeyGenerator, unlinkShared });
