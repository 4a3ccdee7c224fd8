// The algorithms by name, and the options that depend on the algorithm.
'use strict';

const platform = require('#platform');
const { optionTypeError } = require('../base/errors');
const { readBoolean } = require('./values');

/** In the order of the native side's own list: core/algorithms.h. */
const ALGORITHMS = ['sliding-window-log', 'sliding-window-counter', 'fixed-window', 'gcra'];

/** Algorithms that cannot count refusals. */
const NEVER_COUNT_BLOCKED = ['gcra'];

/** Names in other packages. */
const SYNONYMS = new Map([
  ['sliding-window', 'sliding-window-log'],
  ['rolling-window', 'sliding-window-log'],
  ['token-bucket', 'gcra'],
  ['leaky-bucket', 'gcra'],
]);

function readAlgorithm(algorithm = ALGORITHMS[0]) {
  if (ALGORITHMS.includes(algorithm)) return algorithm;
  const hint = SYNONYMS.has(algorithm) ? ` (here probably ${SYNONYMS.get(algorithm)})` : '';
  throw optionTypeError('algorithm', `one of ${ALGORITHMS.join(', ')}${hint}`, algorithm);
}

/** The default is whether the algorithm can count refusals. */
function readCountBlocked(value, algorithm) {
  const canCount = !NEVER_COUNT_BLOCKED.includes(algorithm);
  const countBlocked = readBoolean('countBlocked', value, canCount);
  if (!countBlocked || canCount) return countBlocked;
  const expected = `false or nothing with algorithm '${algorithm}', which never counts a refusal`;
  throw optionTypeError('countBlocked', expected, countBlocked);
}

/** GCRA counts in whole nanoseconds. */
const MOST_PER_MS = 1_000_000;

/** Reports limits that GCRA keeps with a lower rate. */
function warnOfRate({ algorithm, windows }) {
  if (algorithm !== 'gcra') return;
  const fast = windows.find(
    ({ interval, maxInInterval }) => maxInInterval > interval * MOST_PER_MS,
  );
  if (fast === undefined) return;
  platform.warn(
    `algorithm 'gcra' allows a billion actions per second after a burst, which is less than the limit ` +
      `of ${fast.maxInInterval} in ${fast.interval} ms`,
    'ROLLGATE_GCRA_RATE',
  );
}

module.exports = { ALGORITHMS, readAlgorithm, readCountBlocked, warnOfRate };
