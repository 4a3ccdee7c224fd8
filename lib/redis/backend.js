// Picks what speaks to Redis: the user's client, or the native one.
'use strict';

const { createClientBackend } = require('./client-backend');
const { createNativeBackend } = require('./native-backend');

/** @param {object} checked options of a limiter with `redis`, as checked by options.js */
function createRedisBackend({ windows, minDifference, countBlocked, redis }) {
  const { connection, namespace } = redis;
  const options = { connection, policy: { windows, minDifference, countBlocked }, namespace };
  return options.connection.client === undefined
    ? createNativeBackend(options)
    : createClientBackend(options);
}

module.exports = { createRedisBackend };
