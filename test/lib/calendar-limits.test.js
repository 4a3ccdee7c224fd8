// Calendar windows in limits and in calls: what is wrong with them, what a Decision shows, what setLimits may change.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { catchError, setUp: open } = require('../support/set-up');

const MONTH = { calendar: 'month', maxInInterval: 2 };
const at = (iso) => Date.parse(iso);

/** On a clock that is moved by hand, at the end of October in Berlin. */
function setUp(limits = [MONTH], options = {}) {
  const opened = open({ limits, algorithm: 'fixed-window', countBlocked: false, ...options });
  opened.time.set(at('2026-10-31T22:00Z'));
  return opened;
}

describe('the options', () => {
  const UNITS = 'expected one of hour, day, week, month, year, got';
  const ZONE = 'expected the IANA name of a time zone that this host knows, got';
  const YEAR = "expected a day of a leap year as 'MM-DD', got";
  const NO_START = "requires calendar 'week', 'month' or 'year'";
  const DAY_OF_MONTH = 'expected an integer from 1 to 31, got';
  const DAY_OF_WEEK = 'expected an integer from 1 to 7 (Monday is 1), got';
  const CONFLICT = "conflicts with 'calendar'";
  const interval = { calendar: undefined, interval: 5 };
  const shown = (value) => (typeof value === 'string' ? `"${value}" (string)` : `${value}`);

  // Kills: a check that is left out; a window of both kinds.
  test.each([
    [TypeError, 'calendar', ['monthly', 'fortnight'], {}, UNITS],
    [TypeError, 'interval', [5], {}, CONFLICT],
    [TypeError, 'windowMs', [5], {}, CONFLICT],
    [RangeError, 'timeZone', ['Mars/Olympus', '+01:00', ''], {}, ZONE],
    [TypeError, 'timeZone', [1], {}, ZONE],
    [RangeError, 'startsOn', [0, 32, 1.5, Number.NaN], {}, DAY_OF_MONTH],
    [TypeError, 'startsOn', ['17', '01-17', null], {}, DAY_OF_MONTH],
    [RangeError, 'startsOn', [0, 8], { calendar: 'week' }, DAY_OF_WEEK],
    [RangeError, 'startsOn', ['02-30', '13-01', '2-29', '00-01'], { calendar: 'year' }, YEAR],
    [TypeError, 'startsOn', [17], { calendar: 'year' }, YEAR],
    [TypeError, 'startsOn', [1], { calendar: 'day' }, NO_START],
    [TypeError, 'startsOn', [1], { calendar: 'hour' }, NO_START],
    [TypeError, 'timeZone', ['UTC'], interval, "requires 'calendar'"],
  ])('a wrong one is a %p: %s %j, with %j', (Class, name, values, others, what) => {
    const { limiter } = setUp([{ interval: 5, maxInInterval: 1 }, MONTH]);
    for (const value of values) {
      const wrong = { ...MONTH, ...others, [name]: value };
      const limits = [{ interval: 5, maxInInterval: 1 }, wrong];
      const end = what.endsWith('got') ? ` ${shown(value)}` : '';
      for (const call of [() => setUp(limits), () => limiter.setLimits(limits)]) {
        const error = catchError(call);
        expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
        const message = `option 'limits[1].${name}': ${what}${end}`;
        expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
      }
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

describe('the calendar of a call', () => {
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

  // Kills: the calendar of a call in calls that its clock makes, and in all after them.
  test('is not that of a call in the middle of it', () => {
    const { limiter, time } = setUp([{ calendar: 'day', maxInInterval: 3 }]);
    time.set(at('2026-03-10T12:00Z'));
    time.onNextReading(() => [limiter.attempt('b'), limiter('b')]);
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
