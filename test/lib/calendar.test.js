// Calendar windows against a table that zdump and plain arithmetic made; the conformance suite has some by hand.
'use strict';

const { LONGEST_MS, Calendar, calendarOf } = require('../../lib/base/calendar');
const { ENTRIES, VERSION } = require('../support/boundaries');
const { offsetAt, windowAt } = require('../support/local-time');
const { expectEqual } = require('../support/outcome');
const { casesOf } = require('../support/tiers');
const { randomFrom, randomStartsOn } = require('../support/traces');

const UNITS = Object.keys(LONGEST_MS);

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
    const startsOn = randomStartsOn(random, unit);
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
    const startsOn = randomStartsOn(random, unit);
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
