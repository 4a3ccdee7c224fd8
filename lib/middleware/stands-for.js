// A function in place of a user's, which checks of the user's source text must look behind.
'use strict';

const originals = new WeakMap();

/** `substitute`, known to stand for `original`. */
function standsFor(original, substitute) {
  originals.set(substitute, original);
  return substitute;
}

function originalOf(fn) {
  return originals.get(fn) ?? fn;
}

module.exports = { originalOf, standsFor };
