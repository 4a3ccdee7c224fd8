// What a limit of concurrency is: a list of holders, counted anew in each call.
'use strict';

class SlotOracle {
  #holders = [];
  now = 0;

  /** @param {{ max: number, maxAge?: number, maxKeys?: number }} limits `maxAge` in us */
  constructor({ max, maxAge = Infinity, maxKeys = Infinity }) {
    this.max = max;
    this.maxAge = maxAge;
    this.maxKeys = maxKeys;
  }

  get held() {
    this.#holders = this.#holders.filter(({ since }) => this.now - since < this.maxAge);
    return this.#holders;
  }

  used(id) {
    return this.held.reduce((sum, holder) => (holder.id === id ? sum + holder.cost : sum), 0);
  }

  get keys() {
    return new Set(this.held.map(({ id }) => id)).size;
  }

  /** A holder, or null. */
  acquire(id, cost, max = this.max) {
    const used = this.used(id);
    if (used + cost > max || (used === 0 && this.keys >= this.maxKeys)) return null;
    const holder = { id, cost, since: this.now };
    this.#holders.push(holder);
    return holder;
  }

  release(holder) {
    const place = this.held.indexOf(holder);
    if (place === -1) return false;
    this.#holders.splice(place, 1);
    return true;
  }

  holds(holder) {
    return this.held.includes(holder);
  }

  clear(id) {
    this.#holders = this.#holders.filter((holder) => holder.id !== id);
  }

  clearAll() {
    this.#holders = [];
  }

  get oldest() {
    return this.held.reduce((most, { since }) => Math.max(most, this.now - since), 0);
  }
}

module.exports = { SlotOracle };
