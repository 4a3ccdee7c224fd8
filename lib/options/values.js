// Checks of single options, and hints at the name that a mistyped one was meant to be.
'use strict';

const {
  optionError,
  optionRangeError,
  optionSecretError,
  optionTypeError,
  quote,
  typeError,
} = require('../base/errors');

/**
 * Throws for an unknown option and names the nearest known ones; all of them if none is near. A value of `undefined` counts as left out.
 *
 * @param {object} [details]
 * @param {object | (() => object)} [details.instead] messages for certain unknown names, by name
 * @param {string} [details.place] where the options are nested
 */
function rejectUnknownOptions(options, knownNames, { instead = {}, place } = {}) {
  for (const name of Object.keys(options)) {
    if (knownNames.includes(name) || options[name] === undefined) continue;
    const messages = typeof instead === 'function' ? instead() : instead;
    if (Object.hasOwn(messages, name)) throw optionError(name, messages[name]);
    const shown = place === undefined ? quote(name) : `${quote(name)} in ${place}`;
    const hint = hintAt(name, knownNames) || `: expected one of ${knownNames.join(', ')}`;
    throw typeError('ERR_ROLLGATE_OPTION', `unknown option ${shown}${hint}`);
  }
}

/** `undefined` counts as left out, so that optional configuration can be passed on. */
function withoutUndefined(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** A copy, because the user may change the array later. */
function readList(name, value, expected) {
  if (!Array.isArray(value)) throw optionTypeError(name, expected, value);
  const own = Array.from(value);
  if (own.length > 0) return own;
  throw optionError(name, `expected ${expected}, got an empty list`);
}

function readObject(name, value, expected = 'an object') {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw optionTypeError(name, expected, value);
  }
  return value;
}

/** What `readers` give, by name, of the options in `place`; what is left out, or empty, is missing. */
function readEach(place, options, readers) {
  readObject(place, options);
  const entries = Object.entries(readers).map(([name, read]) => {
    const value = options[name];
    return [name, value === undefined ? undefined : read(`${place}.${name}`, value)];
  });
  return withoutUndefined(Object.fromEntries(entries));
}

/** Whether a value is an object, or a function, with these methods. */
function hasMethods(value, ...methods) {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
  return isObject && methods.every((method) => typeof value[method] === 'function');
}

/** A function that reads values of one primitive type. */
function createReader(type) {
  return (name, value, expected, isInRange) => {
    if (typeof value !== type) throw optionTypeError(name, expected, value);
    if (!isInRange(value)) throw optionRangeError(name, expected, value);
    return value;
  };
}

const readNumber = createReader('number');
const readString = createReader('string');

/** A reader of strings, as for readEach. */
function stringReader(expected, isGood) {
  return (name, value) => readString(name, value, expected, isGood);
}

const readNonEmpty = stringReader('a non-empty string', (string) => string !== '');

/** An empty one counts as missing. */
function readSecret(name, value) {
  if (typeof value === 'string') return value || undefined;
  throw optionSecretError(name, 'a string', value);
}

function readInteger(name, value, least, most, where = '') {
  const isInRange = (n) => Number.isInteger(n) && n >= least && n <= most;
  return readNumber(name, value, `an integer from ${least} to ${most}${where}`, isInRange);
}

function readInterval(name, value) {
  const isInRange = (ms) => Number.isFinite(ms) && ms > 0;
  return readNumber(name, value, 'a finite number of ms > 0', isInRange);
}

/** Counts stop at MAX_SAFE_INTEGER, so a higher limit is equivalent to it. */
function readCount(name, value) {
  const isInRange = (n) => Number.isInteger(n) && n >= 1;
  return Math.min(readNumber(name, value, 'an integer >= 1', isInRange), Number.MAX_SAFE_INTEGER);
}

function readFunction(name, value) {
  if (typeof value !== 'function') throw optionTypeError(name, 'a function', value);
  return value;
}

const DEFAULT_MAX_KEYS = 1_000_000;

function readMaxKeys(maxKeys) {
  return maxKeys === undefined ? DEFAULT_MAX_KEYS : readCount('maxKeys', maxKeys);
}

function readClock(clock) {
  if (clock === undefined || typeof clock === 'function') return clock;
  throw optionTypeError('clock', 'a function that returns ms', clock);
}

function readBoolean(name, value, byDefault) {
  if (value === undefined) return byDefault;
  if (typeof value !== 'boolean') throw optionTypeError(name, 'true or false', value);
  return value;
}

/** How many characters to insert, delete, replace, or swap with their neighbour. */
function distance(a, b) {
  let beforeLast;
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(last[j] + 1, row[j - 1] + 1, replaced));
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length];
}

const LONGEST_COMPARED = 50;
const SHORTEST_BEGINNING = 3;

/** Names in other packages. */
const SYNONYMS = {
  windowms: 'interval',
  window: 'interval',
  duration: 'interval',
  points: 'maxInInterval',
  reservoir: 'maxInInterval',
  tokensperinterval: 'maxInInterval',
  mintime: 'minDifference',
  blockduration: 'blockFor',
  prefix: 'namespace',
  keyprefix: 'namespace',
  storeclient: 'redis',
  insurancelimiter: 'onError',
  key_func: 'keyGenerator',
  timeout: 'deadline',
  concurrency: 'max',
  maxconcurrent: 'max',
  headers: 'legacyHeaders',
};

/** How many characters of a name may be wrong: a third, at least one. */
function mostWrong(a, b) {
  return Math.max(1, Math.floor(Math.max(a.length, b.length) / 3));
}

const MOST_HINTS = 3;

/**
 * The known names that were probably meant by `name`, ignoring case, the nearest first. An equal name stands alone,
 * then names that begin with it.
 */
function namesNear(name, knownNames) {
  const wanted = name.slice(0, LONGEST_COMPARED).toLowerCase();
  const same = knownNames.find((known) => known.toLowerCase() === wanted) ?? SYNONYMS[wanted];
  if (knownNames.includes(same)) return [same];
  const begun = knownNames.filter((known) => known.toLowerCase().startsWith(wanted));
  if (begun.length > 0 && wanted.length >= SHORTEST_BEGINNING) return begun.slice(0, MOST_HINTS);
  return knownNames
    .map((known) => ({ known, steps: distance(wanted, known.toLowerCase()) }))
    .filter(({ known, steps }) => steps <= mostWrong(wanted, known))
    .sort((a, b) => a.steps - b.steps)
    .slice(0, MOST_HINTS)
    .map(({ known }) => known);
}

/** The end of a message about an unknown name; empty if no known name is near. */
function hintAt(name, knownNames) {
  const near = namesNear(name, knownNames).map((known) => `'${known}'`);
  if (near.length === 0) return '';
  const [last, ...others] = near.reverse();
  const all = others.length > 0 ? `${others.reverse().join(', ')} or ${last}` : last;
  return `; did you mean ${all}?`;
}

/** Whether it is an object without a class. */
function isPlainObject(value) {
  if (typeof value !== 'object' || value === null) return false;
  try {
    const prototype = Object.getPrototypeOf(value);
    return prototype === null || Object.getPrototypeOf(prototype) === null;
  } catch {
    return false; // a revoked proxy
  }
}

module.exports = {
  hintAt,
  isPlainObject,
  hasMethods,
  readBoolean,
  readClock,
  readCount,
  readEach,
  readFunction,
  readInteger,
  readInterval,
  readList,
  readMaxKeys,
  readNonEmpty,
  readNumber,
  readObject,
  readSecret,
  readString,
  rejectUnknownOptions,
  stringReader,
  withoutUndefined,
};
