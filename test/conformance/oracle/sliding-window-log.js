// The log by counting: an action is in the window if it happened less than the interval ago.
'use strict';

const { standing, sumOf } = require('./history');

/** Taken back, an attempt might as well never have been. */
const newestOf = (history) => standing(history).at(-1)?.at;

function usedBy(history, { interval }) {
  const records = standing(history);
  return (t) => sumOf(records.filter(({ at }) => at > t - interval && at <= t));
}

/**
 * Undefined where refusals may have displaced records, where the clock has stepped back, and for what has
 * left every window, which may be forgotten.
 */
function findsIn(history, { at }, { limits, countBlocked }, now) {
  const longest = Math.max(...limits.map(({ interval }) => interval));
  const newest = newestOf(history);
  if (countBlocked || now < newest || now - at >= longest) return undefined;
  return true;
}

/** In no span of one interval more than max. */
function keepsTo(admissions, { interval, maxInInterval }) {
  return admissions.every(({ at }) => {
    const span = admissions.filter((other) => other.at > at - interval && other.at <= at);
    return sumOf(span) <= maxInInterval;
  });
}

module.exports = {
  clampsTime: true,
  countsBlocked: true,
  examples: {
    kept: [[0, 0, 100]],
    broken: [
      [0, 0, 99],
      [90, 90, 110],
      [0, 0, 50, 99, 100],
    ],
  },
  findsIn,
  fullFor: (interval) => interval,
  fullForAfterRefusal: (interval) => interval,
  keepsTo,
  newestOf,
  usedBy,
};
