// When a window's quota grows, in whole seconds, for headers that tell of each window by itself.
'use strict';

/**
 * The only window has the reset of the decision, minDifference included. Of several each has its own; but
 * Retry-After must not be earlier than any reset beside it, and what a refused client waits for may be
 * nearer than the reset of a window with room left: that one is then undefined, and not sent.
 */
function windowResetSeconds(window, { allowed, timeLeft, resetIn, limits }) {
  if (limits.length === 1) return Math.ceil(resetIn / 1000);
  if (!allowed && window.resetIn > timeLeft) return undefined;
  return Math.ceil(window.resetIn / 1000);
}

module.exports = { windowResetSeconds };
