// Calendar windows of a time zone by plain arithmetic, from a list of the changes of its offset. Uses no Intl.
// Times are whole seconds, UTC unless they are called local; a day is a number of days since 1970-01-01.
'use strict';

const HOUR = 3600;
const DAY = 24 * HOUR;

/**
 * @typedef {{ offset: number, changes: [at: number, offset: number][] }} Zone `offset` holds before the first change
 */

/** The parts of time in which the offset stays. */
function partsOf({ offset, changes }) {
  const starts = [[Number.NEGATIVE_INFINITY, offset], ...changes];
  return starts.map(([from, lasting], i) => ({
    from,
    to: starts[i + 1]?.[0] ?? Number.POSITIVE_INFINITY,
    offset: lasting,
  }));
}

const offsetAt = (zone, at) => partsOf(zone).find(({ to }) => at < to).offset;

/** When clocks first show a local time, or a later one if they never show it. */
function firstMoment(zone, local) {
  for (const { from, to, offset } of partsOf(zone)) {
    if (local - offset < to) return Math.max(from, local - offset);
  }
  throw new Error('the last part of time has no end');
}

const dayOf = (year, month, day) => Date.UTC(year, month, day) / 1000 / DAY;

function yearAndMonth(day) {
  const date = new Date(day * DAY * 1000);
  return [date.getUTCFullYear(), date.getUTCMonth()];
}

/** A day of a month, or the last one of a shorter month. */
function dayInMonth(year, month, day) {
  return Math.min(dayOf(year, month, day), dayOf(year, month + 1, 0));
}

/** The `n`-th beginning from that of the window around a local time, in local seconds: 0 or -1 is its own. */
const NTH_LOCAL_START = {
  hour: (local, n) => (Math.floor(local / HOUR) + n) * HOUR,
  day: (local, n) => (Math.floor(local / DAY) + n) * DAY,
  week(local, n, startsOn = 1) {
    const day = Math.floor(local / DAY);
    const monday = 4; // 1970-01-05
    const weeks = Math.floor((day - monday - (startsOn - 1)) / 7) + n;
    return (weeks * 7 + monday + (startsOn - 1)) * DAY;
  },
  month(local, n, startsOn = 1) {
    const [year, month] = yearAndMonth(Math.floor(local / DAY));
    return dayInMonth(year, month + n, startsOn) * DAY;
  },
  year(local, n, startsOn = '01-01') {
    const [month, day] = startsOn.split('-').map(Number);
    const [year] = yearAndMonth(Math.floor(local / DAY));
    return dayInMonth(year + n, month - 1, day) * DAY;
  },
};

/**
 * The calendar window that contains a moment. Its ordinal is the local day on which it begins by the calendar, or the
 * local hour. A window of no length, such as a day that a zone left out, contains nothing.
 */
function windowAt(zone, { calendar, startsOn }, at) {
  const local = at + offsetAt(zone, at);
  const nth = (n) => NTH_LOCAL_START[calendar](local, n, startsOn);
  let n = 3;
  while (firstMoment(zone, nth(n)) > at) n -= 1;
  const start = firstMoment(zone, nth(n));
  const end = firstMoment(zone, nth(n + 1));
  return { ordinal: nth(n) / (calendar === 'hour' ? HOUR : DAY), start, end };
}

module.exports = { offsetAt, windowAt };
