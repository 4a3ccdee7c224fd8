// A checked policy as the native side reads it.
'use strict';

const { ALGORITHMS } = require('./algorithms');
const { durationToMicros } = require('./clock');

function nativePolicy({ windows, minDifference, countBlocked, algorithm, blockFor, setsMax }) {
  const flatWindows = windows.flatMap(({ interval, maxInInterval }) => [
    durationToMicros(interval),
    maxInInterval,
  ]);
  return {
    windows: new Float64Array(flatWindows),
    minDifference: durationToMicros(minDifference),
    countBlocked,
    algorithm: ALGORITHMS.indexOf(algorithm),
    blocks: new Float64Array(blockFor.map(durationToMicros)),
    setsMax,
  };
}

module.exports = { nativePolicy };
