// Times in us: durations, and the user's clock, checked at every reading.
'use strict';

const { failure, show } = require('./errors');

/** Milliseconds to whole microseconds, the unit of every store. */
function toMicros(ms) {
  return Math.round(ms * 1000);
}

/** 73,000 years: the bound of the core, which counts in 64 bits. */
const LONGEST_MICROS = 2 ** 61;

/** Never rounds a positive duration to zero; LONGEST_MICROS at most. */
function durationToMicros(ms) {
  return ms > 0 ? Math.min(Math.max(1, toMicros(ms)), LONGEST_MICROS) : 0;
}

/**
 * Wraps `() => ms` into `() => us`, which throws ERR_ROLLGATE_CLOCK if the clock throws or does not return a
 * finite number.
 */
function clockReader(clock, onFailure) {
  return () => {
    let ms;
    try {
      ms = clock();
    } catch (cause) {
      onFailure();
      throw failure('ERR_ROLLGATE_CLOCK', 'the clock threw an error', cause);
    }
    if (typeof ms !== 'number' || !Number.isFinite(ms)) {
      onFailure();
      throw failure(
        'ERR_ROLLGATE_CLOCK',
        `the clock: expected a finite number of ms, got ${show(ms)}`,
      );
    }
    return Math.min(Math.max(toMicros(ms), -LONGEST_MICROS), LONGEST_MICROS);
  };
}

module.exports = { clockReader, durationToMicros };
