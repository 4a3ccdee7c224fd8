// The two kinds of key-value stores, Deno KV and a user's own object, as one interface of keys and states.
'use strict';

const { byteLength, sha256 } = require('#platform');
const { rangeError, failure } = require('../../base/errors');
const failures = require('./failures');

/** The state of an id without actions. */
const NOTHING = undefined;

/** Instead of a state: a value that rollgate did not write. */
const FOREIGN = null;

/** Written for NOTHING to stores that cannot delete. No state of the core begins with a zero byte. */
const CLEARED = Uint8Array.of(0);

/** Also of another realm. */
function isUint8Array(value) {
  return ArrayBuffer.isView(value) && value[Symbol.toStringTag] === 'Uint8Array';
}

/** @returns {Uint8Array | NOTHING | FOREIGN} */
function readState(value) {
  if (!isUint8Array(value) || value.length === 0) return FOREIGN;
  return value.length === 1 && value[0] === CLEARED[0] ? NOTHING : value;
}

/** Deno KV takes keys of 2 KiB, in which a NUL takes two bytes; other stores take less. */
const MOST_ID_BYTES = 256;

/** The SHA-256 of an id that is too long for a key; undefined for any other. */
function hashOfLong(id) {
  if (id.length * 3 <= MOST_ID_BYTES || byteLength(id) <= MOST_ID_BYTES) return undefined;
  return sha256(id, 'hex');
}

/** The bytes of a value in Deno KV. */
const LARGEST_VALUE = 65_536;

/** A part of the keys of hashed ids. */
const HASHED = 'sha256';

/** Well below the limit of one transaction, which is in bytes of keys. */
const KEYS_AT_ONCE = 32;

function isDenoKv(kv) {
  return typeof kv.atomic === 'function';
}

/** Throws for a log that would not fit into a value once it is full; other algorithms need a few bytes. */
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

/** An open Deno KV: Deno's own, or that of @deno/kv on Node. Keys are arrays. */
function createDenoStore({ kv, namespace, largestState }) {
  assertFits(largestState);
  return {
    /** For other limits. */
    assertFits,

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

    /** `step(action)` runs one action within a deadline. */
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

/** Others may use keys with the same first part. */
function isOwn({ key, value }) {
  const isKey = key.length === 2 || (key.length === 3 && key[1] === HASHED);
  return isKey && readState(value) !== FOREIGN;
}

/** How long CLEARED is kept, in ms: it is equivalent to no value. */
const CLEARED_FOR = 1000;

/** A user's own object with get and a conditional set. Keys are strings. */
function createPlainStore({ kv, namespace }) {
  const prefix = `${namespace}{`;

  async function read(key) {
    const entry = (await kv.get(key)) ?? null;
    if (entry === null) return { state: NOTHING, version: null };
    const version = entry.version ?? null;
    if (version === null) throw failures.answer('get', '{ value, version } or null', entry);
    return { state: readState(entry.value), version };
  }

  async function write(key, bytes, version, ttlMs) {
    const isWritten = await kv.set(key, bytes, version, ttlMs);
    if (typeof isWritten === 'boolean') return isWritten;
    throw failures.answer('set', 'true or false', isWritten);
  }

  async function forget(key, version) {
    if (typeof kv.delete !== 'function') return write(key, CLEARED.slice(), version, CLEARED_FOR);
    await kv.delete(key);
    return true;
  }

  async function forgetWhatIs(key) {
    const { state, version } = await read(key);
    if (state !== NOTHING && !(await forget(key, version))) throw failures.LOST_RACE;
  }

  return {
    /** The last brace ends an id, so what follows it marks a hashed id. */
    keyOf(id) {
      const hash = hashOfLong(id);
      return hash === undefined ? `${prefix}${id}}` : `${prefix}sha256}${hash}`;
    },

    read,
    write,
    forget,

    /** `step(action)` runs one action within a deadline, again after a lost race. */
    async forgetAll(step) {
      if (typeof kv.list !== 'function') {
        throw failure(
          'ERR_ROLLGATE_UNSUPPORTED',
          "clearAll: expected a key-value store with the function list, got one without ('kv')",
        );
      }
      const keys = await step(() => keysFrom(kv, prefix));
      for (const key of keys) await step(() => forgetWhatIs(key));
    },
  };
}

/** Only keys with the prefix, whatever the store lists. */
async function keysFrom(kv, prefix) {
  const keys = [];
  for await (const key of await kv.list(prefix)) {
    if (typeof key !== 'string') throw failures.answer('list', 'keys, which are strings', key);
    if (key.startsWith(prefix)) keys.push(key);
  }
  return keys;
}

module.exports = { FOREIGN, NOTHING, createDenoStore, createPlainStore, isDenoKv };
