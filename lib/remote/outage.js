// Whether a remote store is out of reach, and asking now and then whether it is back.
'use strict';

/**
 * An outage begins with a failure that the next call would meet as well, and ends when a question is
 * answered. Questions are asked by those who want to know whether it lasts, one at a time: there is no
 * timer. Where ids are on several nodes, each *part* of them has outages of its own.
 */
class Outages {
  #ask;
  #isAsking = new Map(); // of each part that is out of reach

  /** @param {(id: string) => Promise<void>} ask a question that is answered where the store has this id */
  constructor(ask) {
    this.#ask = ask;
  }

  note(part) {
    if (!this.#isAsking.has(part)) this.#isAsking.set(part, false);
  }

  /** Whether the part is out of reach; if so, `id` of it is asked for. */
  isOn(part, id) {
    const isAsking = this.#isAsking.get(part);
    if (isAsking === undefined) return false;
    if (!isAsking) this.#findOut(part, id);
    return true;
  }

  async #findOut(part, id) {
    this.#isAsking.set(part, true);
    try {
      await this.#ask(id);
      this.#isAsking.delete(part);
    } catch {
      this.#isAsking.set(part, false); // not back yet: that is the answer
    }
  }
}

module.exports = { Outages };
