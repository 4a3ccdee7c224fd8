// Picks what speaks to Redis: the user's client, or the native one.
'use strict';

const { createClientBackend } = require('./client-backend');

/** @param {{ connection: object, policy: object, namespace: string }} options as checked by options.js */
function createBackend(options) {
  if (options.connection.client !== undefined) return createClientBackend(options);
  // Not before it is needed.
  return require('./native-backend').createNativeBackend(options);
}

module.exports = { createBackend };
