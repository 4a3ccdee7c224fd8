// How long to wait after a lost race, so that those who raced do not meet again.
'use strict';

/** ms, at most, the first time; it doubles with each. */
const FIRST = 1;
const LONGEST = 64;

/** Those who wait have deadlines, which keep the process alive. */
function backOff(times) {
  const longest = Math.min(FIRST * 2 ** times, LONGEST);
  return new Promise((resolve) => setTimeout(resolve, Math.random() * longest).unref());
}

module.exports = { backOff };
