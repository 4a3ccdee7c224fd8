// The options that all remote stores have in common.
'use strict';

const { optionTypeError } = require('../base/errors');
const { isWellFormed } = require('../base/ids');
const { LONGEST_TIMER } = require('../base/timers');
const { readInteger, readString } = require('./values');

const ON_ERROR = ['throw', 'allow', 'block', 'memory'];
const DEFAULT_COMMAND_TIMEOUT = 500;

/** In keys, a brace separates namespace and id, so that the keys of two namespaces differ. */
function readNamespace(namespace) {
  const expected = 'a non-empty string of well-formed Unicode without braces';
  const isGood = (string) => /^[^{}]+$/.test(string) && isWellFormed(string);
  return readString('namespace', namespace, expected, isGood);
}

function readOnError(onError = 'throw') {
  if (ON_ERROR.includes(onError)) return onError;
  const policies = ON_ERROR.map((policy) => `'${policy}'`).join(', ');
  throw optionTypeError('onError', `one of ${policies}`, onError);
}

function readCommandTimeout(name, commandTimeout = DEFAULT_COMMAND_TIMEOUT) {
  return readInteger(name, commandTimeout, 1, LONGEST_TIMER);
}

module.exports = {
  DEFAULT_COMMAND_TIMEOUT,
  readCommandTimeout,
  readNamespace,
  readOnError,
};
