// The oracle's rule of GCRA, in exact integers.
'use strict';

const { largestSum } = require('./history');

const { max } = Math;
const [big, number] = [BigInt, Number];

/** Above this max, 53 bits cannot tell each attempt from those before the id was cleared. */
const MOST_TOLD_APART = 2 ** 40;

/** Math.max and Math.min take no BigInt. */
const ordered = (a, b) => (a < b ? [a, b] : [b, a]);

/** Parts of a microsecond in which the emission interval is whole: exact up to 1000 actions. */
function unitsOf({ interval, maxInInterval }) {
  const [length, most] = [big(interval), big(max(maxInInterval, 1))];
  const perMicro = ordered(most, 1000n)[0];
  const emission = ordered((length * perMicro + most - 1n) / most, 1n)[1];
  return { perMicro, emission, full: most * emission };
}

/** An arrival time that was recorded under one limit, in units of another: what has not leaked is the same share. */
function convert({ arrival, newest, units }, other) {
  const moment = big(newest) * units.perMicro;
  const [, ahead] = ordered(0n, arrival - moment);
  const converted = (ahead * other.emission + units.emission - 1n) / units.emission;
  return big(newest) * other.perMicro + converted;
}

const isSame = (units, other) =>
  units.perMicro === other.perMicro &&
  units.emission === other.emission &&
  units.full === other.full;

/** As a limit reads it, which may be another one; a maximum of 0 has no units. */
function readUnder(bucket, limit) {
  if (bucket.arrival === undefined || limit.maxInInterval === 0) return bucket;
  const units = unitsOf(limit);
  return { arrival: isSame(bucket.units, units) ? bucket.arrival : convert(bucket, units), units };
}

/**
 * The theoretical arrival time of a window after a history, and what its last entry found to settle. A refund gives
 * back what has not leaked of its attempt. All later attempts are above it in the bucket, even those that were taken
 * back, except for the newest: its place becomes free. Each recorded action brings the state under the limit of its
 * call; what is settled leaves it there.
 */
function replayBucket(history, i) {
  const records = new Map();
  let recorded = 0n; // total cost
  let bucket = { arrival: undefined, newest: undefined, units: undefined };
  let found = false;
  for (const { at, costs, attempt, limits, settles, actual, now } of history) {
    found = false;
    if (settles === undefined) {
      bucket = recordIn(bucket, limits[i], at, big(costs[i]));
      recorded += big(costs[i]);
      records.set(attempt, { at, cost: big(costs[i]), end: recorded });
    } else if (records.has(settles)) {
      const taken = records.get(settles);
      const less = taken.cost - big(actual[i]);
      const { perMicro, emission, full } = bucket.units;
      const moment = big(max(now, bucket.newest)) * perMicro;
      const left = bucket.arrival - (recorded - taken.end) * emission - moment;
      found = left > 0n && moment - big(taken.at) * perMicro < full;
      if (found)
        bucket = { ...bucket, arrival: bucket.arrival - ordered(left, less * emission)[0] };
      if (taken.end === recorded) recorded -= less;
    }
  }
  return { ...bucket, found };
}

function recordIn(bucket, limit, at, cost) {
  const newest = max(bucket.newest ?? at, at);
  const isFirst = bucket.arrival === undefined;
  // An action that asks nothing of a window whose limit is 0 leaves its units.
  const read = isFirst ? { units: unitsOf(limit) } : readUnder(bucket, limit);
  const moment = big(at) * read.units.perMicro;
  const from = isFirst ? moment : ordered(read.arrival, moment)[1];
  return { arrival: from + cost * read.units.emission, newest, units: read.units };
}

const gcra = {
  clampsTime: false,
  countsBlocked: false,
  newestOf(history) {
    const moments = history.flatMap(({ at }) => at ?? []);
    return moments.length === 0 ? undefined : max(...moments);
  },

  usedBy(history, i, policy) {
    const { arrival, units } = readUnder(replayBucket(history, i), policy.limits[i]);
    return (t) => {
      if (arrival === undefined) return 0;
      const ahead = arrival - big(t) * units.perMicro;
      return ahead <= 0n ? 0 : number((ahead + units.emission - 1n) / units.emission);
    };
  },

  /** Unknown if numbers are too large to tell, or if everything has leaked: the id may be forgotten. */
  findsIn(history, { attempt, costs }, policy, now) {
    if (largestSum(history, policy) >= Number.MAX_SAFE_INTEGER) return undefined;
    if (now < this.newestOf(history)) return undefined;
    const after = [...history, { settles: attempt, actual: costs.map(() => 0), now }];
    return policy.limits.some((_, i) => replayBucket(after, i).found);
  },

  mayFindGone: ({ limits }) => limits.some(({ maxInInterval }) => maxInInterval > MOST_TOLD_APART),
  fullFor: (interval, most) => interval / most,
  keeps: ['0 0 99', '0 0 100'],
};

module.exports = gcra;
