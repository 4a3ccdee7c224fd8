// Picks what speaks to Redis: the user's client, or the native one.
'use strict';

const { createClientBackend } = require('./client-backend');
const { createNativeBackend } = require('./native-backend');

/** @param {object} checked options of a limiter with `redis`, as checked by options.js */
function createRedisBackend(checked) {
  const { windows, minDifference, countBlocked, algorithm, blockFor, setsMax } = checked;
  const { connection, namespace } = checked.redis;
  const policy = { windows, minDifference, countBlocked, algorithm, blockFor, setsMax };
  const options = { connection, policy, namespace };
  return connection.client === undefined
    ? createNativeBackend(options)
    : createClientBackend(options);
}

module.exports = { createRedisBackend };
