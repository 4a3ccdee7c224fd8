// Runs one pattern of attempts on a limiter of each algorithm, with a manual clock.

import RateLimiter from '../../lib/index.js';
import { ALGORITHMS } from '../../lib/options/algorithms.js';

export { ALGORITHMS };

/** The limit of the pictures: times are ms. */
export const LIMIT = { interval: 10_000, maxInInterval: 10 };
export const END = 50_000;

const STEP = 50;

function every(step, from, to) {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);
}

/** When attempts are made, and what part of the pattern they are. */
export const PARTS = [
  { name: 'trickle', times: every(2000, 1000, 15_000) },
  { name: 'burst', times: every(100, 19_100, 20_800) },
  { name: 'hammering', times: every(250, 24_000, 34_000) },
  { name: 'burst', times: every(100, 46_000, 47_300) },
];

/** How many of these ascending times lie within `interval` up to and including the i-th. */
export function countBack(times, i, interval) {
  let n = 1;
  while (n <= i && times[i] - times[i - n] < interval) n += 1;
  return n;
}

/** Whether windows are aligned to the clock, so that how long an action counts depends on its time. */
export function hasEdges(algorithm) {
  const resets = [0.3, 0.6].map((part) => {
    const clock = () => part * LIMIT.interval;
    return RateLimiter({ ...LIMIT, algorithm, clock }).attempt('id').resetIn;
  });
  return resets[0] !== resets[1];
}

/**
 * @returns {{ attempts: { time: number, allowed: boolean }[], uses: { time: number, used: number,
 *   inside: number }[], most: number }} `used` is the algorithm's own count, `inside` how many were
 *   allowed in the last interval; `most` is the most of that
 */
export function run(algorithm) {
  let now = 0;
  const clock = () => now;
  const limiter = RateLimiter({ ...LIMIT, algorithm, countBlocked: false, clock });
  const due = new Set(PARTS.flatMap(({ times }) => times));
  const attempts = [];
  const allowedAt = [];
  const uses = [];
  for (; now <= END; now += STEP) {
    if (due.has(now)) {
      const { allowed } = limiter.attempt('id');
      attempts.push({ time: now, allowed });
      if (allowed) allowedAt.push(now);
    }
    // A peek shows the state after the attempt, which includes it if it would be allowed.
    const { allowed, limits } = limiter.peek('id');
    const used = limits[0].used - (allowed ? 1 : 0);
    const inside = allowedAt.filter((time) => now - time < LIMIT.interval).length;
    uses.push({ time: now, used, inside });
  }
  const most = Math.max(...allowedAt.map((_, i) => countBack(allowedAt, i, LIMIT.interval)));
  return { attempts, uses, most };
}
