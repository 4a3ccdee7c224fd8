// What an id is called in a key-value store, whose keys are short.
'use strict';

const { createHash } = require('node:crypto');

/** Deno KV takes keys of 2 KiB, in which a NUL has two bytes; others take less. */
const MOST_ID_BYTES = 256;

/** The SHA-256 of an id that is too long for a key; undefined of any other. */
function hashOfLong(id) {
  if (id.length * 3 <= MOST_ID_BYTES || Buffer.byteLength(id) <= MOST_ID_BYTES) return undefined;
  return createHash('sha256').update(id).digest('hex');
}

module.exports = { hashOfLong };
