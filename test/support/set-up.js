// A small limiter on a hand-moved clock, and a way to look at what a call throws.
'use strict';

const { InMemoryRateLimiter } = require('../..');
const { handClock } = require('./hand-clock');

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

module.exports = { catchError, setUp };
