// The counter as its rule is told: floor(current + previous x overlap), in exact integers.
'use strict';

const { countsOf, findsWithin, largestCount, windowOf } = require('./aligned-windows');
const { lastRecordAt } = require('./history');

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

module.exports = { clampsTime: true, findsIn, newestOf: lastRecordAt, usedBy };
