// What an attempt costs, and what it came to: checked, in the form that stores take, and in the user's form.
'use strict';

const { rangeError, show, typeError } = require('../base/errors');
const { hintAt, isPlainObject } = require('./values');

/**
 * A *checked cost* is a number, the cost in every window; or, only with named limits, a Float64Array with one cost per
 * window.
 *
 * @typedef {number | Float64Array} CheckedCost
 */

const CODE = 'ERR_ROLLGATE_COST';

const MOST = Number.MAX_SAFE_INTEGER;

const isFrom = (least, most, n) => Number.isInteger(n) && n >= least && n <= most;

function costError(place, expected, value) {
  const makeError = typeof value === 'number' ? rangeError : typeError;
  return makeError(CODE, `${place}: expected ${expected}, got ${show(value)}`);
}

/** The most that a number as cost may be. */
function smallestMax(windows) {
  return windows.reduce((least, { maxInInterval }) => Math.min(least, maxInInterval), Infinity);
}

/** The most that `record` takes at once. */
const MOST_RECORDED = 2 ** 31 - 1;

/**
 * Checks the cost of an attempt; 1 by default.
 *
 * @param {{ smallestMax: number, windows: object[], isWeighted: boolean }} checked of readLimiterOptions
 * @param {number | object} [bound] the most that it may be in a window: by default the window's maximum; a number; or
 *   limits by name, which replace maxima: a cost above such a limit is valid
 * @returns {CheckedCost}
 * @throws TypeError, RangeError ERR_ROLLGATE_COST
 */
function readCost(cost, checked, bound) {
  if (cost === undefined) return 1;
  const { windows, isWeighted, lease } = checked;
  if (isWeighted && isPlainObject(cost) && lease === undefined)
    return readCosts(cost, windows, bound);
  const most = mostOf(checked, bound);
  if (typeof cost === 'number' && isFrom(1, most, cost)) return cost;
  const why = bound === undefined ? ', the smallest maxInInterval' : '';
  const ofNumber = `an integer from 1 to ${most}${why}`;
  let byName = '';
  if (isWeighted) {
    byName =
      lease === undefined
        ? ', or costs by name of a limit'
        : " (costs by name do not go with 'lease')";
  }
  throw costError('cost', ofNumber + byName, cost);
}

function mostOf({ smallestMax: most, windows }, bound) {
  if (bound === undefined) return most;
  return windows.reduce((least, window) => Math.min(least, boundIn(window, bound)), MOST);
}

function boundIn({ name, maxInInterval }, bound) {
  if (typeof bound === 'number') return bound;
  const isReplaced = bound !== undefined && name !== undefined && Object.hasOwn(bound, name);
  return isReplaced ? MOST : maxInInterval;
}

function readCosts(given, windows, bound) {
  assertNames('cost', given, windows);
  const costs = new Float64Array(windows.length);
  let sum = 0;
  for (let i = 0; i < windows.length; i++) {
    costs[i] = readEntry('cost', given, windows[i], boundIn(windows[i], bound)) ?? 1;
    sum += costs[i];
  }
  if (sum > 0) return costs;
  throw rangeError(
    CODE,
    'cost: expected a cost above 0 for at least one limit, got an object of zeros',
  );
}

/** The entry for a window, undefined without one. A value of undefined is an error: it would be a low cost. */
function readEntry(place, given, { name, maxInInterval }, most) {
  if (name === undefined || !Object.hasOwn(given, name)) return undefined;
  const entry = given[name];
  // + 0 makes a 0 of -0.
  if (typeof entry === 'number' && isFrom(0, most, entry)) return entry + 0;
  const expected = `an integer from 0 to ${most}${most === maxInInterval ? ', its maxInInterval' : ''}`;
  throw costError(`${place} of ${show(name)}`, expected, entry);
}

/** A mistyped name would leave a window with less than was meant. */
function assertNames(place, given, windows) {
  for (const name of Object.keys(given)) {
    if (!hasName(windows, name)) throw nameError(place, name, windows);
  }
}

function hasName(windows, name) {
  for (let i = 0; i < windows.length; i++) if (windows[i].name === name) return true;
  return false;
}

function nameError(place, name, windows) {
  const names = windows.flatMap((window) => (window.name === undefined ? [] : [window.name]));
  const expected = `names of limits (${names.join(', ')})`;
  return typeError(CODE, `${place}: expected ${expected}, got ${show(name)}${hintAt(name, names)}`);
}

/**
 * Checks what an attempt of this checked cost came to: a number if the cost was one, else 0 or an object. Windows
 * without an entry keep their cost. With `isNumber`, the cost was a number in all windows that have one.
 *
 * @returns {CheckedCost}
 * @throws TypeError, RangeError ERR_ROLLGATE_COST
 */
function readActual(actual, { cost, isNumber = typeof cost === 'number' }, windows) {
  if (actual === 0) return 0;
  if (isNumber) {
    if (typeof actual === 'number' && isFrom(1, MOST, actual)) {
      return typeof cost === 'number' ? actual : cost.map((reserved) => reserved && actual);
    }
    throw costError(
      'actual',
      `an integer from 0 to ${MOST}, because the cost was a number`,
      actual,
    );
  }
  if (!isPlainObject(actual)) {
    const expected = '0, or amounts by name of a limit, because the cost had them';
    throw typeError(CODE, `actual: expected ${expected}, got ${show(actual)}`);
  }
  assertNames('actual', actual, windows);
  return cost.map((reserved, i) => readEntry('actual', actual, windows[i], MOST) ?? reserved);
}

/** Whether no window has a lower cost than in `other`. */
function isAtLeast(cost, other) {
  if (typeof cost === 'number' && typeof other === 'number') return cost >= other;
  const { length } = typeof cost === 'number' ? other : cost;
  for (let i = 0; i < length; i++) if (costAt(cost, i) < costAt(other, i)) return false;
  return true;
}

/** The checked cost in the window with this index. */
function costAt(cost, i) {
  return typeof cost === 'number' ? cost : cost[i];
}

/** A checked cost in the user's form. */
function costToUser(cost, windows) {
  if (typeof cost === 'number') return cost;
  const entries = windows.map(({ name }, i) => [name, cost[i]]);
  return Object.fromEntries(entries.filter(([name]) => name !== undefined));
}

/** Whether it can be a cost in the user's form, of some limiter. */
function isCost(value) {
  if (typeof value === 'number') return isFrom(1, MOST, value);
  return isPlainObject(value) && wrongEntryOf(value) === undefined;
}

/** The first [name, cost] of an object that can be no cost in a window. */
function wrongEntryOf(value) {
  return Object.entries(value).find(([, cost]) => !isFrom(0, MOST, cost));
}

/** The amount that a valid user cost charges to the window of this name. */
function costIn(cost, name) {
  if (typeof cost === 'number') return cost;
  return name !== undefined && Object.hasOwn(cost, name) ? cost[name] : 1;
}

module.exports = {
  MOST,
  MOST_RECORDED,
  costAt,
  costError,
  costIn,
  costToUser,
  isAtLeast,
  isCost,
  wrongEntryOf,
  readActual,
  readCost,
  smallestMax,
};
