// Makes the errors that rollgate throws: a standard class, a stable code, and a message that says what was
// expected and what came. docs/errors.md has a section for each code.
'use strict';

const LONGEST_SHOWN = 60;

/** A name of the user's in quotes: short, and without a password. */
function quote(string) {
  return JSON.stringify(shorten(withoutCredentials(string)));
}

/** How a rejected value is shown in a message: short, and never by running the value's own code. */
function show(value) {
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'string') return `${quote(value)} (string)`;
  if (typeof value === 'bigint') return shorten(`${value}n`);
  if (typeof value === 'symbol') return shorten(String(value));
  if (typeof value !== 'object' || value === null) return String(value);
  return isArray(value) ? 'an array' : 'an object';
}

function shorten(string) {
  return string.length > LONGEST_SHOWN ? `${string.slice(0, LONGEST_SHOWN)}...` : string;
}

/** Any option may hold a URL with a password by mistake. */
function withoutCredentials(string) {
  return string.replace(/:\/\/.*@/s, '://***@');
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

/** The Error of a failure that has one, or creates it with `toError()`: see redis/failures.js. */
function errorOfFailure(failed) {
  return failed.toError === undefined ? failed : failed.toError();
}

/** An option in conflict with another, or wrong for another reason that its value does not show. */
function optionError(name, what) {
  return typeError('ERR_ROLLGATE_OPTION', `option '${name}': ${what}`);
}

/** An option of the wrong type, or missing. */
function optionTypeError(name, expected, value) {
  return optionError(name, `expected ${expected}, got ${show(value)}`);
}

/** The same for a value that may be, or contain, a secret. */
function optionSecretError(name, expected, value) {
  return optionError(name, `expected ${expected}, got a value of type ${typeof value}`);
}

/** An option of the right type whose value is out of range. */
function optionRangeError(name, expected, value) {
  return rangeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected ${expected}, got ${show(value)}`,
  );
}

/** The names of the calls of inAdapter that are running: one adapter may be made of another. */
const adapters = [];

/** What `read()` returns. Its errors about options begin with the name of the outermost adapter, which the user called. */
function inAdapter(name, read) {
  adapters.push(name);
  try {
    return read();
  } catch (error) {
    if (adapters.length > 1 || error?.code !== 'ERR_ROLLGATE_OPTION') throw error;
    const makeError = error instanceof RangeError ? rangeError : typeError;
    throw makeError(error.code, `${name}: ${error.message}`);
  } finally {
    adapters.pop();
  }
}

/** The name of the adapter that the user called. */
const outermostAdapter = () => adapters[0];

function throwInvalidId(id) {
  throw typeError(
    'ERR_ROLLGATE_ID',
    `id: expected a string, a finite number, a bigint, undefined or null, got ${show(id)}`,
  );
}

function throwInvalidCallback(callback) {
  throw typeError(
    'ERR_ROLLGATE_CALLBACK',
    `callback: expected a function or undefined, got ${show(callback)}`,
  );
}

/** A method was called on a limiter after close(). */
function closedError() {
  return failure('ERR_ROLLGATE_CLOSED', 'the limiter is closed');
}

function throwClosed() {
  throw closedError();
}

function throwOutOfMemory() {
  throw failure('ERR_ROLLGATE_MEMORY', 'there is not enough memory for the state of this id');
}

module.exports = {
  quote,
  show,
  typeError,
  rangeError,
  failure,
  errorOfFailure,
  optionError,
  optionTypeError,
  optionSecretError,
  optionRangeError,
  inAdapter,
  outermostAdapter,
  throwInvalidId,
  throwInvalidCallback,
  closedError,
  throwClosed,
  throwOutOfMemory,
};
