// The arguments of the Redis scripts.
'use strict';

const { durationToMicros } = require('../clock');

/** A Lua number is exact up to here; durations and times stop at it. */
const LONGEST_MICROS = 2 ** 53;

/** A duration in ms as the script takes it. */
function durationArgument(ms) {
  return String(Math.min(durationToMicros(ms), LONGEST_MICROS));
}

/** The arguments of every call under one policy, from ARGV[5] on. */
function policyArguments({ windows, minDifference, countBlocked, blockFor }) {
  return [
    countBlocked ? '1' : '0',
    durationArgument(minDifference),
    blockFor.map(durationArgument).join(),
    ...windows.flatMap(({ interval, maxInInterval }) => [
      durationArgument(interval),
      String(maxInInterval),
    ]),
  ];
}

/** ARGV[1] of an attempt on several keys. */
function attemptOn(keys) {
  return new Set(keys).size < keys.length ? 'attempt, keys repeat' : 'attempt';
}

module.exports = { LONGEST_MICROS, attemptOn, policyArguments };
