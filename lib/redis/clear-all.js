// Removes every key of a namespace, from all nodes.
'use strict';

const failures = require('./failures');

const KEYS_AT_ONCE = 250;

/** The pattern that matches what starts with this text. */
function patternOf(start) {
  return `${start.replace(/[\\*?[\]]/g, '\\$&')}*`;
}

/** The keys of a cluster's node belong to many slots, and one may just be moving. */
async function unlink(keys, { adapter, ask, sendTo }) {
  if (!adapter.isCluster) {
    await ask(sendTo(keys[0]), ['unlink', ...keys]);
    return;
  }
  await Promise.all(keys.map((key) => ask(sendTo(key), ['unlink', key])));
}

/** SCAN may give a key more than once, and pages without any. */
async function clearNode(send, pattern, tools) {
  let cursor = '0';
  do {
    const args = ['scan', cursor, 'match', pattern, 'count', String(KEYS_AT_ONCE)];
    const reply = await tools.ask(send, args);
    if (!Array.isArray(reply) || reply.length !== 2 || !Array.isArray(reply[1])) {
      throw failures.reply('Redis did not answer SCAN with a cursor and keys');
    }
    cursor = String(reply[0]);
    const keys = reply[1].map(String);
    if (keys.length > 0) await unlink(keys, tools);
  } while (cursor !== '0');
}

/**
 * `tools.ask(send, args)` sends a command within its deadline, `tools.sendTo(key)` is how to the node
 * of a key. Takes as many round trips as it needs; each has a deadline of its own.
 */
async function clearAll(keyStart, tools) {
  const masters = await tools.ask(() => tools.adapter.masters(), []);
  if (masters.length === 0) throw failures.unreachable(undefined, 'the client knows no node');
  const pattern = patternOf(keyStart);
  for (const { send } of masters) await clearNode(send, pattern, tools);
}

module.exports = { clearAll };
