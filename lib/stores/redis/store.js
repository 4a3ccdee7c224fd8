// Limiters on Redis: the store over the backend, native or of a user's client.
'use strict';

const { RemoteStore } = require('../remote/store');
const { ClientBackend } = require('./client-backend');
const { NativeBackend } = require('./native-backend');

const { RedisSlots } = require('./slots');

const backendOf = ({ connection }) =>
  connection.client === undefined ? NativeBackend : ClientBackend;

/** Loaded when it is needed. */
const withLeases = (...given) => new (require('./leases').Leases)(...given);

function createRedisStore(checked) {
  const { connection, namespace, onError } = checked.redis;
  const Backend = backendOf(checked.redis);
  const backend = new Backend({ connection, policy: checked, namespace });
  return new RemoteStore(checked, checked.lease ? withLeases(backend, checked) : backend, onError);
}

/** The store of a concurrency limiter. */
function createRedisSlots({ redis, ...ofStore }, events) {
  const Backend = backendOf(redis);
  return new RedisSlots({ ...ofStore, ...redis, Backend }, events);
}

module.exports = { createRedisSlots, createRedisStore };
