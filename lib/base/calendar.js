// Calendar windows: the hours, days, weeks, months and years of a time zone. Zone data is that of the host (Intl).
'use strict';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The longest time in which a window of each unit can be of interest, in ms: clocks and zones change by a day at most. */
const LONGEST_MS = {
  hour: 3 * HOUR,
  day: 50 * HOUR,
  week: 7 * DAY + 26 * HOUR,
  month: 31 * DAY + 26 * HOUR,
  year: 366 * DAY + 26 * HOUR,
};

const UNITS = Object.keys(LONGEST_MS);

/** No zone was ever farther from UTC. */
const LARGEST_OFFSET = 16 * HOUR;

/** A formatter takes 30 KB, so only these many zones have one at a time; a calendar that was used is 300 bytes. */
const MOST_ZONES = 500;
const MOST_CALENDARS = 10_000;

/** A map that forgets the entry it has had the longest. */
class BoundedMap extends Map {
  #most;

  constructor(most) {
    super();
    this.#most = most;
  }

  set(key, value) {
    if (this.size >= this.#most) this.delete(this.keys().next().value);
    return super.set(key, value);
  }
}

const formatters = new BoundedMap(MOST_ZONES);

/** @throws RangeError for a zone that the host does not know */
function formatterOf(timeZone) {
  let formatter = formatters.get(timeZone);
  if (formatter === undefined) {
    formatter = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
    formatters.set(timeZone, formatter);
  }
  return formatter;
}

/** Whether this is an IANA name that the host knows. Newer hosts take offsets such as '+01:00' as well. */
function isTimeZone(name) {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return formatterOf(name) !== undefined;
  } catch {
    return false;
  }
}

/** 'GMT', 'GMT+05:45'; with seconds for times before zones. */
const OFFSET = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;

/** How far local time is ahead of UTC at a moment, in ms. */
function offsetAt(timeZone, ms) {
  // Formatters cut fractions off, which for moments before 1970 is up.
  const [, sign, hours = 0, minutes = 0, seconds = 0] = OFFSET.exec(
    formatterOf(timeZone).format(Math.floor(ms)),
  );
  const offset = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
  return sign === '-' ? -offset : offset;
}

/**
 * The first moment at which local time is `local` (ms, as if it was UTC) or later. So a time that does not exist is
 * the next moment that does. An offset does not change twice within two days of interest.
 */
function firstMoment(timeZone, local) {
  let before = local - LARGEST_OFFSET;
  let after = local + LARGEST_OFFSET;
  const offset = offsetAt(timeZone, before);
  const offsetAfter = offsetAt(timeZone, after);
  if (offset === offsetAfter) return local - offset;
  while (after - before > 1000) {
    const middle = before + Math.ceil((after - before) / 2000) * 1000;
    if (offsetAt(timeZone, middle) === offset) before = middle;
    else after = middle;
  }
  return local - offset < after ? local - offset : Math.max(after, local - offsetAfter);
}

/** The day since 1970-01-01, of the last day of the month if that is earlier. Months are numbered from 0. */
function dayOf(year, month, day) {
  const last = new Date(0).setUTCFullYear(year, month + 1, 0);
  return Math.min(new Date(0).setUTCFullYear(year, month, day), last) / DAY;
}

/**
 * Windows have numbers. `near(date)`: that of a local date's window, or the next. `ordinal(number, startsOn)`: when it
 * begins: the local date as days since 1970-01-01, or local hours since then.
 */
const RULES = {
  hour: { near: (date) => Math.floor(date / HOUR), ordinal: (number) => number },
  day: { near: (date) => Math.floor(date / DAY), ordinal: (number) => number },
  week: {
    near: (date) => Math.floor((Math.floor(date / DAY) + 3) / 7),
    ordinal: (number, startsOn) => 7 * number + startsOn - 4, // the first Monday is day 4
  },
  month: {
    near: (date) => date.getUTCFullYear() * 12 + date.getUTCMonth(),
    ordinal: (number, startsOn) => dayOf(0, number, startsOn),
  },
  year: {
    near: (date) => date.getUTCFullYear(),
    ordinal(number, startsOn) {
      const [month, day] = startsOn.split('-').map(Number);
      return dayOf(number, month - 1, day);
    },
  },
};

const DEFAULT_STARTS = { week: 1, month: 1, year: '01-01' };

/** The windows of a unit in a time zone. Moments are ms since 1970, to ±2^61 us. */
class Calendar {
  #number;
  #window = { ordinal: 0, start: 0, end: 0 };
  #around;

  /** @param {number | string} [startsOn] week: 1 (Monday) to 7; month: 1 to 31; year: 'MM-DD'. Checked, as the zone is */
  constructor(unit, timeZone, startsOn = DEFAULT_STARTS[unit]) {
    this.unit = unit;
    this.timeZone = timeZone;
    this.startsOn = startsOn;
  }

  /** The window that contains a moment: { ordinal, start, end }, the same object while moments stay in it. */
  windowAt(ms) {
    const { start, end } = this.#window;
    if (ms < start || ms >= end) this.#find(ms);
    return this.#window;
  }

  /**
   * Ordinal and start of the previous, the current and the next window, and the end of the next; moments in us. The
   * same array while moments stay in the current window.
   */
  around(ms) {
    const { ordinal, start, end } = this.windowAt(ms);
    if (this.#around !== undefined) return this.#around;
    let previous = this.#number - 1;
    while (this.#startOf(previous) === start) previous -= 1;
    let next = this.#number + 1;
    while (this.#startOf(next + 1) === end) next += 1;
    const starts = [this.#startOf(previous), start, end, this.#startOf(next + 1)].map(
      (moment) => moment * 1000,
    );
    const [first, current, second, last] = starts;
    const ordinals = [this.#ordinalOf(previous), ordinal, this.#ordinalOf(next)];
    this.#around = Float64Array.of(
      ordinals[0],
      first,
      ordinals[1],
      current,
      ordinals[2],
      second,
      last,
    );
    return this.#around;
  }

  /** By the starts of windows: after clocks were set back over midnight, a local date comes a second time. */
  #find(ms) {
    const local = Math.floor(ms) + offsetAt(this.timeZone, ms);
    let number = RULES[this.unit].near(new Date(local));
    while (this.#localStartOf(number) > local) number -= 1;
    let start = this.#startOf(number);
    let end = this.#startOf(number + 1);
    // Windows that end as they begin are skipped here as well.
    while (end <= ms) {
      number += 1;
      start = end;
      end = this.#startOf(number + 1);
    }
    this.#number = number;
    this.#window = { ordinal: this.#ordinalOf(number), start, end };
    this.#around = undefined;
  }

  #ordinalOf(number) {
    return RULES[this.unit].ordinal(number, this.startsOn);
  }

  #localStartOf(number) {
    return this.#ordinalOf(number) * (this.unit === 'hour' ? HOUR : DAY);
  }

  #startOf(number) {
    return firstMoment(this.timeZone, this.#localStartOf(number));
  }
}

const calendars = new BoundedMap(MOST_CALENDARS);

/** The Calendar of a checked unit, zone and start: the same object for the same, unless it was forgotten. */
function calendarOf(unit, timeZone, startsOn = DEFAULT_STARTS[unit]) {
  const key = `${unit} ${startsOn} ${timeZone}`;
  let calendar = calendars.get(key);
  if (calendar === undefined) {
    calendar = new Calendar(unit, timeZone, startsOn);
    calendars.set(key, calendar);
  }
  return calendar;
}

module.exports = { Calendar, LONGEST_MS, UNITS, calendarOf, isTimeZone };
