// Every error rollgate throws is made here: a standard class, a stable code, and a message that says
// what was expected and what came. docs/errors.md has a section for each code.
'use strict';

const { inspect } = require('node:util');

const LONGEST_SHOWN = 60;

/** How a rejected value is shown in a message: short, and never by running the value's own code. */
function show(value) {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'string') {
    const text = withoutCredentials(value);
    const cut = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}...` : text;
    return `${JSON.stringify(cut)} (string)`;
  }
  if (typeof value === 'bigint' || typeof value === 'symbol') {
    const text = inspect(value);
    return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}...` : text;
  }
  if (typeof value !== 'object' || value === null) return String(value);
  return isArray(value) ? 'an array' : 'an object';
}

/** A URL may have a password in it, wherever it was put by mistake. */
function withoutCredentials(text) {
  return text.replace(/:\/\/.*@/s, '://***@');
}

/** Array.isArray throws on a revoked proxy. */
function isArray(value) {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

function withCode(error, code) {
  error.code = code;
  return error;
}

/** A TypeError with a code. */
function typeError(code, message) {
  return withCode(new TypeError(message), code);
}

/** A RangeError with a code. */
function rangeError(code, message) {
  return withCode(new RangeError(message), code);
}

/** An Error with a code and, when given, the error that led to it. */
function failure(code, message, cause) {
  return withCode(new Error(message, cause === undefined ? undefined : { cause }), code);
}

/** An option of the wrong type, missing, or one that does not go with the others. */
function optionTypeError(name, expected, value) {
  return typeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected ${expected}, got ${show(value)}`,
  );
}

/** An option of the right type whose value is out of range. */
function optionRangeError(name, expected, value) {
  return rangeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected ${expected}, got ${show(value)}`,
  );
}

/** An error reply of Redis as the cause of another error. */
function replyError(message) {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

module.exports = {
  show,
  typeError,
  rangeError,
  failure,
  optionTypeError,
  optionRangeError,
  replyError,
};
