// Limiters on Redis: the store over the backend, native or of a user's client.
'use strict';

const { RemoteStore } = require('../remote/store');
const { ClientBackend } = require('./client-backend');
const { NativeBackend } = require('./native-backend');

function createRedisStore(checked) {
  const { connection, namespace, onError } = checked.redis;
  const Backend = connection.client === undefined ? NativeBackend : ClientBackend;
  return new RemoteStore(checked, new Backend({ connection, policy: checked, namespace }), onError);
}

module.exports = { createRedisStore };
