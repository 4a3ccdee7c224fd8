// The limiter of a middleware with limit 0: it refuses every request and remembers nothing.
'use strict';

/**
 * A refusal names the whole window as the wait, or the block if that is longer, for want of a better time to
 * come back.
 */
function createClosedLimiter(intervalMs, blockForMs = 0) {
  const resetIn = Math.ceil(Math.max(intervalMs, blockForMs));
  const refusal = () => ({
    allowed: false,
    timeLeft: resetIn,
    actionsLeft: 0,
    resetIn,
    blockedBy: 'count',
    limits: [{ interval: intervalMs, maxInInterval: 0, used: 0, remaining: 0, resetIn }],
  });
  return { attempt: refusal, peek: refusal, refund: () => false, clear: async () => {} };
}

module.exports = { createClosedLimiter };
