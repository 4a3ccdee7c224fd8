// A text that follows from a few numbers, made once where request after request tells the same ones.
'use strict';

const SLOTS = 256; // a power of two

/**
 * A function (limit, remaining, reset) that gives what `make(limit, remaining, reset)` does. Clients that come
 * most are told the same: those with nothing left, and those that come anew. To put a text together, and to
 * make one piece of it where Node checks it, takes as long as to set a header. What is remembered is bounded:
 * a new text takes the place of another.
 */
function rememberForNumbers(make) {
  const slots = new Array(SLOTS).fill(undefined);
  return (limit, remaining, reset) => {
    const index = (remaining * 31 + reset) & (SLOTS - 1);
    const slot = slots[index];
    if (slot !== undefined && slot.remaining === remaining) {
      if (slot.reset === reset && slot.limit === limit) return slot.made;
    }
    const made = make(limit, remaining, reset);
    slots[index] = { limit, remaining, reset, made };
    return made;
  };
}

module.exports = { rememberForNumbers };
