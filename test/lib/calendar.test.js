// Calendar windows against a table that zdump and plain arithmetic made, and against moments written by hand.
'use strict';

const { LONGEST_MS, Calendar, calendarOf } = require('../../lib/base/calendar');
const { ENTRIES, VERSION } = require('../support/boundaries');
const { offsetAt, windowAt } = require('../support/local-time');
const { expectEqual } = require('../support/outcome');
const { casesOf } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const UNITS = Object.keys(LONGEST_MS);
const DAY_MS = 24 * 3_600_000;

/** How the host says how far a zone is ahead of UTC, in seconds; undefined if it does not know the zone. */
function hostOffsets(timeZone) {
  let format;
  try {
    format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  } catch {
    return () => undefined;
  }
  return (at) => {
    const shown = format.format(at * 1000);
    const [, sign, hours = 0, minutes = 0] = /GMT(?:([+-])(\d\d):(\d\d))?$/.exec(shown);
    return (sign === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
  };
}

/** Every zone of the table, and at which moments the host has another offset than the table. */
const ZONES = ENTRIES.flatMap((entry) =>
  entry.names.map((name) => {
    const offsetOf = hostOffsets(name);
    const differs = (at) => offsetOf(at) !== offsetAt(entry, at);
    const moments = [
      ...entry.changes.flatMap(([at]) => [at - 1, at]),
      Date.UTC(entry.from, 6) / 1000,
    ];
    return { name, entry, differs, different: moments.filter(differs) };
  }),
);
const SAME_ZONES = ZONES.filter(({ different }) => different.length === 0);

const milliseconds = ({ ordinal, start, end }) => ({
  ordinal,
  start: start * 1000,
  end: end * 1000,
});

test('the host knows nearly all zones as the table does', () => {
  const others = ZONES.filter(({ different }) => different.length > 0);
  if (others.length > 0) {
    const list = others.map(
      ({ name, different: [at] }) => `${name} (${new Date(at * 1000).toISOString()})`,
    );
    console.info(`not compared with ${VERSION}, where the host's zones differ: ${list.join(', ')}`);
  }
  expect(others.length).toBeLessThanOrEqual(10);
  expect(ZONES.length).toBeGreaterThan(400);
});

// Kills: an offset of the wrong day; a day that begins at 01:00 by its date; hours that are aligned to UTC.
test.each(UNITS)('every window of a %s around every change of an offset', (unit) => {
  let compared = 0;
  for (const { name, entry, differs } of ZONES) {
    const calendar = new Calendar(unit, name);
    const flat = entry.windows[unit];
    for (let i = 0; i < flat.length; i += 2) {
      const [ordinal, start] = [flat[i], flat[i + 1]];
      if (differs(start - 1) || differs(start)) continue;
      const ms = start * 1000;
      const before = calendar.windowAt(ms - 0.001);
      expectEqual([before.end, before.ordinal < ordinal], [ms, true], { name, ordinal });
      const window = { ...calendar.windowAt(ms) };
      expectEqual([window.start, window.ordinal], [ms, ordinal], { name, ordinal });
      compared += 1;
    }
  }
  expect(compared).toBeGreaterThan(2000);
});

const startsOnOf = (random, unit) => {
  if (unit === 'week') return random.between(1, 7);
  if (unit === 'month') return random.between(1, 31);
  if (unit !== 'year') return undefined;
  const [month, day] = [random.between(1, 12), random.between(1, 28)];
  const date = [month, day].map((part) => String(part).padStart(2, '0')).join('-');
  return random.pick(['02-29', '12-31', '01-31', date]);
};

/** A moment within the years of an entry, often near a change of the offset. */
function momentOf(random, { from, to, changes }) {
  const [first, last] = [Date.UTC(from, 0) / 1000, Date.UTC(to, 11, 31) / 1000];
  const near = changes.filter(([at]) => at > first && at < last);
  const moment = near.length > 0 && random.chance(60) ? random.pick(near)[0] : undefined;
  const step = random.pick([1, 1800, 3600, 86_400]);
  return moment === undefined ? random.between(first, last) : moment + random.between(-3, 3) * step;
}

// Kills: a beginning in a shorter month; a window that is found by its date alone where a date comes twice.
test('windows at random moments, with beginnings of all kinds', () => {
  const random = randomFrom(7);
  for (let i = 0; i < casesOf(40_000); i++) {
    const { name, entry } = random.pick(SAME_ZONES);
    const unit = random.pick(UNITS);
    const startsOn = startsOnOf(random, unit);
    const at = momentOf(random, entry);
    const expected = milliseconds(windowAt(entry, { calendar: unit, startsOn }, at));
    const window = { ...new Calendar(unit, name, startsOn).windowAt(at * 1000) };
    expectEqual(window, expected, { name, unit, startsOn, at });
  }
});

// Kills: the empty window of a day that a zone left out; a window that is longer than states are kept.
test('windows follow each other without gaps, and their ordinals grow', () => {
  const random = randomFrom(8);
  for (let i = 0; i < casesOf(3000); i++) {
    const special = SAME_ZONES.filter(({ entry }) => entry.from < 2024);
    const { name, entry } = random.pick(random.chance(20) ? special : SAME_ZONES);
    const unit = random.pick(UNITS);
    const startsOn = startsOnOf(random, unit);
    const calendar = new Calendar(unit, name, startsOn);
    const context = { name, unit, startsOn };
    let { ordinal, start, end } = calendar.windowAt(momentOf(random, entry) * 1000);
    for (let turn = 0; turn < 5; turn++) {
      const around = Array.from(calendar.around(end - 0.001));
      const next = { ...calendar.windowAt(end) };
      expectEqual(
        around.slice(2),
        [ordinal, start * 1000, next.ordinal, end * 1000, next.end * 1000],
        context,
      );
      expectEqual([around[0] < ordinal, around[1] < start * 1000], [true, true], context);
      expectEqual({ ...calendar.windowAt(next.end - 0.001) }, next, context);
      expectEqual([next.start, next.end > end, next.ordinal > ordinal], [end, true, true], context);
      expectEqual(next.end - next.start <= LONGEST_MS[unit], true, { ...context, next });
      ({ ordinal, start, end } = next);
    }
    const previous = calendar.windowAt(start - 0.001);
    expectEqual(previous.end, start, context);
  }
});

/** The beginning, the end and, where the unit is longer than an hour, the date of the ordinal. */
function shown(calendar, moment) {
  const { ordinal, start, end } = calendar.windowAt(Date.parse(moment));
  const iso = (ms) => new Date(ms).toISOString().slice(0, 16);
  const name =
    calendar.unit === 'hour' ? iso(ordinal * 3_600_000) : iso(ordinal * DAY_MS).slice(0, 10);
  return [name, iso(start), iso(end)].join(' ');
}

const BERLIN = 'Europe/Berlin';
const APIA = 'Pacific/Apia';
test.each([
  // A billing period where the clocks of summer are two hours ahead of UTC; the last day of shorter months.
  ['month', BERLIN, 17, '2026-07-17T00:00Z', '2026-07-17 2026-07-16T22:00 2026-08-16T22:00'],
  ['month', 'UTC', 31, '2026-02-27T23:59Z', '2026-01-31 2026-01-31T00:00 2026-02-28T00:00'],
  ['month', 'UTC', 30, '2028-02-29T00:00Z', '2028-02-29 2028-02-29T00:00 2028-03-30T00:00'],
  ['year', 'UTC', '02-29', '2027-02-28T00:00Z', '2027-02-28 2027-02-28T00:00 2028-02-29T00:00'],
  // 2026-11-27 is a Friday.
  ['week', 'UTC', undefined, '2026-11-27T00:30Z', '2026-11-23 2026-11-23T00:00 2026-11-30T00:00'],
  ['week', 'UTC', 7, '1969-12-31T00:00Z', '1969-12-28 1969-12-28T00:00 1970-01-04T00:00'],
  // A day that never was, and two hours that came twice.
  ['week', APIA, 5, '2011-12-30T10:00Z', '2011-12-30 2011-12-30T10:00 2012-01-05T10:00'],
  [
    'hour',
    'Antarctica/Troll',
    undefined,
    '2026-10-25T02:59Z',
    '2026-10-25T02:00 2026-10-25T00:00 2026-10-25T03:00',
  ],
])('the %s in %s that starts on %s, at %s', (unit, timeZone, startsOn, moment, expected) => {
  expect(shown(new Calendar(unit, timeZone, startsOn), moment)).toBe(expected);
});

test('an equal calendar is the same object', () => {
  expect(calendarOf('month', 'UTC', 1)).toBe(calendarOf('month', 'UTC'));
  expect(calendarOf('month', 'UTC', 2)).not.toBe(calendarOf('month', 'UTC', 1));
  expect(calendarOf('week', 'UTC', 1)).not.toBe(calendarOf('month', 'UTC', 1));
  expect(calendarOf('day', 'UTC')).not.toBe(calendarOf('day', 'Europe/Berlin'));
});

// Kills: a formatter for each call; boundaries that are computed for each check.
test('a window is found once', () => {
  const calendar = new Calendar('day', 'Europe/Berlin');
  const window = calendar.windowAt(0);
  expect(calendar.windowAt(1000)).toBe(window);
  const around = calendar.around(0);
  expect(calendar.around(1000)).toBe(around);
});
