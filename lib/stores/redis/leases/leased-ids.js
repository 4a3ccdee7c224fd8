// The ids that are known to a process, in the order of their use.
'use strict';

class LeasedIds {
  #byId = new Map();
  #newest = null;
  #oldest = null;

  get size() {
    return this.#byId.size;
  }

  get oldest() {
    return this.#oldest;
  }

  get(id) {
    return this.#byId.get(id);
  }

  [Symbol.iterator]() {
    return this.#byId.values();
  }

  add(leased) {
    this.#byId.set(leased.id, leased);
    this.#append(leased);
  }

  touch(leased) {
    if (leased === this.#newest) return;
    this.#unlink(leased);
    this.#append(leased);
  }

  delete(leased) {
    this.#byId.delete(leased.id);
    this.#unlink(leased);
    leased.isForgotten = true;
  }

  #append(leased) {
    leased.older = this.#newest;
    leased.newer = null;
    if (this.#newest === null) this.#oldest = leased;
    else this.#newest.newer = leased;
    this.#newest = leased;
  }

  #unlink({ older, newer }) {
    if (older === null) this.#oldest = newer;
    else older.newer = newer;
    if (newer === null) this.#newest = older;
    else newer.older = older;
  }
}

module.exports = { LeasedIds };
