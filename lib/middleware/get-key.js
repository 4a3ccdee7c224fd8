// middleware.getKey(key): what is counted for a key, in the words of express-rate-limit.
'use strict';

const { tightestWindow } = require('./request-info');

/**
 * A peek answers as if an attempt were made now, so that attempt is taken out again where it is in. A
 * refusal by count has a full window with or without it; other refusals are in it if refusals count.
 */
function createGetKey(limiter, { limiterOptions }) {
  // A limiter from outside does not say what it does with refusals: taken for the default, to count them.
  const countsRefusals = limiterOptions?.countBlocked ?? true;

  return async function getKey(key) {
    const decision = await limiter.peek(key);
    const { used } = tightestWindow(decision.limits);
    const isCounted =
      decision.allowed || (decision.blockedBy === 'minDifference' && countsRefusals);
    const totalHits = isCounted ? used - 1 : used;
    if (totalHits <= 0) return undefined;
    return { totalHits, resetTime: new Date(Date.now() + decision.resetIn) };
  };
}

module.exports = { createGetKey };
