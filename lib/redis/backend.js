// Picks what speaks to Redis: the user's client, or the native one.
'use strict';

const { createClientBackend } = require('./client-backend');
const { createNativeBackend } = require('./native-backend');
const { observedBackend } = require('./observed-backend');

/** @param {object} checked options of a limiter with `redis`, as checked by options.js */
function createRedisBackend(checked) {
  const { windows, minDifference, countBlocked, algorithm, blockFor, setsMax } = checked;
  const { connection, namespace } = checked.redis;
  const policy = { windows, minDifference, countBlocked, algorithm, blockFor, setsMax };
  const options = { connection, policy, namespace };
  const create = connection.client === undefined ? createNativeBackend : createClientBackend;
  return observedBackend(create(options));
}

module.exports = { createRedisBackend };
