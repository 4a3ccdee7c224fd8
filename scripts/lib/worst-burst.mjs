// Searches for the most actions that a limiter allows within any period of a given length.
//
// A client gets the most by attempts as soon as one is allowed, except while it saves up
// for a burst. So every pattern has bursts and pauses, and from some moment on an attempt
// whenever one is allowed. Times are whole ms, and the interval is 100,000 ms.
import RateLimiter from '../../lib/index.js';
import { countBack } from './algorithm-runs.mjs';

export const LIMIT = { interval: 100_000, maxInInterval: 100 };

/** The parts of the interval in which actions are counted. */
export const STRETCHES = { interval: 1, tenth: 1 / 10, thousandth: 1 / 1000 };

const { interval, maxInInterval } = LIMIT;

/** Repeatable numbers from 0 to 1 (xorshift32). */
function randomNumbers(seed) {
  let x = seed;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) / 2 ** 32;
  };
}

/** Bursts as [ms, attempts]; the last one has no end: attempts whenever one is allowed. */
function* patterns() {
  const places = [0, 1, 0.1 * interval, 0.5 * interval, 0.9 * interval, interval - 2, interval - 1];
  for (const first of places) {
    for (const size of [1, maxInInterval / 2, maxInInterval - 1, maxInInterval]) {
      for (const then of places) yield [[first, size], [interval + then]];
    }
    yield [[first]];
  }
  const random = randomNumbers(2026);
  const upTo = (most) => Math.floor(random() * (most + 1));
  for (let i = 0; i < 300; i++) {
    const bursts = Array.from({ length: upTo(5) }, () => [upTo(3 * interval), upTo(maxInInterval)]);
    yield [...bursts.sort(([a], [b]) => a - b), [upTo(4 * interval)]];
  }
}

/** When a pattern's attempts are allowed, the longest wait of a refused one, and of the whole limit at once. */
function follow(pattern, algorithm) {
  let now = 0;
  const limiter = RateLimiter({ ...LIMIT, algorithm, countBlocked: false, clock: () => now });
  const allowedAt = [];
  let longestWait = 0;
  let untilAll = 0;
  const attempt = () => {
    const timeLeft = limiter('id');
    if (timeLeft === 0) allowedAt.push(now);
    longestWait = Math.max(longestWait, timeLeft);
    return timeLeft;
  };
  for (const [start, attempts] of pattern) {
    now = Math.max(now, start);
    if (attempts === undefined) {
      for (const end = now + 2.5 * interval; now < end; ) now += attempt();
    } else {
      for (let i = 0; i < attempts; i++) attempt();
    }
    const { timeLeft } = limiter.peek('id', { cost: maxInInterval });
    untilAll = Math.max(untilAll, timeLeft);
  }
  limiter.close();
  return { allowedAt, longestWait, untilAll };
}

/**
 * @returns {{ most: { interval: number, tenth: number, thousandth: number }, longestWait: number,
 *   untilAll: number }} the most that was allowed within any such period; the longest wait of a
 *   refused attempt, and of one for the whole limit, in intervals
 */
export function search(algorithm) {
  const most = { interval: 0, tenth: 0, thousandth: 0 };
  let longestWait = 0;
  let untilAll = 0;
  for (const pattern of patterns()) {
    const found = follow(pattern, algorithm);
    longestWait = Math.max(longestWait, found.longestWait / interval);
    untilAll = Math.max(untilAll, found.untilAll / interval);
    for (const [name, part] of Object.entries(STRETCHES)) {
      for (let i = 0; i < found.allowedAt.length; i++) {
        most[name] = Math.max(most[name], countBack(found.allowedAt, i, part * interval));
      }
    }
  }
  return { most, longestWait, untilAll };
}
