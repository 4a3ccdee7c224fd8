// Ids and middleware keys as strings: values with the same string are one id.
'use strict';

const platform = require('#platform');
const { throwInvalidId, typeError } = require('./errors');

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Whether a string has no lone surrogates, so that its UTF-8 differs from that of any other string. */
const isWellFormed =
  typeof String.prototype.isWellFormed === 'function'
    ? (string) => string.isWellFormed()
    : (string) => !LONE_SURROGATE.test(string); // Node 18

/** @throws TypeError ERR_ROLLGATE_ID */
function idToString(id) {
  if (typeof id === 'string') return id;
  if (id === undefined || id === null) return '';
  if (Number.isFinite(id) || typeof id === 'bigint') return String(id);
  return throwInvalidId(id);
}

/**
 * The same for remote stores, whose keys are UTF-8.
 *
 * @throws TypeError ERR_ROLLGATE_ID
 */
function remoteIdToString(id) {
  const string = idToString(id);
  if (isWellFormed(string)) return string;
  throw typeError(
    'ERR_ROLLGATE_ID',
    'id: expected well-formed Unicode, as ids on Redis or in a key-value store must be, got a string with a lone surrogate',
  );
}

/** The id of a middleware's key, for maps: `1` and `'1'` are one id, and so are undefined, null and ''. */
function keyToId(key) {
  return String(key ?? '');
}

/**
 * A copy that keeps no other string alive, for strings that are remembered: a substring, such as a part of a
 * header, may be a view of the whole. UTF-16 preserves lone surrogates.
 */
function flatCopy(string) {
  return platform.flatCopy(string);
}

module.exports = { flatCopy, idToString, isWellFormed, keyToId, remoteIdToString };
