// The user's clock, checked at every reading.
'use strict';

const { failure, show } = require('./errors');

/** Milliseconds to whole microseconds, the unit of every store. */
function toMicros(ms) {
  return Math.round(ms * 1000);
}

/** A duration that is not zero does not become zero. */
function durationToMicros(ms) {
  return ms > 0 ? Math.max(1, toMicros(ms)) : 0;
}

/**
 * Wraps `() => ms` into `() => us`, which throws ERR_ROLLGATE_CLOCK when the clock throws or gives no
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
    return toMicros(ms);
  };
}

module.exports = { clockReader, durationToMicros };
