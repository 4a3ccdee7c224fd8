// Questions that behaviours ask: what is used, and how much is let in.
'use strict';

const MINUTE_MS = 60_000;

/** Two windows with names. */
const NAMED = {
  limits: [
    { name: 'requests', interval: MINUTE_MS, maxInInterval: 5 },
    { name: 'tokens', interval: 10 * MINUTE_MS, maxInInterval: 3000 },
  ],
};

/** What is used of each window. */
async function usedOf(limiter, id = 'a', options = undefined) {
  const { limits } = await limiter.usage(id, options);
  return limits.map(({ used }) => used);
}

/** How many attempts in a row are allowed, at most `most`; under these limits, if any. */
async function admitted(limiter, most = 20, limits = undefined) {
  for (let n = 0; n < most; n++) {
    const { allowed } = await limiter.attempt('a', { limits });
    if (!allowed) return n;
  }
  return most;
}

module.exports = { NAMED, admitted, usedOf };
