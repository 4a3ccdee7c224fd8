// A limiter of three actions a minute over a key-value store that is at hand, and what it fails with.
'use strict';

const RateLimiter = require('../..');

const TIMEOUT = 'ERR_ROLLGATE_KV_TIMEOUT';
const FAILED = 'ERR_ROLLGATE_KV';

const limiterOver = (kv, options) =>
  RateLimiter({
    kv,
    namespace: 'n',
    interval: 60_000,
    maxInInterval: 3,
    countBlocked: false,
    commandTimeout: 100,
    ...options,
  });

module.exports = { FAILED, limiterOver, TIMEOUT };
