// The built-in clock of limiters in the module's memory, in us. With aligned windows, it follows the wall clock.
'use strict';

const { monotonicMs } = require('#platform');

const monotonic = () => Math.floor(monotonicMs() * 1000);

/** As in src/core/limiter_clock.h and alignment.h, which say why, in us. */
const FOLLOWS_EVERY = 100_000;
const TOLERANCE = 1000;

/**
 * @param {() => number} longestInterval in us; windows begin at its multiples. If it gives undefined, no window is
 *   aligned
 */
function createOwnClock(longestInterval) {
  let offset = 0;
  let lead = 0;
  let followsAt = Number.NEGATIVE_INFINITY;

  /** FollowWall of src/core/alignment.h. */
  function followWall(now, period) {
    const wall = Math.floor(Date.now() * 1000) - now;
    const whole = lead - (lead % period);
    const step = wall + whole - offset;
    if (Math.abs(step) < TOLERANCE) return;
    lead = whole - Math.min(whole, step - (step % period));
    offset = wall + lead;
  }

  return () => {
    const now = monotonic();
    if (now >= followsAt) {
      const period = longestInterval();
      followsAt = period === undefined ? Number.POSITIVE_INFINITY : now + FOLLOWS_EVERY;
      if (period !== undefined) followWall(now, period);
    }
    return now + offset;
  };
}

module.exports = { createOwnClock };
