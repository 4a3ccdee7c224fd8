// The script that decides on Redis: its source, its name there, and the arguments it takes.
'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { durationToMicros } = require('../clock');

const SOURCE_PATH = path.join(__dirname, '../../src/redis/scripts/sliding_window_log.lua');
const SOURCE = fs.readFileSync(SOURCE_PATH, 'utf8');
const SHA1 = createHash('sha1').update(SOURCE).digest('hex');

/** A Lua number is exact up to here; durations and times stop at it. */
const LONGEST_MICROS = 2 ** 53;

/** A duration in ms as the script takes it. */
function durationArgument(ms) {
  return String(Math.min(durationToMicros(ms), LONGEST_MICROS));
}

/** The arguments of every call under one policy, from ARGV[5] on. */
function policyArguments({ windows, minDifference, countBlocked }) {
  return [
    countBlocked ? '1' : '0',
    durationArgument(minDifference),
    ...windows.flatMap(({ interval, maxInInterval }) => [
      durationArgument(interval),
      String(maxInInterval),
    ]),
  ];
}

module.exports = { LONGEST_MICROS, SHA1, SOURCE, policyArguments };
