// A key-value store of the user's own: an object that gets, and sets on a condition.
'use strict';

const { failure } = require('../errors');
const failures = require('./failures');
const { hashOfLong } = require('./key');
const { CLEARED, NOTHING, readState } = require('./state');

/** How long CLEARED is kept, in ms: it means as much as nothing. */
const CLEARED_FOR = 1000;

/** A store as backend.js takes it; keys are strings. */
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
    /** An id ends with the last brace; what goes on behind it is no id. */
    keyOf(id) {
      const hash = hashOfLong(id);
      return hash === undefined ? `${prefix}${id}}` : `${prefix}sha256}${hash}`;
    },

    read,
    write,
    forget,

    /** `step(action)` runs one action of the store's, within its time; again where it lost a race. */
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

/** Only keys with the prefix: whatever a store lists, nobody else's are touched. */
async function keysFrom(kv, prefix) {
  const keys = [];
  for await (const key of await kv.list(prefix)) {
    if (typeof key !== 'string') throw failures.answer('list', 'keys, which are strings', key);
    if (key.startsWith(prefix)) keys.push(key);
  }
  return keys;
}

module.exports = { createPlainStore };
