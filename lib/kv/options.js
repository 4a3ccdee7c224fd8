// The options of a limiter over a key-value store: kv, namespace, commandTimeout and onError.
'use strict';

const { types } = require('node:util');
const { optionRangeError, optionTypeError, typeError } = require('../errors');
const { clientKindOf } = require('../redis/clients');
const { readCommandTimeout, readNamespace, readOnError } = require('../remote/options');

/** So that every key fits, whatever its id: see key.js. */
const MOST_NAMESPACE_BYTES = 512;

const EXPECTED = 'an open Deno KV, or an object with the functions get and set';

function refuseKv(why) {
  throw typeError('ERR_ROLLGATE_OPTION', `option 'kv': expected ${EXPECTED}, got ${why}`);
}

function readKv(kv) {
  const isObject = (typeof kv === 'object' && kv !== null) || typeof kv === 'function';
  if (!isObject) throw optionTypeError('kv', EXPECTED, kv);
  // These have functions of the same names, but none that compares and sets.
  if (types.isMap(kv)) refuseKv('a Map, which has no compare-and-set');
  if (clientKindOf(kv) !== undefined) refuseKv("a client of Redis, which belongs in 'redis'");
  if (types.isPromise(kv)) refuseKv('a promise: await it first, as in kv: await openKv()');
  if (typeof kv.get !== 'function' || typeof kv.set !== 'function') {
    throw optionTypeError('kv', EXPECTED, kv);
  }
  return kv;
}

function readShortNamespace(namespace) {
  if (Buffer.byteLength(readNamespace(namespace)) <= MOST_NAMESPACE_BYTES) return namespace;
  const expected = `a string of at most ${MOST_NAMESPACE_BYTES} bytes as UTF-8`;
  throw optionRangeError('namespace', expected, namespace);
}

/** @returns {{ kv: object, namespace: string, commandTimeout: number, onError: string }} */
function readKvOptions({ kv, namespace, commandTimeout, onError }) {
  return {
    kv: readKv(kv),
    namespace: readShortNamespace(namespace),
    commandTimeout: readCommandTimeout('commandTimeout', commandTimeout),
    onError: readOnError(onError),
  };
}

module.exports = { readKvOptions };
