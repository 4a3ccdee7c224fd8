// Ids that are hammered by the built-in clock, held against the clock of the process.
'use strict';

const RateLimiter = require('../..');
const { Admissions } = require('./admissions');

const LIMITS = [
  { interval: 50, maxInInterval: 7 },
  { interval: 400, maxInInterval: 30 },
];
/** Between the two clocks. */
const TOLERANCE_MS = 1;
const IDS = 5;
const SLICE_MS = 5;

function hammer(soak) {
  const limiter = RateLimiter({ limits: LIMITS, countBlocked: false });
  const known = Array.from({ length: IDS }, (_, i) => ({
    id: `hammered ${i}`,
    windows: LIMITS.map((limit) => new Admissions(limit, TOLERANCE_MS)),
    allowedFrom: Number.POSITIVE_INFINITY, // as the refusals since the last admission tell
  }));
  let passers = 0;

  function attempt(one) {
    const start = performance.now();
    const timeLeft = limiter(one.id);
    const end = performance.now();
    if (timeLeft > 0) {
      if (start > one.allowedFrom) soak.violate(`refused for ${timeLeft} ms after it had waited`);
      one.allowedFrom = Math.min(one.allowedFrom, end + timeLeft + TOLERANCE_MS);
      return;
    }
    one.allowedFrom = Number.POSITIVE_INFINITY;
    for (const window of one.windows) {
      if (window.add(start, end)) continue;
      const { maxInInterval, interval } = window.limit;
      soak.violate(`more than ${maxInInterval} passed in ${interval} ms`);
    }
  }

  return soak.repeat(() => {
    const until = performance.now() + SLICE_MS;
    while (performance.now() < until) {
      for (const one of known) attempt(one);
      limiter(`passer-by ${passers++}`);
      soak.count('attempts in real time', IDS + 1);
    }
  });
}

module.exports = { hammer };
