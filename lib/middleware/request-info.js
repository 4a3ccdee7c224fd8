// What the application reads from req.rateLimit: the state of the window that is nearest to its limit.
'use strict';

/** @returns {{ limit: number, used: number, remaining: number, resetTime: Date, key: unknown }} */
function requestInfo(decision, key, nowMs) {
  const window = tightestWindow(decision.limits);
  return {
    limit: window.maxInInterval,
    used: window.used,
    remaining: window.remaining,
    resetTime: new Date(nowMs + decision.resetIn),
    key,
  };
}

/** The window with the least left; of several, the one that takes longest to give more. */
function tightestWindow(windows) {
  let tightest = windows[0];
  for (let i = 1; i < windows.length; i++) {
    const window = windows[i];
    if (
      window.remaining < tightest.remaining ||
      (window.remaining === tightest.remaining && window.resetIn > tightest.resetIn)
    ) {
      tightest = window;
    }
  }
  return tightest;
}

module.exports = { requestInfo, tightestWindow };
