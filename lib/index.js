// What the package exports: the function RateLimiter, with everything else hung on it.
'use strict';

const classes = require('./classes');
const RateLimiter = require('./limiter');

// The middleware is loaded when it is first asked for: half of all code is its.
let middleware;
let ipKey;

function rateLimit(options) {
  middleware ??= require('./middleware');
  return middleware(options);
}

function ipKeyGenerator(...args) {
  ipKey ??= require('./middleware/ip-key');
  return ipKey.ipKeyGenerator(...args);
}

module.exports = RateLimiter;
Object.assign(module.exports, { RateLimiter, ...classes, rateLimit, ipKeyGenerator });
