// The terms of one call: limits and a calendar of its own, checked.
'use strict';

const { quote, rangeError, show, typeError } = require('../base/errors');
const { readCalendars } = require('../options/calendars');
const { costAt } = require('../options/costs');
const { hintAt, isPlainObject } = require('../options/values');

const MOST = Number.MAX_SAFE_INTEGER;

/**
 * @typedef {object} Terms
 * @property {Float64Array | undefined} limits the maximum of each window: the limiter's own in those that the call does
 *   not name
 * @property {Float64Array | undefined} maxima the same with Infinity, for windows in which the call is not counted
 * @property {(Calendar | undefined)[] | undefined} calendars one for each calendar window
 */

/**
 * Reads `limits` and `calendar` of a call.
 *
 * @param {object} checked options of the limiter
 * @param {number} [most] Infinity, if that is allowed as a limit
 * @returns {Terms | undefined} undefined if the call has neither
 * @throws TypeError, RangeError ERR_ROLLGATE_LIMIT, ERR_ROLLGATE_OPTION
 */
function readTerms({ limits, calendar }, { windows, plans, lease }, most = MOST) {
  if (limits !== undefined && lease !== undefined) {
    throw typeError('ERR_ROLLGATE_OPTION', "limits: conflicts with the limiter's 'lease'");
  }
  if (calendar === undefined) return readPlan(limits, windows, plans, most);
  const plan = readPlan(limits, windows, plans, most);
  const calendars = readCalendars(calendar, windows);
  return { limits: plan?.limits, maxima: plan?.maxima, calendars };
}

/** The Terms of these limits alone; undefined without. */
function readPlan(limits, windows, plans, most) {
  if (limits === undefined) return undefined;
  const known = typeof limits === 'number' && limits <= most ? plans.known(limits) : undefined;
  return known ?? plans.find(readMaxima(limits, windows, plans, most));
}

/** An array that belongs to `plans`. */
function readMaxima(given, windows, { maxima }, most) {
  const isForAll =
    typeof given === 'number' && (windows.length === 1 || (most !== MOST && FOR_ALL.has(given)));
  if (!isForAll) assertNames(given, windows);
  for (let i = 0; i < windows.length; i++) {
    const { name, maxInInterval } = windows[i];
    if (isForAll) maxima[i] = readMax(given, most);
    else maxima[i] = hasEntry(given, name) ? readMax(given[name], most, name) : maxInInterval;
  }
  return maxima;
}

/** What `limit` of the middleware may give for all windows. */
const FOR_ALL = new Set([0, Number.POSITIVE_INFINITY]);

/** A value of undefined counts as left out. */
const hasEntry = (given, name) =>
  name !== undefined && Object.hasOwn(given, name) && given[name] !== undefined;

/** Counts stop at MAX_SAFE_INTEGER, so a higher limit is equivalent to it. */
function readMax(value, most, name) {
  // + 0 makes a 0 of -0.
  if (Number.isInteger(value) && value >= 0) return value < MOST ? value + 0 : MOST;
  if (value === most) return value;
  const place = name === undefined ? 'limits' : `limits of ${quote(name)}`;
  throw limitError(place, most === MOST ? 'an integer >= 0' : 'an integer >= 0 or Infinity', value);
}

/** A mistyped name would leave a window with another limit than was meant. */
function assertNames(given, windows) {
  const isObject = isPlainObject(given);
  let isEmpty = true;
  let unknown;
  for (const name of isObject ? Object.keys(given) : []) {
    if (given[name] !== undefined) isEmpty = false;
    if (!windows.some((window) => window.name === name)) unknown = name;
  }
  if (!isEmpty && unknown === undefined) return;
  const names = windows.flatMap(({ name }) => (name === undefined ? [] : [name]));
  if (names.length === 0) throw limitError('limits', expectedUnnamed(windows), given);
  const expected = `integers >= 0 by name of a limit (${names.join(', ')})`;
  if (!isObject) throw limitError('limits', expected, given);
  const came = isEmpty ? 'an empty object' : `${show(unknown)}${hintAt(unknown, names)}`;
  throw typeError('ERR_ROLLGATE_LIMIT', `limits: expected ${expected}, got ${came}`);
}

/** For windows without names. */
const expectedUnnamed = ({ length }) =>
  length === 1
    ? 'an integer >= 0'
    : `limits by name, and the limiter has ${length} without names: give each a name`;

function limitError(place, expected, value) {
  const makeError = typeof value === 'number' ? rangeError : typeError;
  return makeError('ERR_ROLLGATE_LIMIT', `${place}: expected ${expected}, got ${show(value)}`);
}

/** Whether under these terms is refused whatever is refused under the others. */
function areAtMost(terms, others, windows) {
  if (terms === others) return true;
  return windows.every(({ maxInInterval, calendar }, i) => {
    const limit = terms?.limits?.[i] ?? maxInInterval;
    const other = others?.limits?.[i] ?? maxInInterval;
    return (
      limit <= other && (terms?.calendars?.[i] ?? calendar) === (others?.calendars?.[i] ?? calendar)
    );
  });
}

/** Whether the cost can never pass, only because of limits of 0. */
function isClosed(cost, { maxima = [] }) {
  const isAbove = (limit, i) => costAt(cost, i) > limit;
  return maxima.some(isAbove) && !maxima.some((limit, i) => limit > 0 && isAbove(limit, i));
}

/**
 * How long a limit of 0 refuses, in ms. No better time to retry is known, so it is the longest window, or the first
 * block if that is longer.
 *
 * @param {number} at us
 */
function closedFor(at, { calendars }, { windows, blockFor: [block = 0] }) {
  const lengths = windows.map(({ interval, calendar }, i) => {
    if (calendar === undefined) return interval;
    return ((calendars?.[i] ?? calendar).windowAt(at / 1000).end * 1000 - at) / 1000;
  });
  return Math.ceil(Math.max(block, ...lengths));
}

module.exports = { areAtMost, closedFor, isClosed, readTerms };
