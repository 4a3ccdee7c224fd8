// How many actions the algorithms allow in one interval, wherever it begins.
'use strict';

const RateLimiter = require('../..');
const { handClock } = require('../support/set-up');

/** Of 10 in a second: what is allowed of a burst at the end of a window, and of even attempts in less than a second after it. */
function mostOf(algorithm) {
  const time = handClock();
  const limits = { interval: 1000, maxInInterval: 10, countBlocked: false };
  const limiter = RateLimiter({ ...limits, algorithm, clock: time.clock });
  const burst = Array(10).fill(999);
  const even = Array.from({ length: 100 }, (_, i) => 1000 + i * 9.9);
  const allowed = [...burst, ...even].filter((at) => {
    time.set(at);
    return limiter('a') === 0;
  });
  return allowed.length;
}

// Kills: another default; a burst that is not made up for, or that leaves no room until the interval is over.
test.each([
  [undefined, 10],
  ['sliding-window-log', 10],
  ['sliding-window-counter', 20],
  ['fixed-window', 20],
  ['gcra', 19],
])('%s allows up to %i of 10 within an interval', (algorithm, most) => {
  expect(mostOf(algorithm)).toBe(most);
});
