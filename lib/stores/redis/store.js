// Limiters on Redis: the store over the backend, native or of a user's client.
'use strict';

const { RemoteStore } = require('../remote/store');
const { ClientBackend } = require('./client-backend');
const { NativeBackend } = require('./native-backend');

const { RedisSlots } = require('./slots');

const backendOf = ({ connection }) =>
  connection.client === undefined ? NativeBackend : ClientBackend;

function createRedisStore(checked) {
  const { connection, namespace, onError } = checked.redis;
  const Backend = backendOf(checked.redis);
  return new RemoteStore(checked, new Backend({ connection, policy: checked, namespace }), onError);
}

/** The store of a concurrency limiter. */
function createRedisSlots({ redis, ...ofStore }, events) {
  const Backend = backendOf(redis);
  return new RedisSlots({ ...ofStore, ...redis, Backend }, events);
}

module.exports = { createRedisSlots, createRedisStore };
