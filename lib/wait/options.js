// The options of one call of wait().
'use strict';

const { optionTypeError } = require('../errors');
const { readCount, readNumber, readObject, rejectUnknownOptions } = require('../option-values');
const { readCostValue } = require('../options');

const NAMES = ['cost', 'signal', 'deadline', 'maxQueue'];
const PLACE = 'wait options';

/** From here on it is a time of day, as Date.now() gives it, and not a duration: 31 years. */
const LONGEST_DEADLINE = 1e12;

function isSignal(value) {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof value.aborted === 'boolean' &&
    typeof value.addEventListener === 'function' &&
    typeof value.removeEventListener === 'function'
  );
}

function readSignal(signal) {
  if (signal === undefined || isSignal(signal)) return signal;
  throw optionTypeError('signal', 'an AbortSignal', signal);
}

function readDeadline(deadline) {
  if (deadline === undefined) return undefined;
  const isInRange = (ms) => ms >= 0 && ms < LONGEST_DEADLINE;
  const expected = 'a number of ms from the call on, from 0 to below 1e12';
  return readNumber('deadline', deadline, expected, isInRange);
}

/**
 * @returns {{ cost: number, signal?: AbortSignal, deadline?: number, maxQueue: number }} deadline in ms
 *   from the call on
 */
function readWaitOptions(options = {}, smallestMax) {
  rejectUnknownOptions(readObject(PLACE, options), NAMES, { place: PLACE });
  const { cost, signal, deadline, maxQueue } = options;
  return {
    cost: readCostValue(cost, smallestMax),
    signal: readSignal(signal),
    deadline: readDeadline(deadline),
    maxQueue: maxQueue === undefined ? Infinity : readCount('maxQueue', maxQueue),
  };
}

module.exports = { readWaitOptions };
