// The calls to Redis that run no script: clear, clearAll, and the probe of an outage.
'use strict';

const { keySlot } = require('./cluster');
const failures = require('./failures');
const { checkInteger } = require('./script');

const KEYS_AT_ONCE = 250;

/** The pattern that matches every key with this prefix. */
function patternOf(start) {
  return `${start.replace(/[\\*?[\]]/g, '\\$&')}*`;
}

/**
 * A part of a backend, for any way to reach Redis.
 *
 * @param {object} tools
 * @param {object} tools.adapter isCluster, send and masters as in clients/index.js
 * @param {Function} tools.ask `ask(send, args)` promises the reply to `send(args)`, within a deadline
 * @param {string} tools.keyStart what precedes the id in each key
 */
function createCommands({ adapter, ask, keyStart }) {
  const keyOf = (id) => `${keyStart}${id}}`;
  const askAt = (key, args) => ask((words) => adapter.send(key, words), args);

  /** The keys of a cluster's node belong to many slots, and a slot may be moving to another node. */
  async function unlink(keys) {
    if (adapter.isCluster) await Promise.all(keys.map((key) => askAt(key, ['unlink', key])));
    else await askAt(keys[0], ['unlink', ...keys]);
  }

  /** SCAN may return a key more than once, and pages without keys. */
  async function clearNode(send) {
    let cursor = '0';
    do {
      const args = ['scan', cursor, 'match', patternOf(keyStart), 'count', String(KEYS_AT_ONCE)];
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
      if (masters.length === 0) throw failures.unreachable(undefined, 'the client knows no node');
      for (const { send } of masters) await clearNode(send);
    },

    /** Ids of one part become unreachable together: those of one slot in a cluster, else all. */
    partOf: (id) => (adapter.isCluster ? keySlot(keyOf(id)) : 0),

    isOutage: failures.isOutage,

    async probe(id) {
      checkInteger(await askAt(keyOf(id), ['pttl', keyOf(id)]), -2);
    },
  };
}

module.exports = { createCommands };
