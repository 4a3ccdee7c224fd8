// The option blockFor: how long an id is refused after a refusal, offence by offence.
'use strict';

const { optionRangeError, optionTypeError } = require('./errors');
const { readInterval } = require('./option-values');

/** Every id keeps the number of its offences in a byte. */
const MOST_LENGTHS = 255;

/** @returns {number[]} the lengths of the first block, the second and so on, in ms; none by default */
function readBlockFor(value) {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return [readInterval('blockFor', value)];
  // A copy first: only what is counted here may reach the store.
  const own = Array.from(value);
  const expected = `a number of ms > 0, or a list of 1 to ${MOST_LENGTHS} of them`;
  if (own.length === 0) throw optionTypeError('blockFor', expected, value);
  if (own.length > MOST_LENGTHS) throw optionRangeError('blockFor', expected, value);
  return own.map((ms, i) => readInterval(`blockFor[${i}]`, ms));
}

module.exports = { readBlockFor };
