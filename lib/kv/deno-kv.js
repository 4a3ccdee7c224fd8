// An open Deno KV: Deno's own, or that of @deno/kv on Node.
'use strict';

const { rangeError } = require('../errors');
const failures = require('./failures');
const { hashOfLong } = require('./key');
const { FOREIGN, NOTHING, readState } = require('./state');

/** Of one value. */
const MOST_BYTES = 65_536;
/** Of the longest state besides its actions. */
const HEAD_BYTES = 128;
const BYTES_OF_ACTION = 8;
const MOST_ACTIONS = Math.floor((MOST_BYTES - HEAD_BYTES) / BYTES_OF_ACTION);

/** Part of the keys of ids that are too long. */
const HASHED = 'sha256';

/** Well below what one transaction takes, which is counted in bytes of keys. */
const KEYS_AT_ONCE = 32;

function isDenoKv(kv) {
  return typeof kv.atomic === 'function';
}

/** Refuses a log that would not fit into one value once it is full. */
function assertFits({ algorithm, windows }) {
  if (algorithm !== 'sliding-window-log') return;
  const largest = Math.max(...windows.map(({ maxInInterval }) => maxInInterval));
  if (largest <= MOST_ACTIONS) return;
  throw rangeError(
    'ERR_ROLLGATE_OPTION',
    `option 'maxInInterval': expected at most ${MOST_ACTIONS} with algorithm 'sliding-window-log' on Deno ` +
      `KV, whose values hold 64 KiB (take another algorithm, which needs a few bytes), got ${largest}`,
  );
}

async function commit(operation) {
  const result = await operation.commit();
  if (typeof result?.ok === 'boolean') return result.ok;
  throw failures.answer('commit', '{ ok: true or false }', result);
}

/** A store as backend.js takes it; keys are lists. */
function createDenoStore(kv, namespace) {
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

module.exports = { assertFits, createDenoStore, isDenoKv };
