// The counter as its rule is told: floor(current + previous x overlap), in exact integers.
'use strict';

const { countsOf, findsWithin, largestCount, windowOf } = require('./aligned-windows');
const { lastRecordAt } = require('./history');

function usedBy(history, { interval }, { limits }) {
  const countIn = countsOf(history, interval, largestCount(limits));
  return (t) => {
    const n = windowOf(t, interval);
    const current = BigInt(countIn(n));
    const previous = BigInt(countIn(n - 1));
    const length = BigInt(interval);
    const overlap = BigInt(n + 1) * length - BigInt(t); // of `length`
    return Number((current * length + previous * overlap) / length);
  };
}

function findsIn(history, record, policy, now) {
  return findsWithin(2, history, record, policy, { newest: lastRecordAt(history), now });
}

module.exports = { clampsTime: true, findsIn, newestOf: lastRecordAt, usedBy };
