// What the package exports: the function RateLimiter, with everything else hung on it.
'use strict';

const classes = require('./classes');
const RateLimiter = require('./limiter');
const { addonPath, setAddonPath } = require('./native');

// Loaded when it is first asked for: the middleware alone is half of all code.
let middleware;
let ipKey;

function rateLimit(options) {
  middleware ??= require('./middleware');
  return middleware(options);
}

function ipKeyGenerator(...args) {
  ipKey ??= require('./middleware/client');
  return ipKey.ipKeyGenerator(...args);
}

function unlinkShared(shared) {
  return require('./shared/unlink').unlinkShared(shared);
}

module.exports = RateLimiter;
Object.assign(module.exports, {
  RateLimiter,
  ...classes,
  rateLimit,
  ipKeyGenerator,
  unlinkShared,
  addonPath,
  setAddonPath,
});
