// The order of the calls that wait for one id: the highest level first, within a level first come, first served.
'use strict';

const { Queue } = require('../../base/queue');
const { now } = require('../../base/timers');

const HIGHEST = 3;

/** A waiter rises one level, up to the highest, each time that it has waited for so many us: none starves. */
const RISES_AFTER = 10_000_000;

function levelAt(moment, { priority, since }) {
  return Math.min(priority + Math.floor((moment - since) / RISES_AFTER), HIGHEST);
}

/** Members have a `priority`; their `since` and `place` belong to this class, and those of Queue to their queue. */
class Order {
  /** By priority. Among members of equal priority the oldest is always the first. */
  #queues = Array.from({ length: HIGHEST + 1 }, () => new Queue());
  #added = 0;

  get length() {
    return this.#queues.reduce((sum, { length }) => sum + length, 0);
  }

  add(member) {
    member.since = now();
    member.place = this.#added++;
    this.#queues[member.priority].add(member);
  }

  /** @param {object} member one that is in the order */
  remove(member) {
    this.#queues[member.priority].remove(member);
  }

  /** The first one now, or null. */
  first() {
    const moment = now();
    let first = null;
    for (const { first: other } of this.#queues) {
      if (other === null) continue;
      const ahead = first === null ? 1 : levelAt(moment, other) - levelAt(moment, first);
      if (ahead > 0 || (ahead === 0 && other.place < first.place)) first = other;
    }
    return first;
  }

  /** The first one, and as many behind it as are sure to follow it now: all, if they have one priority. */
  *front() {
    const first = this.first();
    if (first === null) return;
    const isOnlyQueue = this.#queues[first.priority].length === this.length;
    for (let member = first; member !== null; member = isOnlyQueue ? member.next : null) {
      yield member;
    }
  }

  /** The moment at which another one may become the first because it rises; Infinity if none will. */
  changesAt() {
    const moment = now();
    const first = this.first();
    let earliest = Number.POSITIVE_INFINITY;
    for (const { first: other } of this.#queues) {
      if (other === null || other === first || levelAt(moment, other) === HIGHEST) continue;
      const waited = moment - other.since;
      earliest = Math.min(earliest, moment + RISES_AFTER - (waited % RISES_AFTER));
    }
    return earliest;
  }

  /** All members; those that are reached may be removed meanwhile. */
  *[Symbol.iterator]() {
    for (const queue of this.#queues) {
      for (let member = queue.first; member !== null; member = member.next) yield member;
    }
  }
}

module.exports = { HIGHEST, Order };
