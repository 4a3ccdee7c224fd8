// A timeout of any length: Node's own end at 2^31 ms, and begin anew with 1 ms.
'use strict';

const LONGEST_TIMER = 2 ** 31 - 1;

/** Calls back in so many ms; returns what calls it off. It keeps the process alive, as setTimeout does. */
function longTimeout(callback, ms) {
  let left = ms;
  let timer;
  function begin() {
    const step = Math.min(left, LONGEST_TIMER);
    left -= step;
    timer = setTimeout(left > 0 ? begin : callback, step);
  }
  begin();
  return () => clearTimeout(timer);
}

module.exports = { longTimeout };
