// One instance of the core as WebAssembly: the values that cross to it and back, and the life of its objects.
// src/wasm/exchange.h is the other side.
'use strict';

const { throwOutOfMemory } = require('../../base/errors');

/** The bits that calls return. */
const STATUS = { FOUND: 1, EVICTED: 2, EXHAUSTED: 4 };

/** An id of at most so many Latin-1 characters is passed as bytes, any other as UTF-16. */
const LONGEST_SHORT_ID = 16;

/** The numbers of a policy before those of its windows. */
const POLICY_HEAD = 7;

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
  #numbersAt;
  #numbersSize = NUMBERS_AT_FIRST;
  #bytesAt;
  #bytesSize = BYTES_AT_FIRST;

  /** How many objects of the module are in use. */
  live = 0;

  /** Whether a call has left its part of the module's stack behind. */
  #isUnclean = false;
  #resetStack;

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    const { _initialize, reset_stack, memory, ...functions } = new WebAssembly.Instance(module, {})
      .exports;
    this.memory = memory;
    this.#resetStack = reset_stack;
    /** The functions of the module. */
    this.exports = Object.fromEntries(
      Object.entries(functions).map(([name, call]) => [name, this.#guarded(call)]),
    );
    _initialize();
    this.#numbersAt = this.#reserve('numbers', NUMBERS_AT_FIRST);
    this.#bytesAt = this.#reserve('bytes', BYTES_AT_FIRST);
    this.#view();
  }

  /**
   * After an exception of the host, such as an overflow of its own stack in the middle of a call, the next call gives
   * the module its stack back: to do so at once could overflow again.
   */
  #guarded(call) {
    return (a, b, c, d, e, f, g, h, i) => {
      if (this.#isUnclean) this.#clean();
      try {
        return call(a, b, c, d, e, f, g, h, i);
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

  /** Room for so many numbers; what the area held is lost if it grows. */
  reserveNumbers(count) {
    if (count > this.#numbersSize) {
      this.#numbersAt = this.#reserve('numbers', count);
      this.#numbersSize = count;
      this.#view();
    }
    this.refresh();
  }

  /** The same for bytes. */
  reserveBytes(count) {
    if (count > this.#bytesSize) {
      this.#bytesAt = this.#reserve('bytes', count);
      this.#bytesSize = count;
      this.#view();
    }
    this.refresh();
  }

  /** @returns the address of the area */
  #reserve(area, count) {
    // A number that no area of a 32-bit memory has would wrap around.
    const address = count < 2 ** 31 ? this.exports[area](count) : 0;
    return address === 0 ? throwOutOfMemory() : address >>> 0;
  }

  refresh() {
    if (this.bytes.length === 0) this.#view();
  }

  #view() {
    const { buffer } = this.memory;
    this.numbers = new Float64Array(buffer, this.#numbersAt, this.#numbersSize);
    this.bytes = new Uint8Array(buffer, this.#bytesAt, this.#bytesSize);
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
    this.reserveBytes(2 * length);
    const units = new Uint16Array(this.bytes.buffer, this.#bytesAt, length);
    for (let i = 0; i < length; i++) units[i] = id.charCodeAt(i);
    return ~length;
  }

  /** Writes bytes; returns how many. */
  writeBytes(source) {
    this.reserveBytes(source.length);
    this.bytes.set(source);
    return source.length;
  }

  /** A copy of bytes that the module wrote. */
  copyBytes(address, size) {
    return this.memory.buffer.slice(address, address + size);
  }

  /** Writes a policy of nativePolicy (options.js) for ReadPolicy. */
  writePolicy({ windows, minDifference, countBlocked, algorithm, blocks, setsMax, isWeighted }) {
    const parts = [countBlocked, algorithm, setsMax, isWeighted, windows.length / 2, blocks.length];
    this.reserveNumbers(POLICY_HEAD + windows.length + blocks.length);
    this.numbers.set([minDifference, ...parts, ...windows, ...blocks]);
  }

  /** Writes costs from number `start` on, if they differ between windows; returns how many. */
  writeCosts(cost, start = 0) {
    if (typeof cost === 'number') return 0;
    this.refresh();
    this.numbers.set(cost, start);
    return cost.length;
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

/** A cost as a parameter of the module, which reads numbers if costs differ between windows. */
function uniform(cost) {
  return typeof cost === 'number' ? cost : 0;
}

module.exports = { Core, STATUS, uniform };
