// Picks the backend for Redis, native or over a user's client, and publishes its calls on 'rollgate:redis'.
'use strict';

const { REDIS } = require('../channels');
const { createClientBackend } = require('./client-backend');
const { createNativeBackend } = require('./native-backend');

function createRedisBackend(checked) {
  const { connection, namespace } = checked.redis;
  const create = connection.client === undefined ? createNativeBackend : createClientBackend;
  return observedBackend(create({ connection, policy: checked, namespace }));
}

/** Publishes how long calls take and whether there is a connection. Without subscribers it only forwards. */
function observedBackend(backend) {
  let limiter;

  function publishCall(command, ids, startedAt, error) {
    const durationMs = performance.now() - startedAt;
    REDIS.channel.publish({ type: 'call', limiter, command, ids, durationMs, error });
  }

  /** The promise of call(), which rejects and does not throw. */
  function time(command, ids, call) {
    if (REDIS.flag[0] === 0) return call();
    const startedAt = performance.now();
    const result = call();
    const publish = (error) => publishCall(command, ids, startedAt, error);
    result.then(() => publish(null), publish);
    return result;
  }

  backend.whenChanged?.((isUp) => {
    if (REDIS.flag[0] !== 0) REDIS.channel.publish({ type: 'connection', limiter, isUp });
  });

  return {
    ...backend,

    /** `owner` is the limiter in messages. */
    ownedBy(owner) {
      limiter = owner;
    },

    attempt(id, cost, records, full, now, done, max) {
      if (REDIS.flag[0] === 0) {
        backend.attempt(id, cost, records, full, now, done, max);
        return;
      }
      const startedAt = performance.now();
      const doneAndTimed = (error, numbers) => {
        done(error, numbers);
        publishCall(records ? 'attempt' : 'peek', 1, startedAt, error);
      };
      backend.attempt(id, cost, records, full, now, doneAndTimed, max);
    },

    attemptMany: (ids, now) => time('attempt', ids.length, () => backend.attemptMany(ids, now)),
    refund: (id, receipt, now) => time('refund', 1, () => backend.refund(id, receipt, now)),
    clear: (id) => time('clear', 1, () => backend.clear(id)),
  };
}

module.exports = { createRedisBackend };
