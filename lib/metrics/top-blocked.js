// Who is refused most: counts what the channel rollgate:decision tells, in bounded memory.
'use strict';

const { createHash } = require('node:crypto');
const { DECISIONS } = require('../channels');
const { flatCopy, idToString } = require('../ids');
const { readNumber } = require('../option-values');
const { readTopBlockedOptions } = require('./options');
const { SpaceSaving } = require('./space-saving');

/** What an id is shortened to is longer, so that it is no other's text. */
const LONGEST_KEPT = 240;
const BEGINNING = 200;

/** What is kept of an id: an attacker's may be long. */
function shortened(text) {
  if (text.length <= LONGEST_KEPT) return text;
  const hash = createHash('sha256').update(text, 'utf16le').digest('base64url');
  return `${text.slice(0, BEGINNING)}...${hash}`;
}

/** Counts refusals from now on, by limiter and id. See metrics.d.ts. */
function topBlocked(options) {
  const { names, capacity } = readTopBlockedOptions(options);
  const counts = new SpaceSaving(capacity);
  // By limiter; those without names are not kept from being freed.
  let places = new WeakMap();
  let total = 0;
  let isOpen = true; // closed by another subscriber, it is told of that decision still

  function placeOf(limiter) {
    const known = places.get(limiter);
    if (known !== undefined) return known;
    const ref = new WeakRef(limiter);
    const place = { limiter: () => names?.get(ref.deref()) ?? ref.deref(), counters: new Map() };
    places.set(limiter, place);
    return place;
  }

  function observe({ limiter, id, allowed }) {
    if (allowed || !isOpen || (names !== undefined && !names.has(limiter))) return;
    total++;
    const place = placeOf(limiter);
    const text = shortened(idToString(id));
    const known = place.counters.get(text);
    if (known !== undefined) return counts.increment(known);
    const kept = flatCopy(text);
    const { counter, dropped } = counts.add({ place, id: kept });
    place.counters.set(kept, counter);
    dropped?.thing.place.counters.delete(dropped.thing.id);
  }

  function reset() {
    counts.clear();
    places = new WeakMap();
    total = 0;
  }

  DECISIONS.channel.subscribe(observe);
  return {
    get total() {
      return total;
    },

    top(n = 10) {
      readNumber('n', n, 'an integer >= 1', (most) => Number.isInteger(most) && most >= 1);
      const entries = [];
      for (const { thing, count, overcount } of counts.counters()) {
        const limiter = thing.place.limiter();
        if (limiter !== undefined)
          entries.push({ limiter, id: thing.id, blocked: count, overcount });
      }
      entries.sort((a, b) => b.blocked - a.blocked || a.overcount - b.overcount);
      return entries.slice(0, n);
    },

    reset,

    close() {
      isOpen = false;
      DECISIONS.channel.unsubscribe(observe);
      names?.clear();
      reset();
    },
  };
}

module.exports = { topBlocked };
