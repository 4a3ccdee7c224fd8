// Calendar windows in options: those of a limiter's limits, and those that one call brings.
'use strict';

const { UNITS, calendarOf, isTimeZone } = require('../base/calendar');
const { optionError, optionTypeError } = require('../base/errors');
const { readInteger, readObject, readString, rejectUnknownOptions } = require('./values');

/** The names of options that only a limit with `calendar` has. */
const OF_CALENDARS = ['timeZone', 'startsOn'];

/** Readers of `startsOn`, by unit: hours and days always start the same. */
const READ_START = {
  week: (name, value) => readInteger(name, value, 1, 7, ' (Monday is 1)'),
  month: (name, value) => readInteger(name, value, 1, 31),
  year: (name, value) => readString(name, value, "a day of a leap year as 'MM-DD'", isDay),
};

function isDay(string) {
  const date = new Date(`2000-${string}`);
  return !Number.isNaN(date.getTime()) && date.toISOString().slice(5, 10) === string;
}

function readTimeZone(name, value) {
  return readString(name, value, 'the IANA name of a time zone that this host knows', isTimeZone);
}

/** The Calendar of a limit with `calendar`. */
function readCalendar(place, { calendar: unit, timeZone = 'UTC', startsOn }) {
  if (!UNITS.includes(unit)) {
    throw optionTypeError(`${place}.calendar`, `one of ${UNITS.join(', ')}`, unit);
  }
  readTimeZone(`${place}.timeZone`, timeZone);
  if (startsOn === undefined) return calendarOf(unit, timeZone);
  if (READ_START[unit] === undefined) {
    throw optionError(`${place}.startsOn`, `requires calendar 'week', 'month' or 'year'`);
  }
  return calendarOf(unit, timeZone, READ_START[unit](`${place}.startsOn`, startsOn));
}

/**
 * The option `calendar` of a call: the Calendar of each calendar window, undefined for other windows. What the call
 * leaves out is as in the limits.
 *
 * @throws TypeError, RangeError ERR_ROLLGATE_OPTION
 */
function readCalendars(given, windows) {
  rejectUnknownOptions(readObject('calendar', given), OF_CALENDARS, { place: 'calendar' });
  const { timeZone, startsOn } = given;
  const starting = startsOn === undefined ? UNITS : Object.keys(READ_START);
  if (!windows.some(({ calendar }) => starting.includes(calendar?.unit))) {
    const name = startsOn === undefined ? 'calendar' : 'calendar.startsOn';
    throw optionError(name, `requires a limit with calendar '${starting.join("', '")}'`);
  }
  if (timeZone !== undefined) readTimeZone('calendar.timeZone', timeZone);
  return windows.map(({ calendar }) => {
    if (calendar === undefined) return undefined;
    const readStart = startsOn === undefined ? undefined : READ_START[calendar.unit];
    const start = readStart?.('calendar.startsOn', startsOn) ?? calendar.startsOn;
    return calendarOf(calendar.unit, timeZone ?? calendar.timeZone, start);
  });
}

module.exports = { OF_CALENDARS, readCalendar, readCalendars };
