// Calendar windows in limits and in calls: what is wrong with them, what a Decision shows, what setLimits may change.
'use strict';

const RateLimiter = require('../..');
const { errorOf } = require('../support/outcome');
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
  const week = { calendar: 'week' };
  const year = { calendar: 'year' };

  // Kills: a check that is left out; a window of both kinds.
  test.each([
    [{ calendar: 'fortnight' }, TypeError, 'calendar', `${UNITS} "fortnight" (string)`],
    [{ calendar: 5 }, TypeError, 'calendar', `${UNITS} 5`],
    [{ calendar: null }, TypeError, 'calendar', `${UNITS} null`],
    [{ interval: 5 }, TypeError, 'interval', "conflicts with 'calendar'"],
    [{ windowMs: 5 }, TypeError, 'windowMs', "conflicts with 'calendar'"],
    [{ timeZone: 5 }, TypeError, 'timeZone', `${ZONE} 5`],
    [{ timeZone: '' }, RangeError, 'timeZone', `${ZONE} "" (string)`],
    [{ timeZone: 'Mars/Olympus' }, RangeError, 'timeZone', `${ZONE} "Mars/Olympus" (string)`],
    [{ timeZone: '+01:00' }, RangeError, 'timeZone', `${ZONE} "+01:00" (string)`],
    [{ startsOn: 0 }, RangeError, 'startsOn', 'expected an integer from 1 to 31, got 0'],
    [{ startsOn: 32 }, RangeError, 'startsOn', 'expected an integer from 1 to 31, got 32'],
    [{ startsOn: 1.5 }, RangeError, 'startsOn', 'expected an integer from 1 to 31, got 1.5'],
    [
      { startsOn: '1' },
      TypeError,
      'startsOn',
      'expected an integer from 1 to 31, got "1" (string)',
    ],
    [
      { ...week, startsOn: 8 },
      RangeError,
      'startsOn',
      'expected an integer from 1 to 7 (Monday is 1), got 8',
    ],
    [{ ...week, startsOn: 0 }, RangeError, 'startsOn', expect.stringContaining('from 1 to 7')],
    [{ ...year, startsOn: 1 }, TypeError, 'startsOn', `${YEAR} 1`],
    [{ ...year, startsOn: '02-30' }, RangeError, 'startsOn', `${YEAR} "02-30" (string)`],
    [{ ...year, startsOn: '13-01' }, RangeError, 'startsOn', `${YEAR} "13-01" (string)`],
    [{ ...year, startsOn: '2-9' }, RangeError, 'startsOn', `${YEAR} "2-9" (string)`],
    [{ calendar: 'day', startsOn: 1 }, TypeError, 'startsOn', NO_START],
    [{ calendar: 'hour', startsOn: 1 }, TypeError, 'startsOn', NO_START],
    [
      { calendar: undefined, interval: 5, timeZone: 'UTC' },
      TypeError,
      'timeZone',
      "requires 'calendar'",
    ],
    [
      { calendar: undefined, interval: 5, startsOn: 1 },
      TypeError,
      'startsOn',
      "requires 'calendar'",
    ],
  ])('%j is wrong', (limit, Class, name, what) => {
    const { limiter } = setUp([{ interval: 5, maxInInterval: 1 }, MONTH]);
    const limits = [
      { interval: 5, maxInInterval: 1 },
      { ...MONTH, ...limit },
    ];
    const errors = [catchError(() => setUp(limits)), catchError(() => limiter.setLimits(limits))];
    for (const error of errors) {
      expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
      const place = `option 'limits[1].${name}': `;
      const message = typeof what === 'string' ? place + what : what;
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
    }
  });

  test.each([
    { startsOn: 1 },
    { startsOn: 31, timeZone: 'europe/berlin' },
    { calendar: 'week', startsOn: 7 },
    { calendar: 'year', startsOn: '02-29', timeZone: 'Etc/GMT+3' },
    { calendar: 'hour', startsOn: undefined, timeZone: undefined, interval: undefined },
  ])('%j is right', (limit) => {
    expect(setUp([{ ...MONTH, ...limit }]).limiter.attempt('a').allowed).toBe(true);
  });

  // Kills: a calendar that an algorithm ignores, or at the top level.
  test('belong to fixed windows in limits', () => {
    const codeOf = (options) => catchError(() => RateLimiter(options));
    for (const algorithm of [undefined, 'sliding-window-log', 'sliding-window-counter', 'gcra']) {
      const limits = [{ interval: 5, maxInInterval: 1 }, MONTH];
      expect(codeOf({ limits, algorithm })).toMatchObject({
        code: 'ERR_ROLLGATE_OPTION',
        name: 'TypeError',
        message: "option 'limits[1].calendar': requires algorithm 'fixed-window'",
      });
    }
    expect(codeOf({ ...MONTH, algorithm: 'fixed-window' }).message).toContain("'calendar'");
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

// Kills: the internal length of a window in what users see; a window of an interval with a calendar.
test('a Decision and usage have the calendar in place of the interval', () => {
  const { limiter } = setUp([
    { ...MONTH, name: 'calls', timeZone: 'Europe/Berlin' },
    MONTH,
    { interval: 1000, limit: 9 },
  ]);
  const { limits } = limiter.attempt('a', { cost: 2 });
  const HOUR = 3_600_000;
  const month = { calendar: 'month', maxInInterval: 2, used: 2, remaining: 0 };
  expect(limits).toStrictEqual([
    { name: 'calls', ...month, resetIn: HOUR },
    { ...month, resetIn: 2 * HOUR },
    { interval: 1000, maxInInterval: 9, used: 2, remaining: 7, resetIn: 1000 },
  ]);
  expect(limiter.usage('a').limits).toStrictEqual(limits);
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

  // Kills: a calendar that is not looked at by one of the calls; a count before it is.
  test.each([
    [5, TypeError, "option 'calendar': expected an object, got 5"],
    [null, TypeError, "option 'calendar': expected an object, got null"],
    [{ zone: 'UTC' }, TypeError, expect.stringContaining('unknown option "zone" in calendar')],
    [{ timeZone: 5 }, TypeError, `option 'calendar.timeZone': ${ZONE} 5`],
    [{ timeZone: 'X/Y' }, RangeError, `option 'calendar.timeZone': ${ZONE} "X/Y" (string)`],
    [
      { startsOn: 0 },
      RangeError,
      "option 'calendar.startsOn': expected an integer from 1 to 31, got 0",
    ],
    [{ startsOn: '01-01' }, TypeError, expect.stringContaining('from 1 to 31')],
  ])('%j is wrong', async (calendar, Class, message) => {
    const { limiter } = setUp([MONTH, { interval: 5, maxInInterval: 1 }]);
    const all = [
      { limiter, id: 'b' },
      { limiter, id: 'a', calendar },
    ];
    for (const error of [
      catchError(() => limiter.attempt('a', { calendar })),
      catchError(() => limiter.peek('a', { calendar })),
      catchError(() => limiter.usage('a', { calendar })),
      catchError(() => limiter.record('a', { calendar })),
      catchError(() => RateLimiter.attemptAll(all)),
      await errorOf(limiter.wait('a', { calendar })),
    ]) {
      expect(Object.getPrototypeOf(error)).toBe(Class.prototype);
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION', message });
    }
    expect([limiter.usage('a').used, limiter.usage('b').used]).toEqual([0, 0]);
  });

  // Kills: a start that no window has; a start that only one of several windows can have.
  test('needs windows that it is about', () => {
    const messageOf = (limits, calendar) => {
      return catchError(() => setUp(limits).limiter.attempt('a', { calendar }))?.message;
    };
    const day = { calendar: 'day', limit: 5 };
    const without =
      "option 'calendar': requires a limit with calendar 'hour', 'day', 'week', 'month', 'year'";
    expect(messageOf([{ interval: 5, limit: 5 }], {})).toBe(without);
    expect(messageOf([{ interval: 5, limit: 5 }], { timeZone: 'UTC' })).toBe(without);
    expect(messageOf([day], { startsOn: 1 })).toContain("'calendar.startsOn': requires a limit");
    expect(messageOf([day], { timeZone: 'Asia/Tokyo' })).toBe(undefined);
    expect(messageOf([day, MONTH], { startsOn: 17 })).toBe(undefined);
    expect(messageOf([MONTH, { calendar: 'week', limit: 5 }], { startsOn: 17 })).toContain(
      '1 to 7',
    );
    expect(messageOf([MONTH, { calendar: 'year', limit: 5 }], { startsOn: 17 })).toContain(
      "'MM-DD'",
    );
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

  test('is waited for', async () => {
    const { limiter, time } = setUp();
    const calendar = { timeZone: 'Europe/Berlin' };
    limiter.attempt('a', { cost: 2, calendar });
    const waiting = limiter.wait('a', { calendar });
    const hour = 3_600_000;
    time.advance(hour);
    await limiter.block('a', 0); // looks again
    expect((await waiting).limits[0]).toMatchObject({ used: 1, resetIn: 30 * 24 * hour });
  });
});

test.each([0, -1, -62_198_755_200_000, 2 ** 53, -(2 ** 53), 1e300])(
  'at %p ms windows have an end',
  (ms) => {
    for (const calendar of ['hour', 'day', 'week', 'month', 'year']) {
      const { limiter, time } = setUp([{ calendar, limit: 1, timeZone: 'America/Nuuk' }]);
      time.set(ms);
      const { timeLeft } = limiter.attempt('a', { limits: 0 });
      expect(timeLeft).toBeGreaterThan(0);
      expect(timeLeft).toBeLessThanOrEqual(366 * 86_400_000);
      expect(limiter.attempt('a').allowed).toBe(true);
      expect(limiter.attempt('a').allowed).toBe(false);
    }
  },
);
