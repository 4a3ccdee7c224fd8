// The pk parameter: tells clients which of their requests count together, without telling the key.
'use strict';

const crypto = require('node:crypto');
const { flatCopy, keyToId } = require('../../ids');

const HEX_DIGITS = 12;

// Node 20.12 has a form that takes half the time.
const sha256 = crypto.hash
  ? (text) => crypto.hash('sha256', text, 'hex')
  : (text) => crypto.createHash('sha256').update(text).digest('hex');

/**
 * Clients come again, and to hash costs as much as to decide. What is remembered is bounded: when `recent`
 * is full, it becomes `earlier`, and what was that is forgotten. Long keys are not kept.
 */
const MOST_REMEMBERED = 8192;
const LONGEST_REMEMBERED = 128;
let recent = new Map();
let earlier = new Map();

/** As express-rate-limit sends it: base64 of the first hex digits, the digits taken as text. */
function partitionKey(key) {
  const id = keyToId(key);
  return recent.get(id) ?? remember(id, earlier.get(id) ?? hash(id));
}

function remember(id, hashed) {
  if (id.length > LONGEST_REMEMBERED) return hashed;
  if (recent.size === MOST_REMEMBERED) {
    earlier = recent;
    recent = new Map();
  }
  recent.set(flatCopy(id), hashed);
  return hashed;
}

function hash(id) {
  return btoa(sha256(id).slice(0, HEX_DIGITS));
}

module.exports = { partitionKey };
