// What fixed window and sliding window counter have in common: windows aligned to the epoch.
'use strict';

const { standing } = require('./history');

const { floor } = Math; // globals are slow inside Jest

/** Which window of this length a moment lies in. */
const windowOf = (t, interval) => floor(t / interval);

/** No count goes beyond; small limits have small counts. */
function largestCount(limits) {
  const isSmall = limits.every(({ maxInInterval }) => maxInInterval < 2 ** 24 - 1);
  return isSmall ? 2 ** 24 - 1 : 2 ** 53 - 1;
}

/** How much was recorded in the n-th window of this length, as a function of n. */
function countsOf(history, interval, most) {
  const counts = new Map();
  for (const { at, cost } of standing(history)) {
    const n = windowOf(at, interval);
    counts.set(n, Math.min((counts.get(n) ?? 0) + cost, most));
  }
  return (n) => counts.get(n) ?? 0;
}

/** Whether a count of this history has ever stopped at the largest. */
function isCapped(history, { limits }) {
  const everything = history.reduce((sum, { cost = 0 }) => sum + cost, 0);
  return everything >= largestCount(limits);
}

/**
 * Whether a window still knows of an attempt that is `windows` windows back at most; undefined where
 * the id may be forgotten, or where a count has lost count.
 */
function findsWithin(windows, history, { at }, policy, { newest, now }) {
  const longest = Math.max(...policy.limits.map(({ interval }) => interval));
  if (now - newest >= windows * longest || isCapped(history, policy)) return undefined;
  return policy.limits.some(
    ({ interval }) => windowOf(newest, interval) - windowOf(at, interval) < windows,
  );
}

module.exports = { countsOf, findsWithin, largestCount, windowOf };
