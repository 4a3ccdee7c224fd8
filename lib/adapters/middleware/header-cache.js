// What headers are made of, remembered from request to request: most requests need the same strings.
'use strict';

const { sha256 } = require('#platform');
const { flatCopy, keyToId } = require('../../base/ids');

/** A function of one number that calls `make` only when the number differs from the last one. */
function rememberForLastNumber(make) {
  let known;
  let made;
  return (number) => {
    if (number !== known) {
      made = make(number);
      known = number;
    }
    return made;
  };
}

const SLOTS = 256; // a power of two

/**
 * A function (limit, remaining, reset) that returns what `make` does. Busy clients repeat the same numbers:
 * those with nothing left, and new ones. Formatting, and the flattening of the string for Node's check of
 * headers, take as long as setting a header. Bounded: a new entry replaces the one in its slot.
 */
function rememberForNumbers(make) {
  const slots = new Array(SLOTS).fill(undefined);
  return (limit, remaining, reset) => {
    const index = (remaining * 31 + reset) & (SLOTS - 1);
    const slot = slots[index];
    if (slot !== undefined && slot.remaining === remaining) {
      if (slot.reset === reset && slot.limit === limit) return slot.made;
    }
    const made = make(limit, remaining, reset);
    slots[index] = { limit, remaining, reset, made };
    return made;
  };
}

/**
 * A function (windows, names?) that calls `make` only when the windows or the names differ from those of the
 * last call. Windows are compared by value, because a user's own limiter may make new ones each time.
 */
function rememberForWindows(make) {
  let knownWindows = [];
  let knownNames;
  let made;
  return (windows, names) => {
    if (names !== knownNames || !areSame(windows, knownWindows)) {
      made = make(windows, names);
      knownWindows = windows;
      knownNames = names;
    }
    return made;
  };
}

function areSame(windows, known) {
  if (windows.length !== known.length) return false;
  for (let i = 0; i < windows.length; i++) {
    const { interval, calendar, maxInInterval, name } = windows[i];
    if (interval !== known[i].interval || maxInInterval !== known[i].maxInInterval) return false;
    if (calendar !== known[i].calendar || name !== known[i].name) return false;
  }
  return true;
}

const HEX_DIGITS = 12;

/**
 * Partition keys by id, because hashing costs as much as deciding. Bounded: when `recent` is full it replaces
 * `earlier`. Long ids are not kept.
 */
const MOST_REMEMBERED = 8192;
const LONGEST_REMEMBERED = 128;
let recent = new Map();
let earlier = new Map();

/**
 * The parameter pk: shows clients which of their requests share a count without showing the key. As in
 * express-rate-limit: base64 of the first hex digits of the hash, as characters.
 */
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
  return btoa(sha256(id, 'hex').slice(0, HEX_DIGITS));
}

module.exports = { partitionKey, rememberForLastNumber, rememberForNumbers, rememberForWindows };
