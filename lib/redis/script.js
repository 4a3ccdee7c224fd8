// The scripts that decide on Redis, one for each algorithm: their sources, their names there, and their arguments.
'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { ALGORITHMS } = require('../algorithms');
const { durationToMicros } = require('../clock');

const FOLDER = path.join(__dirname, '../../src/redis/scripts');

/** How a file begins that is no whole script but the parts of one, and where they stand in the frame. */
const IN_FRAME = '-- In frame.lua:';
const PART = /^-- PART: (.*)\n/m;
const PLACE = /^ *-- PLACE: (.*)\n/gm;

const read = (name) => fs.readFileSync(path.join(FOLDER, `${name}.lua`), 'utf8');

/** cmake/scripts.cmake puts them together in the same way. */
function sourceOf(algorithm) {
  const own = read(algorithm.replaceAll('-', '_'));
  if (!own.startsWith(IN_FRAME)) return own;
  const [first, ...named] = own.split(PART); // a name before each text
  const textOf = { FIRST: first };
  for (let i = 0; i < named.length; i += 2) textOf[named[i]] = named[i + 1];
  return read('frame').replace(PLACE, (_, place) => textOf[place]);
}

/** By the name of the algorithm: `source`, and the `sha1` that servers know it by. */
const SCRIPTS = Object.fromEntries(
  ALGORITHMS.map((algorithm) => {
    const source = sourceOf(algorithm);
    return [algorithm, { source, sha1: createHash('sha1').update(source).digest('hex') }];
  }),
);

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

module.exports = { LONGEST_MICROS, SCRIPTS, attemptOn, policyArguments };
