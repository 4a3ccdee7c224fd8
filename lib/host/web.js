// What this package takes from a host that has no modules of Node: workerd, other edge runtimes, browsers. The entry
// of each gives the module with `useModule`.
'use strict';

const { failure } = require('../errors');
const { sha256 } = require('./sha256');

let readModule;
let binding;

/** The WebAssembly module's functions require this file, so they are loaded after it. */
function loadBinding() {
  binding ??= require('../wasm').createBinding(readModule());
  return binding;
}

function missing(option, alternative) {
  const refuse = () => {
    throw failure(
      'ERR_ROLLGATE_UNSUPPORTED',
      `option '${option}': not possible on this host, which has no modules of Node; ${alternative}`,
    );
  };
  return { readOptions: refuse, create: refuse };
}

const stores = {
  redis: { ...missing('redis', "take 'kv', with a store of this host"), clientKindOf() {} },
  shared: missing('shared', "take 'kv', or a limiter in memory"),
};

module.exports = {
  /** `read` returns the WebAssembly.Module; called for the first limiter. */
  useModule(read) {
    readModule = read;
  },

  loadBinding,
  stores,
  rejectedByLimiters: () => ({}),

  /** Nobody can subscribe. */
  channel: () => ({ hasSubscribers: false, publish() {} }),

  /** Some hosts forbid it before the first request. */
  randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),

  random32: () => crypto.getRandomValues(new Uint32Array(1))[0],

  sha256: (string) => sha256(new TextEncoder().encode(string)),

  byteLength: (string) => new TextEncoder().encode(string).length,

  warn(message, code) {
    console.warn(`(rollgate) [${code}] RollgateWarning: ${message}`);
  },

  soon(callback, ...args) {
    setTimeout(() => callback(...args), 0);
  },

  nextTurn: () => new Promise((resolve) => setTimeout(resolve, 0)),
};
