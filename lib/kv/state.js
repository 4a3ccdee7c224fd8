// What can be found under the key of an id, besides the bytes of the core.
'use strict';

const { types } = require('node:util');

/** The state of an id that has done nothing. */
const NOTHING = undefined;

/** In place of a state: something that nobody here wrote. */
const FOREIGN = null;

/** Stands for NOTHING in stores that cannot delete. The core begins no state with a zero. */
const CLEARED = Uint8Array.of(0);

/** @returns {Uint8Array | NOTHING | FOREIGN} */
function readState(value) {
  if (!types.isUint8Array(value) || value.length === 0) return FOREIGN;
  return value.length === 1 && value[0] === CLEARED[0] ? NOTHING : value;
}

module.exports = { CLEARED, FOREIGN, NOTHING, readState };
