// The store in this process's memory.
'use strict';

const { createLocalStore } = require('./local-store');
const { loadAddon } = require('./native');

const LARGEST_KEYS = 2 ** 48;

/** A synchronous store: see local-store.js. */
function createMemoryStore(checked) {
  const { maxKeys } = checked;
  return createLocalStore(checked, {
    create: loadAddon().createMemoryLimiter,
    options: { maxKeys: Math.min(maxKeys, LARGEST_KEYS) },
    evictionText: `a rollgate limiter holds ${maxKeys} ids (maxKeys) and drops`,
  });
}

module.exports = { createMemoryStore };
