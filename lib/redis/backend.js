// Picks what speaks to Redis: the user's client, or the native one.
'use strict';

const { createClientBackend } = require('./client-backend');
const { createNativeBackend } = require('./native-backend');

/** @param {{ connection: object, policy: object, namespace: string }} options as checked by options.js */
function createBackend(options) {
  return options.connection.client === undefined
    ? createNativeBackend(options)
    : createClientBackend(options);
}

module.exports = { createBackend };
