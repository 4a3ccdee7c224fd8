// Limiters on Redis: picks the backend, native or over a user's client, and publishes its calls on 'rollgate:redis'.
'use strict';

const { promisify } = require('node:util');
const { REDIS } = require('../../base/channels');
const { RECORDS } = require('../../base/decision');
const { errorOfFailure } = require('../../base/errors');
const { createRemoteStore } = require('../remote/store');
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

  /** `done` for a call that begins now, which is published when it ends. */
  function published(command, ids, done) {
    const startedAt = performance.now();
    return (failed, result) => {
      const durationMs = performance.now() - startedAt;
      const error = failed === null ? null : errorOfFailure(failed);
      done(error, result);
      REDIS.channel.publish({ type: 'call', limiter, command, ids, durationMs, error });
    };
  }

  const publishing = promisify((command, ids, call, done) => {
    const end = published(command, ids, done);
    call().then((result) => end(null, result), end);
  });

  async function time(command, ids, call) {
    return REDIS.flag[0] === 0 ? call() : publishing(command, ids, call);
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
      const isSeen = REDIS.flag[0] !== 0;
      const end = isSeen
        ? published(records === RECORDS.NOTHING ? 'peek' : 'attempt', 1, done)
        : done;
      backend.attempt(id, cost, records, full, now, end, max);
    },

    attemptMany: (ids, now) => time('attempt', ids.length, () => backend.attemptMany(ids, now)),
    settle: (id, receipt, actual, now) =>
      time(actual === 0 ? 'refund' : 'settle', 1, () => backend.settle(id, receipt, actual, now)),
    block: (id, ms, now) => time('block', 1, () => backend.block(id, ms, now)),
    clear: (id) => time('clear', 1, () => backend.clear(id)),
  };
}

function createRedisStore(checked) {
  return createRemoteStore(checked, createRedisBackend(checked), checked.redis.onError);
}

module.exports = { createRedisStore };
