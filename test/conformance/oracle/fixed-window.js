// The fixed window by counting what was recorded in the window of a moment.
'use strict';

const { countsOf, findsWithin, largestCount, windowOf } = require('./aligned-windows');
const { lastRecordAt } = require('./history');

function usedBy(history, { interval }, { limits }) {
  const countIn = countsOf(history, interval, largestCount(limits));
  return (t) => countIn(windowOf(t, interval));
}

function findsIn(history, record, policy, now) {
  return findsWithin(1, history, record, policy, { newest: lastRecordAt(history), now });
}

module.exports = { clampsTime: true, findsIn, newestOf: lastRecordAt, usedBy };
