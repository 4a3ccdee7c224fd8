// topBlocked: the ids that are refused most, counted from 'rollgate:decision' in bounded memory.
'use strict';

const { createHash } = require('node:crypto');
const { DECISIONS } = require('../../base/channels');
const { flatCopy, idToString } = require('../../base/ids');
const { readCount } = require('../../options/values');
const { Queue } = require('../../base/queue');
const { readTopBlockedOptions } = require('./options');

/** A shortened id is longer than this, so that it differs from every id that is kept whole. */
const LONGEST_KEPT = 240;
const BEGINNING = 200;

/** What is kept of an id, because an attacker's may be long. */
function shortened(id) {
  if (id.length <= LONGEST_KEPT) return id;
  const hash = createHash('sha256').update(id, 'utf16le').digest('base64url');
  return `${id.slice(0, BEGINNING)}...${hash}`;
}

/** Counts refusals by limiter and id, from now on. See metrics.d.ts. */
function topBlocked(options) {
  const { names, capacity } = readTopBlockedOptions(options);
  const counts = new SpaceSaving(capacity);
  // By limiter. Limiters without a name may still be garbage collected.
  let places = new WeakMap();
  let total = 0;
  let isOpen = true; // after close() by another subscriber, the current message still arrives

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
    const key = shortened(idToString(id));
    const known = place.counters.get(key);
    if (known !== undefined) return counts.increment(known);
    const kept = flatCopy(key);
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
      readCount('n', n);
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

/**
 * Finds the most frequent things in memory for a few of them, by Space-Saving; the number of steps does not
 * depend on the capacity. Of n things counted, any that came more than n / capacity times has a counter. A
 * counter is never less than the true count, and too high by at most its `overcount`.
 *
 * Source: Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data
 * Streams (2005).
 */
class SpaceSaving {
  /** Counters by count. They only go up by one, so the next count above the least is the least plus one. */
  #byCount = new Map();
  #least = 0;
  #size = 0;
  #capacity;

  constructor(capacity) {
    this.#capacity = capacity;
  }

  /** Adds a counter for a new thing; `dropped` is the counter that it replaces. */
  add(thing) {
    const dropped = this.#size < this.#capacity ? undefined : this.#dropLeast();
    const overcount = dropped?.count ?? 0;
    const counter = { thing, count: overcount + 1, overcount };
    this.#place(counter);
    this.#size++;
    // The dropped counter may have been the last one with the least count.
    if (overcount === 0 || !this.#byCount.has(overcount)) this.#least = counter.count;
    return { counter, dropped };
  }

  increment(counter) {
    const { count } = counter;
    this.#displace(counter);
    counter.count = count + 1;
    this.#place(counter);
    if (!this.#byCount.has(this.#least)) this.#least = counter.count;
  }

  clear() {
    this.#byCount.clear();
    this.#size = 0;
  }

  /** In no order. */
  *counters() {
    for (const equals of this.#byCount.values()) {
      for (let counter = equals.first; counter !== null; counter = counter.next) yield counter;
    }
  }

  #place(counter) {
    let equals = this.#byCount.get(counter.count);
    if (equals === undefined) {
      equals = new Queue();
      this.#byCount.set(counter.count, equals);
    }
    equals.add(counter);
  }

  #displace(counter) {
    const equals = this.#byCount.get(counter.count);
    equals.remove(counter);
    if (equals.length === 0) this.#byCount.delete(counter.count);
  }

  /** The oldest of those with the least count. */
  #dropLeast() {
    const counter = this.#byCount.get(this.#least).first;
    this.#displace(counter);
    this.#size--;
    return counter;
  }
}

module.exports = { SpaceSaving, topBlocked };
