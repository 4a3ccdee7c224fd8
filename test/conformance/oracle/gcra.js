// GCRA by telling the whole story again: the theoretical arrival time after all that was recorded.
'use strict';

const { lastRecordAt } = require('./history');

/** Beyond this some stores give nothing back. */
const MOST_NUMBERED = 2 ** 30;

/** Math.max for bigints. */
function largest(a, b) {
  if (a > b) return a;
  return b;
}

/** Parts of a microsecond in which the emission interval is whole: exact up to 1000 actions. */
function unitsOf({ interval, maxInInterval }) {
  const [length, max] = [BigInt(interval), BigInt(maxInInterval)];
  if (max <= 1000n) return { perMicro: max, emission: length };
  const emission = (length * 1000n + max - 1n) / max;
  return { perMicro: 1000n, emission: largest(emission, 1n) };
}

/**
 * The arrival time after a history. An attempt that is taken back gives what has not leaked of it: above
 * it in the bucket lies what was recorded after it, be that taken back or not; but where the newest is
 * taken back, its place is free.
 */
function tell(history, limit) {
  const { perMicro, emission } = unitsOf(limit);
  const burst = BigInt(limit.maxInInterval) * emission;
  const records = new Map();
  let recorded = 0n; // cost in all
  let arrival;
  let given = 0n; // by the last event
  for (const { at, cost, attempt, takesBack, now } of history) {
    given = 0n;
    if (takesBack === undefined) {
      const moment = BigInt(at) * perMicro;
      arrival =
        (arrival === undefined ? moment : largest(arrival, moment)) + BigInt(cost) * emission;
      recorded += BigInt(cost);
      records.set(attempt, { at, cost: BigInt(cost), end: recorded });
    } else if (records.has(takesBack)) {
      const taken = records.get(takesBack);
      const moment = BigInt(now) * perMicro;
      const left = arrival - (recorded - taken.end) * emission - moment;
      if (left > 0n && moment - BigInt(taken.at) * perMicro < burst) {
        const whole = taken.cost * emission;
        given = left < whole ? left : whole;
        arrival -= given;
      }
      if (taken.end === recorded) recorded -= taken.cost;
    }
  }
  return { arrival, emission, perMicro, given };
}

function usedBy(history, limit) {
  const { arrival, emission, perMicro } = tell(history, limit);
  return (t) => {
    if (arrival === undefined) return 0;
    const ahead = arrival - BigInt(t) * perMicro;
    return ahead <= 0n ? 0 : Number((ahead + emission - 1n) / emission);
  };
}

/**
 * Undefined where the clock has stepped back behind the newest attempt, of which not every store knows,
 * and where more was recorded, or may be, than every store can count.
 */
function findsIn(history, { attempt }, { limits }, now) {
  const newest = Math.max(...history.map(({ at = -Infinity }) => at));
  const recorded = history.reduce((sum, { cost = 0 }) => sum + cost, 0);
  if (now < newest || recorded >= Number.MAX_SAFE_INTEGER) return undefined;
  if (limits.some(({ maxInInterval }) => maxInInterval > MOST_NUMBERED)) return undefined;
  const after = [...history, { takesBack: attempt, now }];
  return limits.some((limit) => tell(after, limit).given > 0n);
}

/** From any admission to any later one: a burst of max and what the time between them has brought. */
function keepsTo(admissions, { interval, maxInInterval }) {
  return admissions.every((first, i) => {
    let sum = 0;
    return admissions.slice(i).every(({ at, cost }) => {
      sum += cost;
      const brought = BigInt(at - first.at) * BigInt(maxInInterval);
      return BigInt(sum - maxInInterval) * BigInt(interval) <= brought;
    });
  });
}

module.exports = {
  clampsTime: false,
  countsBlocked: false,
  examples: {
    kept: [
      [0, 0, 99],
      [0, 0, 100],
    ],
    broken: [
      [90, 90, 110],
      [0, 0, 50, 99, 100],
    ],
  },
  findsIn,
  fullFor: (interval, max) => interval / max,
  keepsTo,
  newestOf: lastRecordAt,
  usedBy,
};
