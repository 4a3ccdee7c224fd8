// The keys of a cluster: which slot a key belongs to, calls grouped by slot, and the removal of all keys.
'use strict';

const failures = require('./failures');

/** Source of slots and hash: the Redis Cluster specification. */
const SLOTS = 16_384;

/** CRC-16/XMODEM, a byte at a time. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** The part of a key that is hashed: what the first braces contain, or the whole key if that is empty. */
function hashedPart(key) {
  const open = key.indexOf('{');
  const close = key.indexOf('}', open + 1);
  return open === -1 || close <= open + 1 ? key : key.slice(open + 1, close);
}

function keySlot(key) {
  let crc = 0;
  for (const byte of Buffer.from(hashedPart(key))) {
    crc = ((crc << 8) & 0xffff) ^ TABLE[(crc >> 8) ^ byte];
  }
  return crc % SLOTS;
}

/** Redis runs one script at a time, so none should be long; and Lua's unpack takes at most 8000 values. */
const MOST_KEYS = 1000;

/** Splits keys into those that one call may have. Returns arrays of indexes, in the order of the keys. */
function partsOf(keys, isCluster) {
  const bySlot = new Map();
  for (let i = 0; i < keys.length; i++) {
    const slot = isCluster ? keySlot(keys[i]) : 0;
    if (!bySlot.has(slot)) bySlot.set(slot, []);
    bySlot.get(slot).push(i);
  }
  return [...bySlot.values()].flatMap((indexes) => {
    const parts = [];
    for (let i = 0; i < indexes.length; i += MOST_KEYS) parts.push(indexes.slice(i, i + MOST_KEYS));
    return parts;
  });
}

const KEYS_AT_ONCE = 250;

/** The pattern that matches every key with this prefix. */
function patternOf(start) {
  return `${start.replace(/[\\*?[\]]/g, '\\$&')}*`;
}

/** The keys of a cluster's node belong to many slots, and a slot may be moving to another node. */
async function unlink(keys, { adapter, ask, sendTo }) {
  if (!adapter.isCluster) {
    await ask(sendTo(keys[0]), ['unlink', ...keys]);
    return;
  }
  await Promise.all(keys.map((key) => ask(sendTo(key), ['unlink', key])));
}

/** SCAN may return a key more than once, and pages without keys. */
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
 * Removes every key that begins with `keyStart`, from all nodes, in as many round trips as it takes.
 *
 * @param {object} tools
 * @param {object} tools.adapter see clients/index.js
 * @param {Function} tools.ask `ask(send, args)` sends a command and applies a deadline to it
 * @param {Function} tools.sendTo `sendTo(key)` is the `send` for the node of a key
 */
async function clearAll(keyStart, tools) {
  const masters = await tools.ask(() => tools.adapter.masters(), []);
  if (masters.length === 0) throw failures.unreachable(undefined, 'the client knows no node');
  const pattern = patternOf(keyStart);
  for (const { send } of masters) await clearNode(send, pattern, tools);
}

module.exports = { clearAll, keySlot, partsOf };
