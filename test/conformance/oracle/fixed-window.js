// The fixed window by counting what was recorded in the window of a moment.
'use strict';

const { countsOf, findsWithin, recordedIn, windowOf } = require('./aligned-windows');
const { largestCount, lastRecordAt } = require('./history');

function usedBy(history, { interval }, { limits }) {
  const countIn = countsOf(history, interval, largestCount(limits));
  return (t) => countIn(windowOf(t, interval));
}

function findsIn(history, record, policy, now) {
  return findsWithin(1, history, record, policy, { newest: lastRecordAt(history), now });
}

/** In no window more than max. */
function keepsTo(admissions, { interval, maxInInterval }) {
  return admissions.every(({ at }) => {
    return recordedIn(windowOf(at, interval), admissions, interval) <= maxInInterval;
  });
}

module.exports = {
  clampsTime: true,
  countsBlocked: true,
  examples: {
    kept: [
      [0, 0, 100],
      [90, 90, 110],
    ],
    broken: [
      [0, 0, 99],
      [0, 0, 50, 99, 100],
    ],
  },
  findsIn,
  fullFor: (interval) => interval,
  // It begins anew whatever it holds.
  fullForAfterRefusal: (interval) => interval / 2,
  keepsTo,
  newestOf: lastRecordAt,
  usedBy,
};
