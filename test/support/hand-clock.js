// A clock that moves only when a test moves it.
'use strict';

/** `clock` is what a limiter takes; times are ms, fractions allowed. */
function handClock(startMs = 1_000_000) {
  let nowMs = startMs;
  return {
    clock: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
    set: (ms) => {
      nowMs = ms;
    },
  };
}

module.exports = { handClock };
