// How much of each id is held in this process: native sums, for LocalSlots.
'use strict';

const { loadBinding } = require('#native');
const { throwInvalidId, throwOutOfMemory } = require('../base/errors');

/** So many releases are noted before `flush` passes them on. Every other native call passes them on, too. */
const MOST_NOTED = 64;

const LARGEST_KEYS = 2 ** 48;

class HeldCounts {
  hasOthers = false;
  errors = 0;
  /** How many there have been. A hold has the number of its time: with another one, its handle may be void. */
  clearings = 0;
  #functions;
  #maxKeys;
  /** For the native side: how many numbers follow; a handle and a cost for each release. */
  #released = new Float64Array(1 + 2 * MOST_NOTED);
  /** What the native side says beside its result. */
  #numbers = new Float64Array(3);

  constructor(maxKeys) {
    this.#maxKeys = maxKeys;
    /** The native side does not own these: they must live as long as its functions. */
    this.callbacks = {
      released: this.#released,
      numbers: this.#numbers,
      refuse: throwInvalidId,
      exhausted: throwOutOfMemory,
    };
    const create = loadBinding().createHeldCounts;
    this.#functions = create(Math.min(maxKeys, LARGEST_KEYS), this.callbacks);
  }

  /** What is used of the id then, with a `handle` of it; if it is refused, -1 - what is used, and perhaps `isFull`. */
  acquire(id, cost, max) {
    const { acquire } = this.#functions;
    return cost === 1 ? acquire(id, max) : acquire(id, max, cost);
  }

  get handle() {
    return this.#numbers[0];
  }

  get isFull() {
    return this.#numbers[1] !== 0;
  }

  get fullness() {
    return `slots of ${this.#maxKeys} ids are held (maxKeys), so other ids are refused`;
  }

  /** Returns whether it counted until now. To be called once. */
  release(hold) {
    const counted = this.holds(hold);
    const released = this.#released;
    const end = released[0];
    released[end + 1] = hold.handle;
    released[end + 2] = hold.cost;
    released[0] = end + 2;
    if (end + 2 === 2 * MOST_NOTED) this.#functions.flush();
    return counted;
  }

  /** Whether it counts. */
  holds({ clearings, handle }) {
    return clearings === this.clearings || this.#functions.counts(handle);
  }

  used(id) {
    return this.#functions.used(id);
  }

  hasRoom() {
    return this.stats().keys < this.#maxKeys;
  }

  clear(id) {
    this.#functions.clear(id);
    this.clearings++;
  }

  clearAll() {
    this.#functions.clear();
    this.clearings++;
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

module.exports = { HeldCounts };
