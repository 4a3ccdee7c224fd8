// Checks what users pass in, once, and hands on what the rest can trust.
'use strict';

const { optionRangeError, optionTypeError, rangeError, show, typeError } = require('./errors');
const { nearestName } = require('./nearest-name');

const DEFAULT_MAX_KEYS = 1_000_000;
const ALGORITHMS = ['sliding-window-log'];
const LIMIT_NAMES = ['interval', 'maxInInterval', 'minDifference'];
const LIMITER_NAMES = [...LIMIT_NAMES, 'limits', 'countBlocked', 'algorithm', 'clock', 'maxKeys'];

/** Options of stores and algorithms that this version does not have. */
const NOT_YET = ['blockFor', 'client', 'kv', 'namespace', 'redis', 'shared'];

/**
 * Refuses options that do not exist, naming the nearest one that does, and those that exist in other
 * versions (`notYet`): to ignore them would be unkind. `undefined` is as good as left out. `place` is
 * where the options stand, if not at the top.
 */
function rejectUnknownOptions(options, knownNames, { notYet = [], place } = {}) {
  for (const name of Object.keys(options)) {
    if (knownNames.includes(name) || options[name] === undefined) continue;
    if (notYet.includes(name)) {
      throw typeError('ERR_ROLLGATE_OPTION', `option '${name}': not available in this version`);
    }
    const shown = place === undefined ? show(name) : `${show(name)} in ${place}`;
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `unknown option ${shown}: expected one of ${knownNames.join(', ')}; ` +
        `did you mean '${nearestName(name, knownNames)}'?`,
    );
  }
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

function readMinDifference(name, value) {
  if (value === undefined) return 0;
  const isInRange = (ms) => Number.isFinite(ms) && ms >= 0;
  return readNumber(name, value, 'a finite number of ms >= 0', isInRange);
}

function readLimit(limit, prefix) {
  return {
    interval: readInterval(`${prefix}interval`, limit.interval),
    maxInInterval: readCount(`${prefix}maxInInterval`, limit.maxInInterval),
    minDifference: readMinDifference(`${prefix}minDifference`, limit.minDifference),
  };
}

function readLimits(limits) {
  // A copy first: only what is counted here may reach the store.
  const own = Array.isArray(limits) ? Array.from(limits) : [];
  if (own.length === 0) throw optionTypeError('limits', 'a list of at least one limit', limits);
  return own.map((limit, i) => {
    const place = `limits[${i}]`;
    rejectUnknownOptions(readObject(place, limit), LIMIT_NAMES, { place });
    return readLimit(limit, `${place}.`);
  });
}

/** `limits` replaces the other three, which must make sense all the same. */
function readLimitsOf({ limits, interval, maxInInterval, minDifference }) {
  if (interval !== undefined) readInterval('interval', interval);
  if (maxInInterval !== undefined) readCount('maxInInterval', maxInInterval);
  readMinDifference('minDifference', minDifference);
  return readLimits(limits);
}

function readBoolean(name, value, byDefault) {
  if (value === undefined) return byDefault;
  if (typeof value !== 'boolean') throw optionTypeError(name, 'true or false', value);
  return value;
}

/**
 * Checks the options of a limiter.
 *
 * @returns {{ windows: { interval: number, maxInInterval: number }[], minDifference: number,
 *   countBlocked: boolean, maxKeys: number, clock: (() => number) | undefined }} durations in ms;
 *   several limits' least differences come to the largest of them
 */
function readLimiterOptions(options) {
  readObject('options', options);
  rejectUnknownOptions(options, LIMITER_NAMES, { notYet: NOT_YET });
  const { algorithm, clock, maxKeys } = options;
  if (algorithm !== undefined && !ALGORITHMS.includes(algorithm)) {
    throw optionTypeError('algorithm', `one of ${ALGORITHMS.join(', ')}`, algorithm);
  }
  if (clock !== undefined && typeof clock !== 'function') {
    throw optionTypeError('clock', 'a function that returns ms', clock);
  }
  const limits = options.limits === undefined ? [readLimit(options, '')] : readLimitsOf(options);
  return {
    windows: limits.map(({ interval, maxInInterval }) => ({ interval, maxInInterval })),
    minDifference: limits.reduce((most, { minDifference }) => Math.max(most, minDifference), 0),
    countBlocked: readBoolean('countBlocked', options.countBlocked, true),
    maxKeys: maxKeys === undefined ? DEFAULT_MAX_KEYS : readCount('maxKeys', maxKeys),
    clock,
  };
}

/** Checks the options of one attempt; returns its cost. */
function readCost(options, smallestMax) {
  if (options === undefined) return 1;
  const place = 'attempt options';
  rejectUnknownOptions(readObject(place, options), ['cost'], { place });
  const { cost } = options;
  if (cost === undefined) return 1;
  const expected = `an integer from 1 to ${smallestMax}, the smallest maxInInterval`;
  if (typeof cost !== 'number') {
    throw typeError('ERR_ROLLGATE_COST', `cost: expected ${expected}, got ${show(cost)}`);
  }
  if (!Number.isInteger(cost) || cost < 1 || cost > smallestMax) {
    throw rangeError('ERR_ROLLGATE_COST', `cost: expected ${expected}, got ${cost}`);
  }
  return cost;
}

module.exports = {
  LIMITER_NAMES,
  NOT_YET,
  readCost,
  readInterval,
  readLimiterOptions,
  rejectUnknownOptions,
};
