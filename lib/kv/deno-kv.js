// An open Deno KV: Deno's own, or that of @deno/kv on Node.
'use strict';

const { rangeError } = require('../errors');
const failures = require('./failures');
const { hashOfLong } = require('./key');
const { FOREIGN, NOTHING, readState } = require('./state');

/** Bytes of a value. */
const LARGEST_VALUE = 65_536;

/** Part of the keys of ids that are too long. */
const HASHED = 'sha256';

/** Well below what one transaction takes, which is counted in bytes of keys. */
const KEYS_AT_ONCE = 32;

function isDenoKv(kv) {
  return typeof kv.atomic === 'function';
}

/** Refuses a log that would not fit into a value once it is full; other algorithms need a few bytes. */
function assertFits(largestState) {
  if (largestState <= LARGEST_VALUE) return;
  throw rangeError(
    'ERR_ROLLGATE_OPTION',
    "option 'maxInInterval': expected a log that fits into a value of Deno KV, which holds " +
      `${LARGEST_VALUE} bytes, got one of ${largestState}; lower it, or take another algorithm than ` +
      "'sliding-window-log'",
  );
}

async function commit(operation) {
  const result = await operation.commit();
  if (typeof result?.ok === 'boolean') return result.ok;
  throw failures.answer('commit', '{ ok: true or false }', result);
}

/** A store as backend.js takes it; keys are lists. */
function createDenoStore({ kv, namespace, largestState }) {
  assertFits(largestState);
  return {
    keyOf(id) {
      const hash = hashOfLong(id);
      return hash === undefined ? [namespace, id] : [namespace, HASHED, hash];
    },

    async read(key) {
      const { value, versionstamp } = await kv.get(key);
      if (versionstamp === null) return { state: NOTHING, version: null };
      if (typeof versionstamp === 'string')
        return { state: readState(value), version: versionstamp };
      throw failures.answer('get', 'an entry with a versionstamp', versionstamp);
    },

    write(key, bytes, version, ttlMs) {
      const operation = kv.atomic().check({ key, versionstamp: version });
      return commit(operation.set(key, bytes, { expireIn: ttlMs }));
    },

    forget(key, version) {
      return commit(kv.atomic().check({ key, versionstamp: version }).delete(key));
    },

    /** `step(action)` runs one action of the store's, within its time. */
    async forgetAll(step) {
      let start = {};
      for (;;) {
        const entries = await step(() => listFrom(kv, { prefix: [namespace], ...start }));
        const keys = entries.filter(isOwn).map(({ key }) => key);
        if (keys.length > 0) {
          const operation = keys.reduce((all, key) => all.delete(key), kv.atomic());
          await step(() => commit(operation));
        }
        if (entries.length < KEYS_AT_ONCE) return;
        start = { start: entries.at(-1).key };
      }
    },
  };
}

async function listFrom(kv, selector) {
  const entries = [];
  for await (const entry of kv.list(selector, { limit: KEYS_AT_ONCE })) entries.push(entry);
  return entries;
}

/** Others may have keys that begin with the same part. */
function isOwn({ key, value }) {
  const isKey = key.length === 2 || (key.length === 3 && key[1] === HASHED);
  return isKey && readState(value) !== FOREIGN;
}

module.exports = { createDenoStore, isDenoKv };
