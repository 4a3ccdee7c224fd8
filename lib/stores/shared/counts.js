// How much of each id is held by all threads and processes of a region: for LocalSlots.
'use strict';

const { durationToMicros } = require('../../base/clock');
const { throwInvalidId, throwOutOfMemory } = require('../../base/errors');
const { loadBinding } = require('../../native');
const { throwSharedErrorOf, throwUnsupported } = require('./store');

/** Its first call attaches to the region. */
class SharedCounts {
  hasOthers = true;
  /** In ms: others may clear what is held here, which nobody tells. */
  looksEvery = 250;
  clearings = 0;
  errors = 0;
  #functions;
  #name;
  #numbers = new Float64Array(3);

  constructor({ max, maxAge, clock, shared }) {
    const { name, directory, maxKeys = 0, room = 0 } = shared;
    const { createSharedSlots } = loadBinding();
    if (createSharedSlots === undefined) throwUnsupported();
    this.#name = name;
    /** The native side does not own these: they must live as long as its functions. */
    this.callbacks = {
      numbers: this.#numbers,
      refuse: throwInvalidId,
      exhausted: throwOutOfMemory,
      failed: throwSharedErrorOf(name),
    };
    const options = {
      ...{ name, directory, maxKeys, max, room },
      maxAge: maxAge === undefined ? 0 : durationToMicros(maxAge),
      hasClock: clock !== undefined,
    };
    this.#functions = createSharedSlots(options, this.callbacks);
    /** The host's, which others judge the end of what is held here by. */
    this.readClock = this.#functions.now;
  }

  acquire(id, cost, max, now = Number.NaN) {
    const numbers = this.#numbers;
    numbers[0] = max;
    numbers[1] = cost;
    numbers[2] = now;
    this.#functions.acquire(id);
    return numbers[0];
  }

  get handle() {
    return this.#numbers[1];
  }

  get isFull() {
    return this.#numbers[1] !== 0;
  }

  get fullness() {
    const what = this.#numbers[0] < -1 ? 'holder of an id (shared.room)' : 'id (maxKeys)';
    return `the shared limiter '${this.#name}' has no room for another ${what}, so it is refused`;
  }

  release(hold) {
    return this.#asFarAsPossible(this.#functions.release, hold);
  }

  holds(hold) {
    return this.#asFarAsPossible(this.#functions.counts, hold);
  }

  /** In a damaged region nothing counts. Timers ask, too, and no caller would get the error. */
  #asFarAsPossible(ask, { handle }) {
    try {
      this.#numbers[0] = handle;
      ask();
      return this.#numbers[0] !== 0;
    } catch {
      this.errors++;
      return false;
    }
  }

  used(id, now = Number.NaN) {
    this.#numbers[0] = now;
    return this.#functions.used(id);
  }

  /** Only an acquisition finds out. */
  hasRoom() {
    return true;
  }

  clear(id) {
    this.#functions.clear(id);
  }

  clearAll() {
    this.#functions.clear();
  }

  stats() {
    this.#functions.stats();
    const [keys, held, bytes] = this.#numbers;
    return { keys, held, bytes };
  }

  close() {
    this.#functions.close();
  }
}

module.exports = { SharedCounts };
