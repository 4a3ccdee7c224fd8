// Measures the tables of docs/algorithms.md: node scripts/measure-algorithms.mjs [bursts] [memory].
import RateLimiter from '../lib/index.js';
import { ALGORITHMS } from './lib/algorithm-runs.mjs';
import { search } from './lib/worst-burst.mjs';

const twoDecimals = (number) => Math.round(number * 100) / 100;

function bursts() {
  return ALGORITHMS.map((algorithm) => {
    const { most, longestWait, untilAll } = search(algorithm);
    const waits = [longestWait, untilAll].map(twoDecimals);
    return [`\`${algorithm}\``, most.interval, most.tenth, most.thousandth, ...waits];
  });
}

/** This number fills the table to nearly the load at which it grows. */
const IDS = 125_000;

const TEN = { interval: 60_000, maxInInterval: 10 };
const SHAPES = [
  { limiter: TEN, cost: 1 },
  { limiter: { ...TEN, minDifference: 1 }, cost: 1 },
  { limiter: { limits: [TEN, { interval: 3_600_000, maxInInterval: 10 }] }, cost: 1 },
  { limiter: { ...TEN, blockFor: 1000 }, cost: 1 },
  { limiter: { ...TEN, maxInInterval: 100 }, cost: 100 },
];

function bytesOfId(algorithm, { limiter: options, cost }) {
  const limiter = RateLimiter({ ...options, algorithm, countBlocked: false, clock: () => 0 });
  for (let i = 0; i < IDS; i++) limiter.attempt(`user-${i}`, { cost });
  const { bytes, keys } = limiter.stats();
  limiter.close();
  return Math.round(bytes / keys);
}

function memory() {
  return ALGORITHMS.map((algorithm) => [
    `\`${algorithm}\``,
    ...SHAPES.map((shape) => bytesOfId(algorithm, shape)),
  ]);
}

const TABLES = { bursts, memory };
const chosen = process.argv.slice(2);
for (const [name, table] of Object.entries(TABLES)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  for (const row of table()) console.log(`| ${row.join(' | ')} |`);
}
