// What this package takes from its host: here Node, Bun or Deno. package.json maps `#host` to this file or, where
// there are no modules of Node, to web.js.
'use strict';

const { createHash, randomBytes, randomInt } = require('node:crypto');
const diagnostics = require('node:diagnostics_channel');

// Loaded when a limiter uses them, so that one in memory starts quickly.
const stores = {
  redis: {
    readOptions: (options) => require('../redis/options').readRedisOptions(options),
    create: (checked) => require('../redis/backend').createRedisBackend(checked),
    /** What a client of Redis is: see redis/clients. */
    clientKindOf: (client) => require('../redis/clients').clientKindOf(client),
  },
  shared: {
    readOptions: (options) => require('../shared/region').readSharedOptions(options),
    create: (checked) => require('../shared/store').createSharedStore(checked),
  },
};

module.exports = {
  /** The functions that create limiters: of the addon, or of the WebAssembly module. */
  loadBinding: () => require('../binding').loadBinding(),

  stores,

  /** The options of the middleware that limiters reject, with the reasons. */
  rejectedByLimiters: () => require('../middleware/options').REJECTED_BY_LIMITERS,

  channel: (name) => diagnostics.channel(name),

  /** @returns {Uint8Array} */
  randomBytes,

  random32: () => randomInt(2 ** 32),

  /** The SHA-256 of a string's UTF-8, in hexadecimal digits. */
  sha256: (string) => createHash('sha256').update(string).digest('hex'),

  byteLength: (string) => Buffer.byteLength(string),

  warn(message, code) {
    process.emitWarning(message, { type: 'RollgateWarning', code });
  },

  // Looked up in each call, because tests replace these functions.

  /** Calls `callback` soon, outside of promises: an exception is uncaught. */
  soon: (callback, ...args) => process.nextTick(callback, ...args),

  /** Resolves after a turn of the event loop. */
  nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
};
