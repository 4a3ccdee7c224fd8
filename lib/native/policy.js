// What the native side is given of a limiter's checked options.
'use strict';

const { durationToMicros } = require('../base/clock');
const { ALGORITHMS } = require('../options/algorithms');

/** A checked policy in the form of the native side. */
function nativePolicy(checked) {
  const { windows, isWeighted, minDifference, countBlocked, algorithm, blockFor, setsMax } =
    checked;
  const flatWindows = windows.flatMap(({ interval, maxInInterval }) => [
    durationToMicros(interval),
    maxInInterval,
  ]);
  return {
    windows: new Float64Array(flatWindows),
    isWeighted,
    minDifference: durationToMicros(minDifference),
    countBlocked,
    algorithm: ALGORITHMS.indexOf(algorithm),
    blocks: new Float64Array(blockFor.map(durationToMicros)),
    setsMax,
  };
}

module.exports = { nativePolicy };
