// Calendar windows in limits and in calls: what is wrong with them, what a Decision shows, what setLimits may change.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { catchError, handClock } = require('../support/set-up');

const MONTH = { calendar: 'month', maxInInterval: 2 };
const at = (iso) => Date.parse(iso);

/** On a clock that is moved by hand, at the end of October in Berlin. */
function setUp(limits = [MONTH], options = {}) {
  const time = handClock(at('2026-10-31T22:00Z'));
  const algorithm = 'fixed-window';
  const limiter = RateLimiter({
    limits,
    algorithm,
    countBlocked: false,
    clock: time.clock,
    ...options,
  });
  return { limiter, time };
}

describe('the options', () => {
  const UNITS = 'expected one of hour, day, week, month, year, got';
  const ZONE = 'expected the IANA name of a time zone that this host knows, got';
  const YEAR = "expected a day of a leap year as 'MM-DD', got";
  const NO_START = "requires calendar 'week', 'month' or 'year'";
  const DAY_OF_MONTH = 'expected an integer from 1 to 31, got';
  const DAY_OF_WEEK = 'expected an integer from 1 to 7 (Monday is 1), got 8';
  const week = { calendar: 'week' };
  const year = { calendar: 'year' };
  const interval = { calendar: undefined, interval: 5 };

  // Kills: a check that is left out; a window of both kinds.
  test.each([
    [{ calendar: 'fortnight' }, TypeError, 'calendar', `${UNITS} "fortnight" (string)`],
    [{ interval: 5 }, TypeError, 'interval', "conflicts with 'calendar'"],
    [{ timeZone: '+01:00' }, RangeError, 'timeZone', `${ZONE} "+01:00" (string)`],
    [{ startsOn: 32 }, RangeError, 'startsOn', `${DAY_OF_MONTH} 32`],
    [{ ...week, startsOn: 8 }, RangeError, 'startsOn', DAY_OF_WEEK],
    [{ ...year, startsOn: '02-30' }, RangeError, 'startsOn', `${YEAR} "02-30" (string)`],
    [{ calendar: 'day', startsOn: 1 }, TypeError, 'startsOn', NO_START],
    [{ ...interval, timeZone: 'UTC' }, TypeError, 'timeZone', "requires 'calendar'"],
  ])('%j is wrong', (limit, Class, name, what) => {
    const { limiter } = setUp([{ interval: 5, maxInInterval: 1 }, MONTH]);
    const limits = [
      { interval: 5, maxInInterval: 1 },
      { ...MONTH, ...limit },
    ];
    const errors = [catchError(() => setUp(limits)), catchError(() => limiter.setLimits(limits))];
    for (const error of errors) {
      expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
      const message = `option 'limits[1].${name}': ${what}`;
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
    }
  });

  // Kills: a check that only some algorithms have.
  test("require the algorithm 'fixed-window'", () => {
    const message = "option 'limits[0].calendar': requires algorithm 'fixed-window'";
    const others = ALGORITHMS.filter((name) => name !== 'fixed-window');
    for (const algorithm of [undefined, ...others]) {
      expect(catchError(() => setUp([MONTH], { algorithm })).message).toBe(message);
    }
  });

  test('belong to limits', () => {
    const error = catchError(() => RateLimiter({ ...MONTH, algorithm: 'fixed-window' }));
    expect(error.message).toContain("'calendar'");
  });

  // Kills: a window that becomes one of another kind or unit, under which its count means nothing.
  test('of setLimits keep the kind and the unit of each window', () => {
    const { limiter } = setUp();
    const messageOf = (limit) => catchError(() => limiter.setLimits([limit]))?.message;
    const expected =
      'option \'limits[0].calendar\': expected "month" (string), as the limiter has it, got';
    expect(messageOf({ ...MONTH, calendar: 'day' })).toBe(`${expected} "day" (string)`);
    expect(messageOf({ interval: 5, maxInInterval: 1 })).toBe(`${expected} undefined`);
    const other = RateLimiter({ interval: 5, maxInInterval: 1, algorithm: 'fixed-window' });
    expect(catchError(() => other.setLimits([MONTH])).message).toContain('expected no calendar');
    limiter.attempt('a');
    expect(messageOf({ calendar: 'month', limit: 7, startsOn: 3, timeZone: 'Asia/Tokyo' })).toBe(
      undefined,
    );
    expect(limiter.attempt('a').limits[0]).toMatchObject({ maxInInterval: 7, used: 2 });
  });
});

// Kills: the longest length of a month, or the other zone's end, as the time until the month is over.
test('a limit of 0 refuses until the end of the longest window', () => {
  const { limiter, time } = setUp([{ ...MONTH, name: 'n', timeZone: 'Europe/Berlin' }]);
  const timeLeft = 3_600_000;
  expect(limiter.attempt('a', { limits: 0 })).toMatchObject({ timeLeft, resetIn: timeLeft });
  expect(limiter.usage('a', { limits: { n: 0 } })).toMatchObject({ allowed: false, timeLeft });
  const calendar = { timeZone: 'UTC' };
  expect(limiter.attempt('a', { limits: 0, calendar }).timeLeft).toBe(2 * timeLeft);
  time.advance(0.5);
  expect(limiter.peek('a', { limits: 0 }).timeLeft).toBe(timeLeft);
  time.advance(0.5);
  expect(limiter.peek('a', { limits: 0 }).timeLeft).toBe(timeLeft - 1);
});

describe('the calendar of a call', () => {
  const ZONE = 'expected the IANA name of a time zone that this host knows, got';

  // Which calls fail, and that nothing is counted then, is tested on every store.
  test.each([
    [{ zone: 'UTC' }, TypeError, expect.stringContaining('unknown option "zone" in calendar')],
    [{ timeZone: 'X/Y' }, RangeError, `option 'calendar.timeZone': ${ZONE} "X/Y" (string)`],
    [{ startsOn: '01-01' }, TypeError, expect.stringContaining("'calendar.startsOn': expected")],
  ])('%j is wrong', (calendar, Class, message) => {
    const { limiter } = setUp([MONTH, { interval: 5, maxInInterval: 1 }]);
    const all = [
      { limiter, id: 'b' },
      { limiter, id: 'a', calendar },
    ];
    for (const error of [
      catchError(() => limiter.attempt('a', { calendar })),
      catchError(() => RateLimiter.attemptAll(all)),
    ]) {
      expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
    }
    expect([limiter.usage('a').used, limiter.usage('b').used]).toEqual([0, 0]);
  });

  // Kills: a start that only one of several windows can have.
  test('needs windows that it is about', () => {
    const messageOf = (limits, calendar) =>
      catchError(() => setUp(limits).limiter.attempt('a', { calendar }))?.message;
    expect(messageOf([{ interval: 5, limit: 5 }], {})).toBe(
      "option 'calendar': requires a limit with calendar 'hour', 'day', 'week', 'month', 'year'",
    );
    expect(messageOf([{ calendar: 'day', limit: 5 }, MONTH], { startsOn: 17 })).toBe(undefined);
    const weekly = [MONTH, { calendar: 'week', limit: 5 }];
    expect(messageOf(weekly, { startsOn: 17 })).toContain('1 to 7');
  });

  // Kills: a zone or a start that the call leaves out and that are not those of the limit.
  test('takes the rest from the limit, and is fixed while the window lasts', () => {
    const { limiter } = setUp([{ ...MONTH, timeZone: 'Europe/Berlin', startsOn: 17 }]);
    const resetIn = (calendar, id = JSON.stringify(calendar)) => {
      return limiter.attempt(id, { calendar }).limits[0].resetIn;
    };
    const from = at('2026-10-31T22:00Z');
    expect(resetIn({})).toBe(at('2026-11-16T23:00Z') - from);
    expect(resetIn({ timeZone: 'Asia/Tokyo' })).toBe(at('2026-11-16T15:00Z') - from);
    expect(resetIn({ startsOn: 31 })).toBe(at('2026-11-29T23:00Z') - from);
    expect(resetIn({ startsOn: 1 }, '{}')).toBe(at('2026-11-16T23:00Z') - from);
    expect(limiter.usage('{}').used).toBe(2);
  });

  // Kills: the calendar of a call in calls that its clock makes, and in all after them.
  test('is not that of a call in the middle of it', () => {
    const now = at('2026-03-10T12:00Z');
    let isNested = true;
    const clock = () => {
      if (isNested) {
        isNested = false;
        limiter.attempt('b');
        limiter('b');
      }
      return now;
    };
    const limits = [{ calendar: 'day', maxInInterval: 3 }];
    const { limiter } = setUp(limits, { clock });
    limiter.attempt('a', { calendar: { timeZone: 'Pacific/Kiritimati' } });
    for (const id of ['b', 'c']) expect(limiter.attempt(id).resetIn).toBe(12 * 3_600_000);
    const calendar = { timeZone: 'Pacific/Kiritimati' };
    expect(limiter.usage('a', { calendar }).resetIn).toBe(22 * 3_600_000);
  });
});

test.each([-62_198_755_200_000, 2 ** 53, 1e300])('at %p ms windows have an end', (ms) => {
  for (const calendar of ['hour', 'day', 'week', 'month', 'year']) {
    const { limiter, time } = setUp([{ calendar, limit: 1, timeZone: 'America/Nuuk' }]);
    time.set(ms);
    const { timeLeft } = limiter.attempt('a', { limits: 0 });
    expect(timeLeft).toBeGreaterThan(0);
    expect(timeLeft).toBeLessThanOrEqual(366 * 86_400_000);
    expect(limiter.attempt('a').allowed).toBe(true);
    expect(limiter.attempt('a').allowed).toBe(false);
  }
});
