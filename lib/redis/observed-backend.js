// Tells on the channel 'rollgate:redis' how long calls take and whether there is a connection.
'use strict';

const { REDIS } = require('../channels');

/** The same backend; while nobody listens, its calls are made as they are. */
function observedBackend(backend) {
  let limiter;

  function publishCall(command, ids, startedAt, error) {
    const durationMs = performance.now() - startedAt;
    REDIS.channel.publish({ type: 'call', limiter, command, ids, durationMs, error });
  }

  async function time(command, ids, call) {
    if (REDIS.flag[0] === 0) return call();
    const startedAt = performance.now();
    let error = null;
    try {
      return await call();
    } catch (failed) {
      error = failed;
      throw failed;
    } finally {
      publishCall(command, ids, startedAt, error);
    }
  }

  backend.whenChanged?.((isUp) => {
    if (REDIS.flag[0] !== 0) REDIS.channel.publish({ type: 'connection', limiter, isUp });
  });

  return {
    ...backend,

    /** Who the store belongs to. */
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

module.exports = { observedBackend };
