// The oracle's rules of counts: fixed windows, of intervals and of calendars, and the sliding window counter.
'use strict';

const { hasNames, largestSum, lastRecordAt, standing, sumOf } = require('./history');

const { floor, max, min } = Math;
const [big, number] = [BigInt, Number];

const NARROW = 2 ** 24 - 1;
const isWide = (limits) => limits.some(({ maxInInterval }) => maxInInterval >= NARROW);

/**
 * Counts stop here; policies with small limits and without names have small counts, unless the store counts in
 * full (`countsInFull`: the scripts on Redis).
 */
function largestCount(history, policy) {
  const isLarge = ({ limits = [], largestOwn }) => isWide(limits) || largestOwn >= NARROW;
  const hasLarge = isWide(policy.limits) || history.some(isLarge);
  return hasLarge || hasNames(policy) || policy.countsInFull ? 2 ** 53 - 1 : NARROW;
}

/** Whether a small count may have stopped: that of a record, or under limits of calls. */
function maySaturate(history, policy) {
  const isPlain = policy.seen === undefined && !history.some(({ isRecord }) => isRecord);
  if (isPlain || hasNames(policy)) return false;
  let hasLarge = false;
  let sum = 0;
  return history.some(({ costs, limits, largestOwn }) => {
    if (costs === undefined) return false;
    hasLarge ||= isWide(limits) || largestOwn >= NARROW;
    sum += Math.max(...costs);
    return !hasLarge && sum >= NARROW;
  });
}

/** Number of the window, aligned to the epoch, that contains a moment. */
const windowOf = (t, interval) => floor(t / interval);

/** How much was recorded in the n-th window of an interval, as a function of n. */
function countsOf(history, i, policy) {
  const counts = new Map();
  const most = largestCount(history, policy);
  for (const { at, costs } of standing(history)) {
    const n = windowOf(at, policy.limits[i].interval);
    counts.set(n, min((counts.get(n) ?? 0) + costs[i], most));
  }
  return (n) => counts.get(n) ?? 0;
}

/**
 * Whether a count that is kept for so many windows still contains an attempt. Unknown if the id may have
 * expired, or if a count may have stopped at the largest.
 */
function findsWithin(windows, history, { at }, policy, now) {
  const newest = lastRecordAt(history);
  if (largestSum(history, policy) >= largestCount(history, policy)) return undefined;
  const intervals = policy.limits.flatMap(({ interval }) => interval ?? []);
  const calendars = policy.limits.flatMap((limit, i) =>
    limit.calendar ? calendarCount(history, i, policy) : [],
  );
  const isKept =
    now - newest < windows * max(...intervals) || calendars.some(({ end }) => now < end);
  if (!isKept) return undefined;
  const isIn = (interval) => windowOf(newest, interval) - windowOf(at, interval) < windows;
  return intervals.some(isIn) || calendars.some(({ begunAt }) => at >= begunAt);
}

/**
 * Whether a window that has ended goes on: if the calendar of a call has the same window, to a later end. Zone data of
 * another host may have moved it.
 */
function goesOn(window, { ordinal, start }) {
  return ordinal === window.ordinal && start < window.end;
}

/** The window of a calendar that an id's newest action is in, and its count. The zone and day are those it began with. */
function calendarCount(history, i, { findWindow }) {
  let window = { begunAt: Infinity, end: -Infinity, ordinal: -Infinity };
  for (const { at, limits } of history.filter((entry) => entry.at !== undefined)) {
    if (at < window.end) continue;
    const found = findWindow(limits[i].calendar, at);
    const { ordinal, end } = found;
    window = goesOn(window, found) ? { ...window, end } : { begunAt: at, end, ordinal };
  }
  const counted = standing(history).filter(({ at }) => at >= window.begunAt);
  return { ...window, count: sumOf(counted, i) };
}

function usedOfCalendar(history, i, policy) {
  const { count, ...window } = calendarCount(history, i, policy);
  const { calendar } = policy.limits[i];
  const lasts = (t) => t < window.end || goesOn(window, policy.findWindow(calendar, t));
  return (t) => (count > 0 && lasts(t) ? count : 0);
}

const fixedWindow = {
  clampsTime: true,
  countsBlocked: true,
  newestOf: lastRecordAt,

  usedBy(history, i, policy) {
    const { interval, calendar } = policy.limits[i];
    if (calendar) return usedOfCalendar(history, i, policy);
    const countIn = countsOf(history, i, policy);
    return (t) => countIn(windowOf(t, interval));
  },

  isOpen: maySaturate,
  findsIn: (...args) => findsWithin(1, ...args),
  fullFor: (interval) => interval,
  keeps: ['0 0 100', '90 90 110'],
};

const slidingWindowCounter = {
  clampsTime: true,
  countsBlocked: true,
  newestOf: lastRecordAt,

  /** floor(current + previous x overlap), in exact integers. */
  usedBy(history, i, policy) {
    const { interval } = policy.limits[i];
    const countIn = countsOf(history, i, policy);
    const length = big(interval);
    return (t) => {
      const n = windowOf(t, interval);
      const overlap = big(n + 1) * length - big(t); // of `length`
      return countIn(n) + number((big(countIn(n - 1)) * overlap) / length);
    };
  },

  isOpen: maySaturate,
  findsIn: (...args) => findsWithin(2, ...args),
  // The first place becomes free one microsecond after the window ended.
  fullFor: (interval) => interval + 1,
  keeps: ['90 90 110'],
};

module.exports = { fixedWindow, slidingWindowCounter };
