// Behaviours: windows of the calendar, in the zone and from the day of the limiter or of the customer.
'use strict';

const RateLimiter = require('../../..');

const { usedOf } = require('../usage');

const HOUR_MS = 3_600_000;

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
  [{ calendar: 'week', startsOn: 7 }, '1969-12-31T00:00Z', '1970-01-04T00:00Z'],
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

  async "a customer's calendar decides its windows, and those of nobody else"({ make, time }) {
    const start = Date.parse('2026-07-16T12:00Z');
    time.set(start);
    const limiter = make({ limits: [{ calendar: 'month', maxInInterval: 2 }] });
    const calendar = { timeZone: 'Europe/Berlin', startsOn: 17 };
    const berlin = Date.parse('2026-07-16T22:00Z') - start;
    const first = Date.parse('2026-08-01T00:00Z') - start;
    for (const [i, call] of ['attempt', 'peek', 'record', 'wait'].entries()) {
      expect(await limiter[call](i, { calendar })).toMatchObject({ resetIn: berlin });
    }
    const { decisions } = await RateLimiter.attemptAll([{ limiter, id: 'e', calendar }]);
    expect(decisions).toMatchObject([{ resetIn: berlin }]);
    expect(await limiter.attempt('b')).toMatchObject({ resetIn: first });
    const tokyo = { calendar: { timeZone: 'Asia/Tokyo' } };
    expect(await limiter.attempt('c', tokyo)).toMatchObject({ resetIn: first - 9 * HOUR_MS });
    time.set(start + berlin);
    expect(await limiter.usage(0, { calendar })).toMatchObject({ used: 0, resetIn: 0 });
    expect(await limiter.usage('b')).toMatchObject({ used: 1 });
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
};

module.exports = { 'fixed-window': FIXED };
