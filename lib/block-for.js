// The option blockFor: how long an id is refused after a refusal, offence by offence.
'use strict';

const { optionRangeError } = require('./errors');
const { readInterval, readList } = require('./option-values');

/** Every id keeps the number of its offences in a byte. */
const MOST_LENGTHS = 255;

/** @returns {number[]} the lengths of the first block, the second and so on, in ms; none by default */
function readBlockFor(value) {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return [readInterval('blockFor', value)];
  const expected = `a number of ms > 0, or a list of 1 to ${MOST_LENGTHS} of them`;
  const own = readList('blockFor', value, expected);
  if (own.length > MOST_LENGTHS) throw optionRangeError('blockFor', expected, value);
  return own.map((ms, i) => readInterval(`blockFor[${i}]`, ms));
}

module.exports = { readBlockFor };
