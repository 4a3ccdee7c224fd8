// Checks of single options: what is wrong is refused with its name, what was expected and what came.
'use strict';

const { optionRangeError, optionTypeError, show, typeError } = require('./errors');
const { hintAt } = require('./nearest-name');

/**
 * Throws for an unknown option and names the nearest known one. A value of `undefined` counts as left out.
 *
 * @param {object} [details]
 * @param {object | (() => object)} [details.instead] messages for certain unknown names, by name
 * @param {string} [details.place] where the options are nested
 */
function rejectUnknownOptions(options, knownNames, { instead = {}, place } = {}) {
  for (const name of Object.keys(options)) {
    if (knownNames.includes(name) || options[name] === undefined) continue;
    const messages = typeof instead === 'function' ? instead() : instead;
    if (Object.hasOwn(messages, name)) {
      throw typeError('ERR_ROLLGATE_OPTION', `option '${name}': ${messages[name]}`);
    }
    const shown = place === undefined ? show(name) : `${show(name)} in ${place}`;
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `unknown option ${shown}: expected one of ${knownNames.join(', ')}${hintAt(name, knownNames)}`,
    );
  }
}

/** `undefined` is the same as leaving the option out, so that optional configuration can be passed on. */
function withoutUndefined(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** A copy, as only what is counted here may be used later. */
function readList(name, value, expected) {
  if (!Array.isArray(value)) throw optionTypeError(name, expected, value);
  const own = Array.from(value);
  if (own.length > 0) return own;
  throw typeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected ${expected}, got an empty list`,
  );
}

function readObject(name, value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw optionTypeError(name, 'an object', value);
  }
  return value;
}

function readNumber(name, value, expected, isInRange) {
  if (typeof value !== 'number') throw optionTypeError(name, expected, value);
  if (!isInRange(value)) throw optionRangeError(name, expected, value);
  return value;
}

function readInterval(name, value) {
  const isInRange = (ms) => Number.isFinite(ms) && ms > 0;
  return readNumber(name, value, 'a finite number of ms > 0', isInRange);
}

/** Beyond MAX_SAFE_INTEGER nothing is countable: such a limit is never reached, like that one. */
function readCount(name, value) {
  const isInRange = (n) => Number.isInteger(n) && n >= 1;
  return Math.min(readNumber(name, value, 'an integer >= 1', isInRange), Number.MAX_SAFE_INTEGER);
}

function readBoolean(name, value, byDefault) {
  if (value === undefined) return byDefault;
  if (typeof value !== 'boolean') throw optionTypeError(name, 'true or false', value);
  return value;
}

module.exports = {
  readBoolean,
  readCount,
  readInterval,
  readList,
  readNumber,
  readObject,
  rejectUnknownOptions,
  withoutUndefined,
};
