// middleware.getKey(key): what is counted for a key, in the words of express-rate-limit.
'use strict';

const { USAGE } = require('../usage');
const { tightestWindow } = require('./request-info');

function createGetKey(limiter) {
  return async function getKey(key) {
    const { used, resetIn } = await usageOf(limiter, key);
    if (used <= 0) return undefined;
    return { totalHits: used, resetTime: new Date(Date.now() + resetIn) };
  };
}

async function usageOf(limiter, key) {
  if (typeof limiter[USAGE] === 'function')
    return tightestWindow((await limiter[USAGE](key)).limits);
  // A limiter that is not ours can only be asked what an attempt would get; one that passes is in it.
  const decision = await limiter.peek(key);
  const { used, resetIn } = tightestWindow(decision.limits);
  return { used: decision.allowed ? used - 1 : used, resetIn };
}

module.exports = { createGetKey };
