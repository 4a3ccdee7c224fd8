// The counts of a concurrency limiter in the memory of the WebAssembly module: the functions of the addon, in
// JavaScript. src/binding/addon.h says what each does.
'use strict';

const { randomBytes } = require('#platform');
const { idToString } = require('../../base/ids');
const { STATUS } = require('./core');

const SECRET_BYTES = 48;
const NUMBERS = 3;
const NO_MEMORY = -(2 ** 30);

function createHeldCounts(core, maxKeys, callbacks) {
  const { exports } = core;
  const { released, numbers, exhausted } = callbacks;
  /** Undefined before the first call, as in memory-limiter.js. */
  let counts;

  function open() {
    if (counts === undefined) {
      core.reserve('numbers', NUMBERS);
      core.writeBytes(randomBytes(SECRET_BYTES));
      counts = core.own(exports.held_new(maxKeys), exports.held_delete);
    }
    flush();
    return counts.address;
  }

  function flush() {
    const end = released[0];
    for (let i = 1; i <= end; i += 2) {
      exports.held_release(counts.address, released[i], released[i + 1]);
    }
    released[0] = 0;
  }

  return {
    flush,

    acquire(id, max, cost = 1) {
      const text = idToString(id);
      const address = open();
      const used = exports.held_acquire(address, core.writeId(text), cost, max);
      if (used === NO_MEMORY) exhausted();
      core.readNumbers(numbers, 0, NUMBERS);
      return used;
    },

    used(id) {
      const text = idToString(id);
      const address = open();
      return exports.held_used(address, core.writeId(text));
    },

    counts: (handle) => exports.held_counts(handle) !== 0,

    clear(...ids) {
      if (ids.length > 0) {
        const text = idToString(ids[0]);
        const address = open();
        exports.held_clear(address, core.writeId(text));
      } else if (exports.held_clear_all(open()) & STATUS.EXHAUSTED) {
        exhausted();
      }
    },

    stats() {
      exports.held_stats(open());
      core.readNumbers(numbers, 0, NUMBERS);
    },

    close() {
      if (counts !== undefined) core.release(counts, exports.held_delete);
    },
  };
}

module.exports = { createHeldCounts };
