// The names of the policies: one for each window, as draft 8, draft 10 and problem details need them.
'use strict';

const { optionRangeError, optionTypeError } = require('../../errors');

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const PRINTABLE = /^[\x20-\x7e]+$/;
const NEEDS_ESCAPE = /["\\]/;

/**
 * `identifier` is a text that the user chose, or undefined for the default: '100-in-15min'. With several
 * windows the name of each also tells which window it is: names must differ.
 *
 * @param {{ interval: number, maxInInterval: number }[]} windows
 * @returns {string[]}
 */
function policyNames(windows, identifier) {
  if (identifier === undefined) return windows.map(defaultName);
  if (windows.length === 1) return [identifier];
  return windows.map((window) => `${identifier}-${defaultName(window)}`);
}

/** In the words of express-rate-limit. */
function defaultName({ interval, maxInInterval }) {
  return `${maxInInterval}-in-${duration(interval)}`;
}

function duration(ms) {
  if (ms < MINUTE_MS) return `${ms / SECOND_MS}sec`;
  if (ms < HOUR_MS) return `${ms / MINUTE_MS}min`;
  if (ms < DAY_MS) return withPlural(ms / HOUR_MS, 'hr');
  return withPlural(ms / DAY_MS, 'day');
}

function withPlural(count, unit) {
  return `${count}${unit}${count > 1 ? 's' : ''}`;
}

/** What can stand in a header as a string: RFC 9651, section 3.3.3. */
function readIdentifier(value) {
  const expected = 'a non-empty string of printable ASCII characters';
  if (typeof value !== 'string') throw optionTypeError('identifier', expected, value);
  if (!PRINTABLE.test(value)) throw optionRangeError('identifier', expected, value);
  return value;
}

/** A name as the header has it. Most need no escapes, and looking is cheaper than replacing. */
function quoted(name) {
  return NEEDS_ESCAPE.test(name) ? `"${name.replace(/["\\]/g, '\\$&')}"` : `"${name}"`;
}

module.exports = { policyNames, quoted, readIdentifier };
