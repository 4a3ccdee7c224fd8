// What the native side is given of a limiter's checked options.
'use strict';

const { durationToMicros } = require('../base/clock');
const { ALGORITHMS } = require('../options/algorithms');

/** A checked policy as PolicyFromJs of src/core/numbers.h reads it. The first number is how many windows it has. */
function nativePolicy(checked) {
  const { windows, blockFor, minDifference, countBlocked, algorithm, isWeighted } = checked;
  return Float64Array.from([
    windows.length,
    blockFor.length,
    durationToMicros(minDifference),
    countBlocked,
    ALGORITHMS.indexOf(algorithm),
    isWeighted,
    ...windows.flatMap(({ interval, maxInInterval, calendar }) => [
      durationToMicros(interval),
      maxInInterval,
      calendar !== undefined,
    ]),
    ...blockFor.map(durationToMicros),
  ]);
}

module.exports = { nativePolicy };
