// A clock moved by hand, a small limiter on it, and a way to look at what a call throws.
'use strict';

const { InMemoryRateLimiter } = require('../..');

/** `clock` is what a limiter takes; times are ms, fractions allowed. Its next reading calls `onNextReading` first. */
function handClock(startMs = 1_000_000) {
  let nowMs = startMs;
  let call;
  return {
    clock() {
      const due = call;
      call = undefined;
      due?.();
      return nowMs;
    },
    onNextReading: (given) => {
      call = given;
    },
    advance: (ms) => {
      nowMs += ms;
    },
    set: (ms) => {
      nowMs = ms;
    },
  };
}

/** At most two actions in 10 ms unless `options` say otherwise. */
function setUp(options) {
  const time = handClock();
  const limiter = new InMemoryRateLimiter({
    interval: 10,
    maxInInterval: 2,
    clock: time.clock,
    ...options,
  });
  return { limiter, time };
}

/** The error that a call throws; undefined if it throws none. */
function catchError(call) {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}

module.exports = { catchError, handClock, setUp };
