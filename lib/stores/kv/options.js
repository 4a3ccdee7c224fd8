// The options of a limiter over a key-value store.
'use strict';

const { byteLength } = require('#platform');
const { optionError, optionRangeError, optionTypeError } = require('../../base/errors');
const { readCommandTimeout, readNamespace, readOnError } = require('../../options/remote');
const { hasMethods } = require('../../options/values');

/** So that every key fits with any id: see hashOfLong in adapters.js. */
const MOST_NAMESPACE_BYTES = 512;

const EXPECTED = 'an open Deno KV, or an object with the functions get and set';

/** Also of another realm. */
const tagOf = (value) => Object.prototype.toString.call(value).slice('[object '.length, -1);

/** What an object is that is often given by mistake. */
function mistakenFor(kv, clientKindOf) {
  // It has functions of the same names.
  if (tagOf(kv) === 'Map') return 'a Map, which has no compare-and-set';
  if (clientKindOf(kv) !== undefined) return "a client of Redis, which belongs in 'redis'";
  if (tagOf(kv) === 'Promise') return 'a promise: await it first, as in kv: await openKv()';
  return undefined;
}

function readKv(kv, clientKindOf) {
  const mistake = mistakenFor(kv, clientKindOf);
  if (mistake !== undefined) throw optionError('kv', `expected ${EXPECTED}, got ${mistake}`);
  if (hasMethods(kv, 'get', 'set')) return kv;
  throw optionTypeError('kv', EXPECTED, kv);
}

function readShortNamespace(namespace) {
  if (byteLength(readNamespace(namespace)) <= MOST_NAMESPACE_BYTES) return namespace;
  const expected = `a string of at most ${MOST_NAMESPACE_BYTES} bytes as UTF-8`;
  throw optionRangeError('namespace', expected, namespace);
}

/** `clientKindOf` is that of redis/clients. */
function readKvOptions({ kv, namespace, commandTimeout, onError }, clientKindOf) {
  return {
    kv: readKv(kv, clientKindOf),
    namespace: readShortNamespace(namespace),
    commandTimeout: readCommandTimeout('commandTimeout', commandTimeout),
    onError: readOnError(onError),
  };
}

module.exports = { readKvOptions };
