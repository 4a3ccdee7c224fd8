// What fixed window and sliding window counter have in common: windows aligned to the epoch.
'use strict';

const { isCapped, standing, sumOf } = require('./history');

const { floor } = Math; // globals are slow inside Jest

/** Which window of this length a moment lies in. */
const windowOf = (t, interval) => floor(t / interval);

/** How much of it lies in the n-th window of this length. */
function recordedIn(n, records, interval) {
  return sumOf(records.filter(({ at }) => windowOf(at, interval) === n));
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

module.exports = { countsOf, findsWithin, recordedIn, windowOf };
