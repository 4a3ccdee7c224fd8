// The rule of each algorithm, checked afterwards on the record of what was let through.
'use strict';

const sumOf = (admissions) => admissions.reduce((sum, { cost }) => sum + cost, 0);

/** In no span of one interval more than max. */
function keepsToLog(admissions, { interval, maxInInterval }) {
  return admissions.every(({ at }) => {
    const span = admissions.filter((other) => other.at > at - interval && other.at <= at);
    return sumOf(span) <= maxInInterval;
  });
}

const within = (admissions, n, interval) =>
  admissions.filter(({ at }) => Math.floor(at / interval) === n);

function keepsToFixedWindow(admissions, { interval, maxInInterval }) {
  return admissions.every(({ at }) => {
    return sumOf(within(admissions, Math.floor(at / interval), interval)) <= maxInInterval;
  });
}

/** Whole places are given away: as many as current + previous x overlap, rounded down, leaves. */
function keepsToCounter(admissions, { interval, maxInInterval }) {
  return admissions.every(({ at, cost }, i) => {
    const n = Math.floor(at / interval);
    const before = admissions.slice(0, i);
    const current = sumOf(within(before, n, interval));
    const previous = sumOf(within(before, n - 1, interval));
    const weighed = BigInt(previous) * BigInt((n + 1) * interval - at);
    return current + Number(weighed / BigInt(interval)) + cost <= maxInInterval;
  });
}

/** From any admission to any later one: a burst of max and what the time between them has brought. */
function keepsToGcra(admissions, { interval, maxInInterval }) {
  return admissions.every((first, i) => {
    let sum = 0;
    return admissions.slice(i).every(({ at, cost }) => {
      sum += cost;
      const brought = BigInt(at - first.at) * BigInt(maxInInterval);
      return BigInt(sum - maxInInterval) * BigInt(interval) <= brought;
    });
  });
}

const RULES = {
  'sliding-window-log': keepsToLog,
  'sliding-window-counter': keepsToCounter,
  'fixed-window': keepsToFixedWindow,
  gcra: keepsToGcra,
};

/** Whether { at, cost } in the order of their times, in us, keep to a policy, refusals left aside. */
function keepsTo({ algorithm, limits, minDifference }, admissions) {
  const isApart = admissions.every(
    ({ at }, i) => i === 0 || at - admissions[i - 1].at >= minDifference,
  );
  return isApart && limits.every((limit) => RULES[algorithm](admissions, limit));
}

module.exports = { keepsTo };
