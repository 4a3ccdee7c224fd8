// The calls to Redis that run no script: clear, clearAll, and the probe of an outage.
'use strict';

const failures = require('./failures');
const { checkInteger } = require('./script');

const KEYS_AT_ONCE = 250;

/**
 * A part of a backend, for any way to reach Redis.
 *
 * @param {object} adapter isCluster, masters and nodeOf as in clients/index.js
 * @param {(id: string) => string} keyOf
 * @param {{ ask: Function, askAt: Function }} asking `ask(send, args)` promises the reply to `send(args)`, and
 *   `askAt(key, args)` the reply to a command with this key, within a deadline
 */
function createCommands(adapter, keyOf, { ask, askAt }) {
  const start = keyOf('').slice(0, -1);
  const pattern = `${start.replace(/[\\*?[\]]/g, '\\$&')}*`;

  /** The keys of a cluster's node belong to many slots, and a slot may be moving to another node. */
  async function unlink(keys) {
    if (adapter.isCluster) await Promise.all(keys.map((key) => askAt(key, ['unlink', key])));
    else await askAt(keys[0], ['unlink', ...keys]);
  }

  /** SCAN may return a key more than once, and pages without keys. */
  async function clearNode(send) {
    let cursor = '0';
    do {
      const args = ['scan', cursor, 'match', pattern, 'count', String(KEYS_AT_ONCE)];
      const reply = await ask(send, args);
      if (!Array.isArray(reply) || reply.length !== 2 || !Array.isArray(reply[1])) {
        throw failures.reply('Redis did not answer SCAN with a cursor and keys');
      }
      cursor = String(reply[0]);
      const keys = reply[1].map(String);
      if (keys.length > 0) await unlink(keys);
    } while (cursor !== '0');
  }

  return {
    async clear(id) {
      checkInteger(await askAt(keyOf(id), ['unlink', keyOf(id)]), 0);
    },

    /** In as many round trips as it takes. */
    async clearAll() {
      const masters = await ask(() => adapter.masters(), []);
      if (masters.length === 0) throw failures.unreachable('the client knows no node');
      for (const send of masters) await clearNode(send);
    },

    /** Ids of one part become unreachable together: those of one node in a cluster, else all. */
    partOf: (id) => adapter.nodeOf(keyOf(id)),

    isOutage: failures.isOutage,

    async probe(id) {
      checkInteger(await askAt(keyOf(id), ['pttl', keyOf(id)]), -2);
    },
  };
}

module.exports = { createCommands };
