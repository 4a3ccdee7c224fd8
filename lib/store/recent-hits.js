// The newest hits of a store, which express-rate-limit may take back: it names the key and not the hit.
'use strict';

const { keyToId } = require('../ids');

/** Hits of one generation. There are two: the hits remembered are between this many and twice as many. */
const GENERATION = 5000;

/** Bounded in number: when a generation is full, the one before it is forgotten. Such a hit stays counted. */
class RecentHits {
  #current = new Map();
  #previous = new Map();
  #count = 0;

  /** Refused hits, too: a refused request is taken back like others, and must not take back another's. */
  remember(key, decision) {
    if (this.#count === GENERATION) this.#turnOver();
    const id = keyToId(key);
    const decisions = this.#current.get(id);
    if (decisions === undefined) this.#current.set(id, [decision]);
    else decisions.push(decision);
    this.#count++;
  }

  takeNewest(key) {
    const id = keyToId(key);
    for (const generation of [this.#current, this.#previous]) {
      const decisions = generation.get(id);
      if (decisions === undefined) continue;
      if (decisions.length === 1) generation.delete(id);
      return decisions.pop();
    }
    return undefined;
  }

  forget(key) {
    this.#current.delete(keyToId(key));
    this.#previous.delete(keyToId(key));
  }

  forgetAll() {
    this.#current.clear();
    this.#previous.clear();
  }

  #turnOver() {
    this.#previous = this.#current;
    this.#current = new Map();
    this.#count = 0;
  }
}

module.exports = { RecentHits };
