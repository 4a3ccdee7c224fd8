// The exports of the package on hosts without modules of Node: limiters in memory and over a key-value store. The
// entries browser.mjs, workerd.mjs and edge-light.mjs give the host its WebAssembly module.
'use strict';

const { attemptAll } = require('./attempt-all');
const RateLimiter = require('./limiter');

module.exports = Object.assign(RateLimiter, { RateLimiter, attemptAll });
