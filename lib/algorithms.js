// The algorithms by name, and the options that depend on the algorithm.
'use strict';

const { optionTypeError } = require('./errors');
const { readBoolean } = require('./option-values');

/** In the order of the native side's own list: core/algorithms.h. */
const ALGORITHMS = ['sliding-window-log', 'sliding-window-counter', 'fixed-window', 'gcra'];

/** Algorithms that cannot count refusals. */
const NEVER_COUNT_BLOCKED = ['gcra'];

/** Algorithms whose state of an id is meaningless under another limit. */
const BOUND_TO_LIMIT = ['gcra'];

function readAlgorithm(algorithm = ALGORITHMS[0]) {
  if (ALGORITHMS.includes(algorithm)) return algorithm;
  throw optionTypeError('algorithm', `one of ${ALGORITHMS.join(', ')}`, algorithm);
}

/** The default is whether the algorithm can count refusals. */
function readCountBlocked(value, algorithm) {
  const canCount = !NEVER_COUNT_BLOCKED.includes(algorithm);
  const countBlocked = readBoolean('countBlocked', value, canCount);
  if (!countBlocked || canCount) return countBlocked;
  const expected = `false or nothing with algorithm '${algorithm}', which never counts a refusal`;
  throw optionTypeError('countBlocked', expected, countBlocked);
}

module.exports = { ALGORITHMS, BOUND_TO_LIMIT, readAlgorithm, readCountBlocked };
