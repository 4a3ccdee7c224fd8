// What all remote stores are told in the same words: namespace, onError and commandTimeout.
'use strict';

const { optionRangeError, optionTypeError } = require('../errors');
const { readNumber } = require('../option-values');
const { isWellFormed } = require('../ids');

const ON_ERROR = ['throw', 'allow', 'block', 'memory'];
/** Node's timers cannot wait longer. */
const LONGEST_TIMER = 2 ** 31 - 1;
const DEFAULT_COMMAND_TIMEOUT = 500;

/** The braces are between a namespace and an id, so that two namespaces never meet. */
function readNamespace(namespace) {
  const expected = 'a non-empty string of well-formed Unicode without braces';
  if (typeof namespace !== 'string') throw optionTypeError('namespace', expected, namespace);
  if (namespace === '' || /[{}]/.test(namespace) || !isWellFormed(namespace)) {
    throw optionRangeError('namespace', expected, namespace);
  }
  return namespace;
}

function readOnError(onError = 'throw') {
  if (ON_ERROR.includes(onError)) return onError;
  const policies = ON_ERROR.map((policy) => `'${policy}'`).join(', ');
  throw optionTypeError('onError', `one of ${policies}`, onError);
}

function readCommandTimeout(name, commandTimeout = DEFAULT_COMMAND_TIMEOUT) {
  const isInRange = (n) => Number.isInteger(n) && n >= 1 && n <= LONGEST_TIMER;
  return readNumber(name, commandTimeout, `an integer from 1 to ${LONGEST_TIMER}`, isInRange);
}

/** Checks the options of remote stores for a limiter in memory, so that a wrong one fails on every host. */
function checkUnused({ namespace, onError }) {
  if (namespace !== undefined) readNamespace(namespace);
  readOnError(onError);
}

module.exports = { LONGEST_TIMER, checkUnused, readCommandTimeout, readNamespace, readOnError };
