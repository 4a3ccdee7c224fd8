// Behaviours: windows of the calendar, in the zone and from the day of the limiter or of the customer.
'use strict';

const RateLimiter = require('../../..');

const DAY_MS = 24 * 3_600_000;

const month = (others) => ({ calendar: 'month', maxInInterval: 2, ...others });
const shownMonth = { calendar: 'month', maxInInterval: 2 };

const usedOf = async (limiter, id = 'a', options = undefined) => {
  const { limits } = await limiter.usage(id, options);
  return limits.map(({ used }) => used);
};

/** A window, a moment in it, and when it ends. Zone data of the host. */
const WINDOWS = [
  [{ calendar: 'hour' }, '2026-05-01T10:59:59.999Z', '2026-05-01T11:00Z'],
  [{ calendar: 'hour', timeZone: 'Asia/Kathmandu' }, '2026-05-01T10:10Z', '2026-05-01T10:15Z'],
  // Clocks repeat an hour, or half of one.
  [{ calendar: 'hour', timeZone: 'Europe/Berlin' }, '2026-10-25T00:00Z', '2026-10-25T02:00Z'],
  [{ calendar: 'hour', timeZone: 'Australia/Lord_Howe' }, '2026-04-04T14:00Z', '2026-04-04T15:30Z'],
  [{ calendar: 'day' }, '2026-12-31T12:00Z', '2027-01-01T00:00Z'],
  [{ calendar: 'day', timeZone: 'America/New_York' }, '2026-03-08T05:00Z', '2026-03-09T04:00Z'], // 23 hours
  [{ calendar: 'day', timeZone: 'Europe/Berlin' }, '2026-10-24T22:00Z', '2026-10-25T23:00Z'], // 25 hours
  [{ calendar: 'day', timeZone: 'Africa/Cairo' }, '2026-04-23T21:59:59Z', '2026-04-23T22:00Z'], // it begins at 01:00
  [{ calendar: 'day', timeZone: 'Pacific/Apia' }, '2011-12-29T10:00Z', '2011-12-30T10:00Z'], // the next is the 31st
  [{ calendar: 'week' }, '2026-11-27T00:00Z', '2026-11-30T00:00Z'],
  [{ calendar: 'week', startsOn: 7 }, '2026-11-27T00:00Z', '2026-11-29T00:00Z'],
  [{ calendar: 'month' }, '2026-02-01T00:00Z', '2026-03-01T00:00Z'],
  [{ calendar: 'month', startsOn: 31 }, '2026-01-31T00:00Z', '2026-02-28T00:00Z'],
  [
    { calendar: 'month', startsOn: 17, timeZone: 'Europe/Berlin' },
    '2026-07-16T22:00Z',
    '2026-08-16T22:00Z',
  ],
  [{ calendar: 'year', timeZone: 'Asia/Tokyo' }, '2025-12-31T15:00Z', '2026-12-31T15:00Z'],
  [{ calendar: 'year', startsOn: '02-29' }, '2026-05-01T00:00Z', '2027-02-28T00:00Z'],
];

const WRONG = [
  [{ timeZone: 'Mars/Olympus' }, 'timeZone', RangeError],
  [{ timeZone: '+01:00' }, 'timeZone', RangeError],
  [{ timeZone: '' }, 'timeZone', RangeError],
  [{ timeZone: 1 }, 'timeZone', TypeError],
  ...[0, 32, 1.5, Number.NaN].map((startsOn) => [{ startsOn }, 'startsOn', RangeError]),
  ...['17', '01-17', null].map((startsOn) => [{ startsOn }, 'startsOn', TypeError]),
];

const WRONG_IN_LIMITS = [
  [{ calendar: 'monthly' }, 'calendar'],
  [{ calendar: 'fortnight' }, 'calendar'],
  [{ interval: 1000 }, 'interval'],
  [{ windowMs: 1000 }, 'windowMs'],
  [{ calendar: 'week', startsOn: 0 }, 'startsOn'],
  [{ calendar: 'week', startsOn: 8 }, 'startsOn'],
  [{ calendar: 'day', startsOn: 1 }, 'startsOn'],
  [{ calendar: 'hour', startsOn: 1 }, 'startsOn'],
  ...['02-30', '13-01', '2-29', '00-01', 17].map((startsOn) => [
    { calendar: 'year', startsOn },
    'startsOn',
  ]),
  [{ calendar: undefined, interval: 1000, timeZone: 'UTC' }, 'timeZone'],
];

const FIXED = {
  // Kills: a boundary that is a millisecond off; a month of 30 days; the zone of the host.
  async 'a window ends at its very end'({ make, time }) {
    for (const [window, moment, end] of WINDOWS) {
      const limiter = make({ limits: [{ ...window, maxInInterval: 1 }] });
      const [now, until] = [Date.parse(moment), Date.parse(end)];
      time.set(now);
      expect(await limiter.attempt('a')).toMatchObject({ allowed: true, resetIn: until - now });
      const refusal = await limiter.attempt('a');
      expect(refusal).toMatchObject({ allowed: false, timeLeft: until - now });
      time.set(until - 0.001);
      expect(await limiter.peek('a')).toMatchObject({ allowed: false, timeLeft: 1 });
      time.set(until);
      expect(await limiter.peek('a')).toMatchObject({ allowed: true });
      expect(await usedOf(limiter)).toEqual([0]);
    }
  },

  async 'a window shows its calendar, and no interval'({ make, time }) {
    time.set(Date.parse('2026-02-01T00:00Z'));
    const limiter = make({ limits: [month()] });
    const resetIn = 28 * DAY_MS;
    const shown = { ...shownMonth, used: 1, remaining: 1, resetIn };
    expect((await limiter.attempt('a')).limits).toEqual([shown]);
    expect(await limiter.usage('a')).toEqual({
      ...{ allowed: true, used: 1, remaining: 1, resetIn, timeLeft: 0 },
      limits: [shown],
    });
    const named = make({ limits: [month({ name: 'calls' })] });
    expect((await named.peek('a')).limits).toEqual([{ name: 'calls', ...shown }]);
    expect((await named.usage('a')).limits).toEqual([
      { name: 'calls', ...shown, used: 0, remaining: 2, resetIn: 0 },
    ]);
    const [one, two, three] = await limiter.attemptMany(['a', 'a', 'b']);
    expect([one.allowed, two.allowed, three.limits]).toEqual([true, false, [shown]]);
    expect(await limiter('a')).toBe(resetIn);
    expect(await limiter.limitWithInfo('a')).toMatchObject({ millisecondsUntilAllowed: resetIn });
  },

  async 'windows of both kinds decide together, with costs by name'({ make, time }) {
    const [start, nextDay] = ['2026-06-30T23:59:30Z', '2026-07-01T00:00Z'].map(Date.parse);
    time.set(start);
    const limiter = make({
      limits: [
        { name: 'burst', interval: 60_000, maxInInterval: 2 },
        { name: 'tokens', calendar: 'day', maxInInterval: 100 },
        month({ name: 'calls', maxInInterval: 3, startsOn: 15 }),
      ],
    });
    const attempt = (tokens, others) => limiter.attempt('a', { cost: { tokens, ...others } });
    expect(await attempt(60)).toMatchObject({ allowed: true, actionsLeft: 1 });
    expect(await attempt(41)).toMatchObject({ allowed: false, timeLeft: nextDay - start });
    expect(await attempt(40)).toMatchObject({ allowed: true });
    time.set(nextDay);
    expect(await usedOf(limiter)).toEqual([0, 0, 2]);
    expect(await attempt(100)).toMatchObject({ allowed: true });
    expect(await attempt(0)).toMatchObject({
      allowed: false,
      timeLeft: 14 * DAY_MS,
      limits: [{ name: 'burst', interval: 60_000 }, { calendar: 'day' }, { calendar: 'month' }],
    });
    expect(await attempt(0, { calls: 0 })).toMatchObject({ allowed: true });
    time.set(nextDay + 14 * DAY_MS);
    expect(await attempt(1)).toMatchObject({ limits: [{ used: 1 }, { used: 1 }, { used: 1 }] });
  },

  async 'refusals and peeks leave no trace, and a refund gives back'({ make, time, stateOf }) {
    time.set(Date.parse('2026-02-27T12:00Z'));
    const limiter = make({ limits: [month()] });
    await limiter.peek('a');
    await limiter.usage('a');
    expect(await stateOf('a')).toBe(undefined);
    const decisions = [await limiter.attempt('a'), await limiter.attempt('a')];
    const state = await stateOf('a');
    await limiter.attempt('a');
    await limiter.peek('a');
    expect(await stateOf('a')).toEqual(state);
    expect(await limiter.refund(decisions[0])).toBe(true);
    expect(await limiter.settle(decisions[1], 2)).toBe(true);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: false });
    // In the next month, an attempt of this one is not there.
    const late = make({ limits: [month()] });
    const decision = await late.attempt('a');
    time.set(Date.parse('2026-03-01T00:00Z'));
    await late.attempt('a');
    expect(await late.refund(decision)).toBe(false);
    expect(await usedOf(late)).toEqual([1]);
  },

  // Kills: a new window for a clock behind the newest action.
  async 'a clock that steps back over a boundary gives nothing anew'({ make, time }) {
    const limiter = make({ limits: [month()] });
    const february = Date.parse('2026-02-01T00:00Z');
    time.set(february);
    await limiter.attempt('a', { cost: 2 });
    time.set(february - 5000);
    expect(await limiter.attempt('a')).toMatchObject({
      allowed: false,
      timeLeft: 28 * DAY_MS + 5000,
    });
    expect(await usedOf(limiter)).toEqual([2]);
    time.set(february + 28 * DAY_MS);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
  },

  async 'blocks, minDifference and waits are as with intervals'({ make, time }) {
    const start = Date.parse('2026-02-28T23:00Z');
    time.set(start);
    const limiter = make({ limits: [month({ minDifference: 1000 })], blockFor: 7_200_000 });
    await limiter.attempt('a');
    expect(await limiter.peek('a')).toMatchObject({
      blockedBy: 'minDifference',
      timeLeft: 1000 * 7200,
    });
    time.advance(1000);
    await limiter.attempt('a');
    time.advance(1000);
    // The block outlives the month.
    expect(await limiter.attempt('a')).toMatchObject({ blockedBy: 'count', timeLeft: 7_200_000 });
    time.advance(7_200_000);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 1 });
    const waiting = make({ limits: [month({ maxInInterval: 1 })] });
    await waiting.attempt('a');
    const call = waiting.wait('a');
    await waiting.clear('a');
    expect(await call).toMatchObject({ allowed: true });
  },

  async 'limits of a call, setLimits and records count in the same window'({ make, time }) {
    const start = Date.parse('2026-02-01T12:00Z');
    time.set(start);
    const end = Date.parse('2026-03-01T00:00Z');
    const limiter = make({ limits: [month()] });
    expect(await limiter.attempt('a', { limits: 5, cost: 3 })).toMatchObject({
      ...{ allowed: true, actionsLeft: 2 },
      limits: [{ calendar: 'month', maxInInterval: 5 }],
    });
    expect(await limiter.record('a', { cost: 4 })).toMatchObject({
      ...{ allowed: false, used: 7, timeLeft: end - start },
      limits: [{ calendar: 'month', maxInInterval: 2, used: 7, remaining: 0 }],
    });
    limiter.setLimits([month({ maxInInterval: 8 })]);
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    const closed = { allowed: false, timeLeft: end - start, resetIn: end - start };
    expect(await limiter.attempt('b', { limits: 0 })).toMatchObject(closed);
    time.set(end);
    expect(await usedOf(limiter)).toEqual([0]);
  },

  async "a customer's calendar decides its windows, and those of nobody else"({ make, time }) {
    const start = Date.parse('2026-07-16T12:00Z');
    time.set(start);
    const limiter = make({ limits: [month()] });
    const calendar = { timeZone: 'Europe/Berlin', startsOn: 17 };
    const berlin = Date.parse('2026-07-16T22:00Z') - start;
    const first = Date.parse('2026-08-01T00:00Z') - start;
    expect(await limiter.attempt('a', { calendar })).toMatchObject({ resetIn: berlin });
    expect(await limiter.peek('a', { calendar })).toMatchObject({ resetIn: berlin });
    expect(await limiter.attempt('b')).toMatchObject({ resetIn: first });
    expect(await limiter.attempt('c', { calendar: { startsOn: 20 } })).toMatchObject({
      resetIn: Date.parse('2026-07-20T00:00Z') - start,
    });
    expect(await limiter.record('d', { calendar: { timeZone: 'Asia/Tokyo' } })).toMatchObject({
      resetIn: first - 9 * 3_600_000,
    });
    const { decisions } = await RateLimiter.attemptAll([{ limiter, id: 'e', calendar }]);
    expect(decisions).toMatchObject([{ resetIn: berlin }]);
    expect(await limiter.wait('f', { calendar })).toMatchObject({ resetIn: berlin });
    expect(await limiter.usage('a', { calendar })).toMatchObject({ used: 1, resetIn: berlin });
    time.set(start + berlin);
    expect(await limiter.usage('a', { calendar })).toMatchObject({ used: 0, resetIn: 0 });
    expect(await limiter.usage('b')).toMatchObject({ used: 1 });
  },

  // Kills: a zone that a later call changes; a new quota for a new zone.
  async "a window is the customer's that began it, while it lasts"({ make, time }) {
    const start = Date.parse('2026-07-10T00:00Z');
    const end = Date.parse('2026-07-17T00:00Z');
    const limiter = make({ limits: [month({ maxInInterval: 3 })] });
    time.set(start);
    await limiter.attempt('a', { calendar: { startsOn: 17 } });
    expect(await limiter.attempt('a')).toMatchObject({ actionsLeft: 1, resetIn: end - start });
    const other = { calendar: { startsOn: 12 } };
    time.set(Date.parse('2026-07-12T00:00Z'));
    expect(await limiter.attempt('a', other)).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.attempt('a', other)).toMatchObject({ allowed: false });
    time.set(end);
    const next = Date.parse('2026-08-12T00:00Z') - end;
    expect(await limiter.attempt('a', other)).toMatchObject({ actionsLeft: 2, resetIn: next });
  },

  // Kills: an end by the clock alone, which gives another quota where zone data differ.
  async 'a window goes on where its boundary has moved'({ make, time }) {
    const limiter = make({ limits: [{ calendar: 'day', maxInInterval: 2 }] });
    const inZone = (timeZone) => ({ calendar: { timeZone } });
    time.set(Date.parse('2026-07-10T12:00Z'));
    await limiter.attempt('a', inZone('Europe/Berlin'));
    const berlin = Date.parse('2026-07-10T22:00Z');
    time.set(berlin);
    // The 10th is not over in UTC, as if its boundary in Berlin had moved.
    expect(await limiter.attempt('a', inZone('UTC'))).toMatchObject({
      ...{ allowed: true, actionsLeft: 0 },
      resetIn: 7_200_000,
    });
    expect(await limiter.attempt('a', inZone('Europe/Berlin'))).toMatchObject({
      timeLeft: 7_200_000,
    });
    time.set(berlin + 7_200_000);
    expect(await limiter.attempt('a', inZone('Europe/Berlin'))).toMatchObject({ actionsLeft: 1 });
  },

  // Kills: a count of an hour of Tokyo that is one of UTC nine hours later.
  async 'a window that is over does not come back in another zone'({ make, time }) {
    const limiter = make({ limits: [{ calendar: 'hour', maxInInterval: 1 }] });
    const tokyo = { calendar: { timeZone: 'Asia/Tokyo' } };
    const start = Date.parse('2026-01-01T00:30Z'); // 09:30 there
    time.set(start);
    await limiter.attempt('a', tokyo);
    for (const hours of [0.5, 1, 8.5, 8.75, 9]) {
      time.set(start + hours * 3_600_000);
      expect(await limiter.usage('a')).toMatchObject({ allowed: true, used: 0 });
    }
  },

  async 'a wrong calendar of a call is an error, and nothing is counted'({ make, failureOf }) {
    const limiter = make({ limits: [month()] });
    const intervals = make({ maxInInterval: 2 });
    const days = make({ limits: [{ calendar: 'day', maxInInterval: 2 }] });
    const fails = async (one, calendar, named, type = TypeError) => {
      for (const call of ['attempt', 'peek', 'usage', 'wait', 'record']) {
        const error = await failureOf(() => one[call]('a', { calendar }));
        expect([calendar, error.code]).toEqual([calendar, 'ERR_ROLLGATE_OPTION']);
        expect(error).toBeInstanceOf(type);
        expect(error.message).toContain(named);
      }
    };
    for (const [calendar, name, type] of WRONG) await fails(limiter, calendar, name, type);
    await fails(limiter, { zone: 'UTC' }, 'zone');
    await fails(limiter, 'month', 'calendar');
    await fails(intervals, { timeZone: 'UTC' }, 'calendar');
    await fails(days, { startsOn: 1 }, 'startsOn');
    expect(await usedOf(limiter)).toEqual([0]);
    expect(limiter.stats()).toMatchObject({ allowed: 0, blocked: 0, recorded: 0 });
  },

  async 'a wrong calendar of a limit is refused when the limiter is made'({ make, failureOf }) {
    const inMonths = WRONG.map(([window, name]) => [window, name]);
    for (const [window, name] of [...inMonths, ...WRONG_IN_LIMITS]) {
      const error = await failureOf(() => make({ limits: [month(window)] }));
      expect([window, error.code]).toEqual([window, 'ERR_ROLLGATE_OPTION']);
      expect(error.message).toContain(`limits[0].${name}`);
    }
  },
};

module.exports = {
  async 'windows of calendars take fixed windows'({ make, algorithm, failureOf }) {
    if (algorithm === 'fixed-window') return;
    const error = await failureOf(() => make({ limits: [month()] }));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toContain('limits[0].calendar');
    expect(error.message).toContain('fixed-window');
  },

  'fixed-window': FIXED,
};
