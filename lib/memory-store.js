// The store in this process's memory.
'use strict';

const native = require('./native');
const { createLocalStore } = require('./local-store');

const LARGEST_KEYS = 2 ** 48;

/** A synchronous store: see local-store.js. */
function createMemoryStore(checked) {
  const { maxKeys } = checked;
  return createLocalStore(checked, {
    create: native.createMemoryLimiter,
    options: { maxKeys: Math.min(maxKeys, LARGEST_KEYS) },
    evictionText: `a rollgate limiter holds ${maxKeys} ids (maxKeys) and drops`,
  });
}

module.exports = { createMemoryStore };
