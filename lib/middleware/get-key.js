// middleware.getKey(key): what is counted for a key, in the words of express-rate-limit.
'use strict';

const { USAGE } = require('../internal-methods');
const { tightestWindow } = require('./request-info');

/** Of several limiters the one that has the least left answers, among those that count something. */
function createGetKey(limiters) {
  return async function getKey(key) {
    const usages = await Promise.all(limiters().map((limiter) => usageOf(limiter, key)));
    const counting = usages.filter(({ used }) => used > 0);
    if (counting.length === 0) return undefined;
    const { used, resetIn } = tightestWindow(counting);
    return { totalHits: used, resetTime: new Date(Date.now() + resetIn) };
  };
}

async function usageOf(limiter, key) {
  if (typeof limiter[USAGE] === 'function')
    return tightestWindow((await limiter[USAGE](key)).limits);
  // A limiter that is not ours can only be asked what an attempt would get; one that passes is in it.
  const decision = await limiter.peek(key);
  const { used, remaining, resetIn } = tightestWindow(decision.limits);
  return { used: decision.allowed ? used - 1 : used, remaining, resetIn };
}

module.exports = { createGetKey };
