// The counter as its rule is told: floor(current + previous x overlap), in exact integers.
'use strict';

const { countsOf, findsWithin, recordedIn, windowOf } = require('./aligned-windows');
const { largestCount, lastRecordAt } = require('./history');

// Looked up once: globals are slow inside Jest, and this runs for every moment of a search.
const [big, number] = [BigInt, Number];

function usedBy(history, { interval }, { limits }) {
  const countIn = countsOf(history, interval, largestCount(limits));
  const length = big(interval);
  return (t) => {
    const n = windowOf(t, interval);
    const overlap = big(n + 1) * length - big(t); // of `length`
    return countIn(n) + number((big(countIn(n - 1)) * overlap) / length);
  };
}

function findsIn(history, record, policy, now) {
  return findsWithin(2, history, record, policy, { newest: lastRecordAt(history), now });
}

/** Whole places are given away: as many as current + previous x overlap, rounded down, leaves. */
function keepsTo(admissions, { interval, maxInInterval }) {
  return admissions.every(({ at, cost }, i) => {
    const n = windowOf(at, interval);
    const before = admissions.slice(0, i);
    const current = recordedIn(n, before, interval);
    const previous = recordedIn(n - 1, before, interval);
    const weighed = BigInt(previous) * BigInt((n + 1) * interval - at);
    return current + Number(weighed / BigInt(interval)) + cost <= maxInInterval;
  });
}

module.exports = {
  clampsTime: true,
  countsBlocked: true,
  examples: {
    kept: [[90, 90, 110]],
    broken: [
      [0, 0, 99],
      [0, 0, 100],
      [0, 0, 50, 99, 100],
    ],
  },
  findsIn,
  // Of the next window it needs one microsecond for its first place.
  fullFor: (interval) => interval + 1,
  fullForAfterRefusal: (interval) => interval + 1,
  keepsTo,
  newestOf: lastRecordAt,
  usedBy,
};
