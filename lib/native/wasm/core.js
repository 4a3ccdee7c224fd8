// One instance of the core as WebAssembly: the values that cross to it and back, and the life of its objects.
// src/wasm/exchange.h is the other side.
'use strict';

const { throwOutOfMemory } = require('../../base/errors');

/** The bits that calls return. */
const STATUS = { FOUND: 1, EVICTED: 2, EXHAUSTED: 4 };

/** What a call brings of its own: bits. */
const TERMS = { LIMITS: 1, CALENDARS: 2 };

/** An id of at most so many Latin-1 characters is passed as bytes, any other as UTF-16. */
const LONGEST_SHORT_ID = 16;

/** Ids of 8,192 UTF-16 units fit without another reservation. */
const BYTES_AT_FIRST = 16_384;
const NUMBERS_AT_FIRST = 64;

/**
 * The module reads and writes two areas of its memory, of numbers and of bytes. Views of a memory that has grown have
 * no elements, so `refresh` comes before each use of a view.
 */
class Core {
  /** Undefined on workerd with a compatibility date before May 2025: there, only `release` frees. */
  #collected =
    typeof FinalizationRegistry === 'undefined'
      ? undefined
      : new FinalizationRegistry((held) => this.#freeCollected(held));
  #addresses = { numbers: 0, bytes: 0 };
  #sizes = { numbers: 0, bytes: 0 };

  /** How many objects of the module are in use. */
  live = 0;

  /**
   * The `span` and `findWindow` of the limiter that is called: see src/binding/host_calendars.h. They stay here
   * after the call, so nothing in them may refer to the limiter.
   */
  calendars;

  /** Whether a call has left its part of the module's stack behind. */
  #isUnclean = false;
  #resetStack;

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    const find_window = (...asked) => this.#findWindow(asked);
    const { exports } = new WebAssembly.Instance(module, { rollgate: { find_window } });
    const { _initialize, reset_stack, memory, ...functions } = exports;
    this.memory = memory;
    this.#resetStack = reset_stack;
    /** The functions of the module. */
    this.exports = Object.fromEntries(
      Object.entries(functions).map(([name, call]) => [name, this.#guarded(call)]),
    );
    _initialize();
    this.reserve('numbers', NUMBERS_AT_FIRST);
    this.reserve('bytes', BYTES_AT_FIRST);
  }

  /**
   * After an exception of the host, such as an overflow of its own stack in the middle of a call, the next call gives
   * the module its stack back: to do so at once could overflow again.
   */
  #guarded(call) {
    return (a, b, c, d, e, f, g) => {
      if (this.#isUnclean) this.#clean();
      try {
        return call(a, b, c, d, e, f, g);
      } catch (error) {
        this.#isUnclean = true;
        throw error;
      }
    };
  }

  #clean() {
    this.#resetStack();
    this.#isUnclean = false;
  }

  #findWindow([index, at, isOfCall]) {
    const { span, findWindow } = this.calendars;
    findWindow(index, at, isOfCall !== 0);
    this.refresh();
    this.numbers.set(span);
  }

  /** Room for so many elements of the area 'numbers' or 'bytes'; what it held is lost if it grows. */
  reserve(area, count) {
    if (count > this.#sizes[area]) {
      // A number that no area of a 32-bit memory has would wrap around.
      const address = count < 2 ** 31 ? this.exports[area](count) : 0;
      if (address === 0) throwOutOfMemory();
      this.#addresses[area] = address >>> 0;
      this.#sizes[area] = count;
      this.#view();
    }
    this.refresh();
  }

  refresh() {
    if (this.bytes.length === 0) this.#view();
  }

  #view() {
    const { buffer } = this.memory;
    this.numbers = new Float64Array(buffer, this.#addresses.numbers, this.#sizes.numbers);
    this.bytes = new Uint8Array(buffer, this.#addresses.bytes, this.#sizes.bytes);
  }

  /** Writes an id; returns what tells the module how it is written: ReadIdentity. */
  writeId(id) {
    const { length } = id;
    if (length > LONGEST_SHORT_ID) return this.#writeUnits(id);
    this.refresh();
    const { bytes } = this;
    let all = 0;
    for (let i = 0; i < length; i++) {
      const unit = id.charCodeAt(i);
      bytes[i] = unit;
      all |= unit;
    }
    return all < 0x100 ? length : this.#writeUnits(id);
  }

  #writeUnits(id) {
    const { length } = id;
    this.reserve('bytes', 2 * length);
    const units = new Uint16Array(this.bytes.buffer, this.#addresses.bytes, length);
    for (let i = 0; i < length; i++) units[i] = id.charCodeAt(i);
    return ~length;
  }

  /** Writes bytes; returns how many. */
  writeBytes(source) {
    this.reserve('bytes', source.length);
    this.bytes.set(source);
    return source.length;
  }

  /** A copy of bytes that the module wrote. */
  copyBytes(address, size) {
    return this.memory.buffer.slice(address, address + size);
  }

  /** Writes a policy of nativePolicy (policy.js). */
  writePolicy(policy) {
    this.reserve('numbers', policy.length);
    this.numbers.set(policy);
  }

  /** Writes the limits of a call behind the costs, if these Terms of src/wasm/exchange.h say that it has any. */
  writeLimits(terms, limits) {
    if ((terms & TERMS.LIMITS) !== 0) this.writeCosts(limits, limits.length);
  }

  /** A cost as a parameter: itself; or -1 for costs by window, which are written from number `start` on. */
  writeCosts(cost, start = 0) {
    if (typeof cost === 'number') return cost;
    this.refresh();
    this.numbers.set(cost, start);
    return -1;
  }

  /** Copies the first `count` numbers. */
  readNumbers(target, start, count) {
    this.refresh();
    const { numbers } = this;
    for (let i = 0; i < count; i++) target[start + i] = numbers[i];
  }

  /** A handle of an object of the module: freed by `release`, or some time after the handle was dropped. */
  own(address, free) {
    if (address === 0) throwOutOfMemory();
    const handle = { address };
    this.#collected?.register(handle, { address, free }, handle);
    this.live++;
    return handle;
  }

  release(handle, free) {
    if (handle.address === 0) return;
    this.#collected?.unregister(handle);
    this.#free({ address: handle.address, free });
    handle.address = 0;
  }

  #free({ address, free }) {
    this.live--;
    free(address);
  }

  /** Not called by users, so an error would end the process. What is left of a broken store is lost. */
  #freeCollected(held) {
    try {
      this.#free(held);
    } catch {}
  }
}

module.exports = { Core, STATUS, TERMS };
