// The oracle's rule of the log.
'use strict';

const { hasNames, longestOf, standing, sumOf } = require('./history');

const { max } = Math;

const MOST_STAMPS = 1024;

/**
 * What is left in a log without names: it has room for the largest maximum, of the limiter or of the call, or for what
 * it has already, without what the newest action before the call does not need. For records it has more.
 */
function keptInLog(history, policy) {
  const longest = longestOf(policy);
  const { roomForRecords = MOST_STAMPS } = policy;
  const actual = new Map(history.map((entry) => [entry.settles, entry.actual?.[0]]));
  let log = [];
  let displaces = false;
  for (const { at, costs, attempt, limits, own, isRecord } of history) {
    if (attempt === undefined) continue;
    const newest = log.at(-1)?.at;
    const needed = log.filter((each) => newest - each.at < longest);
    const largest = max(own, ...limits.map(({ maxInInterval }) => maxInInterval));
    const room = max(largest, sumOf(needed, 0), isRecord ? roomForRecords : 0);
    log = [...log, { at, costs: [actual.get(attempt) ?? costs[0]] }];
    for (let excess = sumOf(log, 0) - room; excess > 0; excess = sumOf(log, 0) - room) {
      const [oldest, ...others] = log;
      displaces ||= at - oldest.at < longest;
      const rest = oldest.costs[0] - excess;
      log = rest > 0 ? [{ ...oldest, costs: [rest] }, ...others] : others;
    }
    log = log.filter(({ costs: [cost] }) => cost > 0);
  }
  return { log, displaces };
}

/**
 * Whether a log without names may have another form, which keeps everything: after costs under large limits, or after a
 * large limit of any call of the limiter.
 */
function mayKeepAll(history, { seen = 0 }) {
  if (seen > MOST_STAMPS) return true;
  const isLarge = ({ own = 0 }) => own > MOST_STAMPS;
  return history.some(isLarge) && history.some(({ costs }) => costs?.[0] > 1);
}

const slidingWindowLog = {
  clampsTime: true,
  countsBlocked: true,
  keepsMax: true,
  newestOf: (history) => standing(history).at(-1)?.at,

  /** An action is in the window if it happened less than the interval ago. */
  usedBy(history, i, policy) {
    const isNamed = hasNames(policy);
    const records = isNamed ? standing(history) : keptInLog(history, policy).log;
    const { interval } = policy.limits[i];
    return (t) =>
      sumOf(
        records.filter(({ at }) => at > t - interval && at <= t),
        isNamed ? i : 0,
      );
  },

  /** Whether stores keep different amounts of what counts: also room for what a limiter allowed before. */
  isOpen(history, policy) {
    if (hasNames(policy)) return false;
    const mayHaveRoom =
      mayKeepAll(history, policy) || history.some(({ own, largestOwn }) => own < largestOwn);
    return mayHaveRoom && keptInLog(history, policy).displaces;
  },

  /** Unknown if others may have displaced it, the clock stepped back, or it left every window. */
  findsIn(history, { at }, policy, now) {
    const isLate = now - at >= longestOf(policy);
    if (policy.countBlocked || isLate || now < this.newestOf(history)) return undefined;
    if (!hasNames(policy) && keptInLog(history, policy).displaces) return undefined;
    return true;
  },

  fullFor: (interval) => interval,
  keeps: ['0 0 100'],
};

module.exports = slidingWindowLog;
