// The options of a limiter and of its calls: checked once, in the form that the rest of lib trusts.
'use strict';

const { readAlgorithm, readCountBlocked, ALGORITHMS } = require('./algorithms');
const { durationToMicros } = require('./clock');
const { optionTypeError, rangeError, show, typeError, optionRangeError } = require('./errors');
const { IS_INNER, SETS_MAX } = require('./internal-methods');
const {
  readCount,
  readInterval,
  readList,
  readNumber,
  readObject,
  rejectUnknownOptions,
} = require('./option-values');
const { STORE_NAMES, readLocalRefusals, readStoreOptions } = require('./store-options');

// Loaded only for an error message.
const rejectedByLimiters = () => require('./middleware/options').REJECTED_BY_LIMITERS;

const DEFAULT_MAX_KEYS = 1_000_000;
const LIMIT_NAMES = ['interval', 'maxInInterval', 'minDifference'];
const LIMITER_NAMES = [
  ...LIMIT_NAMES,
  'limits',
  'countBlocked',
  'algorithm',
  'blockFor',
  'clock',
  'maxKeys',
  ...STORE_NAMES,
];

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
  return readList('limits', limits, 'a list of at least one limit').map((limit, i) => {
    const place = `limits[${i}]`;
    rejectUnknownOptions(readObject(place, limit), LIMIT_NAMES, { place });
    return readLimit(limit, `${place}.`);
  });
}

/** `limits` replaces the other three, which must be valid anyway. */
function readLimitsOf({ limits, interval, maxInInterval, minDifference }) {
  if (interval !== undefined) readInterval('interval', interval);
  if (maxInInterval !== undefined) readCount('maxInInterval', maxInInterval);
  readMinDifference('minDifference', minDifference);
  return readLimits(limits);
}

/** Checks the options of a limiter. In the result, minDifference is the largest one of `limits`. */
function readLimiterOptions(options) {
  readObject('options', options);
  rejectUnknownOptions(options, LIMITER_NAMES, { instead: rejectedByLimiters });
  const { clock, maxKeys } = options;
  const algorithm = readAlgorithm(options.algorithm);
  if (clock !== undefined && typeof clock !== 'function') {
    throw optionTypeError('clock', 'a function that returns ms', clock);
  }
  const countBlocked = readCountBlocked(options.countBlocked, algorithm);
  const blockFor = readBlockFor(options.blockFor);
  const limits = options.limits === undefined ? [readLimit(options, '')] : readLimitsOf(options);
  return {
    windows: limits.map(({ interval, maxInInterval }) => ({ interval, maxInInterval })),
    minDifference: limits.reduce((most, { minDifference }) => Math.max(most, minDifference), 0),
    countBlocked,
    algorithm,
    blockFor,
    isInner: options[IS_INNER] === true,
    setsMax: options[SETS_MAX] === true,
    maxKeys: maxKeys === undefined ? DEFAULT_MAX_KEYS : readCount('maxKeys', maxKeys),
    clock,
    ...readStoreOptions(options),
    localRefusals: readLocalRefusals(options.localRefusals, { countBlocked, blockFor }),
  };
}

/** Checks a cost; 1 by default. */
function readCostValue(cost, smallestMax) {
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

/** Checks the options of one attempt; returns its cost. */
function readCost(options, smallestMax) {
  if (options === undefined) return 1;
  const place = 'attempt options';
  rejectUnknownOptions(readObject(place, options), ['cost'], { place });
  return readCostValue(options.cost, smallestMax);
}

/** The store keeps the number of an id's blocks in a byte. */
const MOST_LENGTHS = 255;

/** @returns {number[]} the lengths of the first block, the second and so on, in ms; empty by default */
function readBlockFor(value) {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return [readInterval('blockFor', value)];
  const expected = `a number of ms > 0, or a list of 1 to ${MOST_LENGTHS} of them`;
  const own = readList('blockFor', value, expected);
  if (own.length > MOST_LENGTHS) throw optionRangeError('blockFor', expected, value);
  return own.map((ms, i) => readInterval(`blockFor[${i}]`, ms));
}

/** A checked policy in the form of the native side. */
function nativePolicy(checked) {
  const { windows, minDifference, countBlocked, algorithm, blockFor, setsMax, isWeighted } = checked;
  const flatWindows = windows.flatMap(({ interval, maxInInterval }) => [
    durationToMicros(interval),
    maxInInterval,
  ]);
  return {
    windows: new Float64Array(flatWindows),
    minDifference: durationToMicros(minDifference),
    countBlocked,
    algorithm: ALGORITHMS.indexOf(algorithm),
    blocks: new Float64Array(blockFor.map(durationToMicros)),
    setsMax,
    isWeighted,
  };
}

module.exports = {
  LIMITER_NAMES,
  nativePolicy,
  readCost,
  readCostValue,
  readLimiterOptions,
};
