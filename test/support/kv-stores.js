// Key-value stores for tests: a plain object with compare-and-set, and Deno KV over a file of its own.
'use strict';

const { mkdtemp, rm } = require('node:fs/promises');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { openKv } = require('@deno/kv');
const RateLimiter = require('../..');

/**
 * A store as users write one: `{ get, set, delete, list }` over a Map; all but `list` without
 * promises. It forgets what has expired by `now` (ms), by default nothing. For tests to look at:
 * `entries` (by key: value, version, expiresAt), `ttls` (of every set, in order), `calls` (how often
 * what was called).
 */
function createPlainKv({ now = () => Number.NEGATIVE_INFINITY } = {}) {
  const entries = new Map();
  const ttls = [];
  const calls = { get: 0, set: 0, delete: 0, list: 0 };
  let versions = 0;

  function find(key) {
    const entry = entries.get(key);
    if (entry === undefined || entry.expiresAt > now()) return entry;
    entries.delete(key);
    return undefined;
  }

  return {
    entries,
    ttls,
    calls,

    get(key) {
      calls.get++;
      const entry = find(key);
      return entry === undefined ? null : { value: entry.value, version: entry.version };
    },

    set(key, value, version, ttlMs) {
      calls.set++;
      ttls.push(ttlMs);
      if ((find(key)?.version ?? null) !== version) return false;
      const startedAt = Math.max(now(), 0);
      const expiresAt = startedAt + ttlMs;
      entries.set(key, { value: Uint8Array.from(value), version: ++versions, expiresAt });
      return true;
    },

    delete(key) {
      calls.delete++;
      entries.delete(key);
    },

    async *list(prefix) {
      calls.list++;
      for (const key of [...entries.keys()]) if (key.startsWith(prefix)) yield key;
    },
  };
}

/** Deno KV over a `file` in a temporary folder; `close()` closes and removes it. */
async function openDenoKv() {
  const folder = await mkdtemp(path.join(tmpdir(), 'rollgate-kv-'));
  const file = path.join(folder, 'kv.db');
  const kv = await openKv(file);
  return {
    kv,
    file,
    async close() {
      kv.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const TIMEOUT = 'ERR_ROLLGATE_KV_TIMEOUT';
const FAILED = 'ERR_ROLLGATE_KV';

/** A limiter of three actions a minute over a store that is at hand. */
const limiterOver = (kv, options) =>
  RateLimiter({
    kv,
    namespace: 'n',
    interval: 60_000,
    maxInInterval: 3,
    countBlocked: false,
    commandTimeout: 100,
    ...options,
  });

module.exports = { createPlainKv, FAILED, limiterOver, openDenoKv, TIMEOUT };
