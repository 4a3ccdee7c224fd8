// Quotas in the middleware: headers of calendar windows, and `limit` as a function that returns limits by name.
'use strict';

const { MemoryStore } = require('express-rate-limit');
const RateLimiter = require('../..');
const { RollgateThrottlerStorage } = require('../../lib/adapters/nest-throttler');
const { createPlainKv } = require('../support/kv-stores');
const { appWith, callDirectly, get, inTurn, newLogger, setUp } = require('./apps');

const { rateLimit } = RateLimiter;
const ALL = Number.POSITIVE_INFINITY;
const NOW = Date.parse('2026-11-27T10:00Z');
const clock = () => NOW;
const DAYS_LEFT = 3 * 86_400 + 14 * 3600; // of November, in seconds

const keyGenerator = () => 'ada';
const MONTH = { calendar: 'month', limit: 1000 };
const MINUTE = { windowMs: 60_000, limit: 10 };
const fixed = { algorithm: 'fixed-window', clock, keyGenerator };

describe('headers of calendar windows', () => {
  const headersOf = (options) => {
    const { headers } = callDirectly(rateLimit({ ...fixed, legacyHeaders: false, ...options }));
    return Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        String(value).replace(/;\s?pk=:.*?:/g, ''),
      ]),
    );
  };
  const one = [MONTH];
  const both = [MONTH, MINUTE, { ...MONTH, calendar: 'day', name: 'daily' }];

  // Kills: a w that is the longest length of the unit, or NaN; a name in-NaNdays; a t that is left out.
  test.each([
    ['draft-6', both, { 'RateLimit-Policy': '1000, 10;w=60, 1000' }],
    [
      'draft-7',
      both,
      { 'RateLimit-Policy': '1000, 10;w=60, 1000', RateLimit: 'limit=10, remaining=9, reset=60' },
    ],
    [
      'draft-8',
      one,
      {
        'RateLimit-Policy': '"1000-per-month"; q=1000',
        RateLimit: `"1000-per-month"; r=999; t=${DAYS_LEFT}`,
      },
    ],
    [
      'draft-10',
      both,
      {
        'RateLimit-Policy': '"1000-per-month";q=1000, "10-in-1min";q=10;w=60, "daily";q=1000',
        RateLimit: `"1000-per-month";r=999;t=${DAYS_LEFT}, "10-in-1min";r=9;t=60, "daily";r=999;t=50400`,
      },
    ],
  ])('%s of %j', (standardHeaders, limits, expected) => {
    expect(headersOf({ limits, standardHeaders })).toMatchObject(expected);
  });

  // Kills: headers that are remembered from windows of the same maximum and another calendar.
  test.each([
    ['draft-8', '"5-per-day"; q=5', '"5-per-week"; q=5'],
    ['draft-6', '5', '5;w=60'],
  ])('%s are those of this request', (standardHeaders, first, second) => {
    const numbers = { maxInInterval: 5, used: 1, remaining: 4, resetIn: 1 };
    const windows = [
      { calendar: 'day' },
      standardHeaders === 'draft-8' ? { calendar: 'week' } : { interval: 60_000 },
    ];
    const decisionOf = (window) => {
      return {
        allowed: true,
        timeLeft: 0,
        actionsLeft: 4,
        resetIn: 1,
        blockedBy: null,
        limits: [{ ...window, ...numbers }],
      };
    };
    const limiter = { attempt: () => decisionOf(windows[0]) };
    const middleware = rateLimit({ limiter, standardHeaders, keyGenerator });
    const policy = () =>
      String(callDirectly(middleware).headers['RateLimit-Policy']).replace(/; pk.*/, '');
    expect([policy(), policy()]).toEqual([first, first]);
    windows.shift();
    expect(policy()).toBe(second);
  });
});

describe('limit as a function, with limits by name', () => {
  const LIMITS = [
    { name: 'calls', windowMs: 60_000, limit: 2 },
    { name: 'bytes', windowMs: 3_600_000, limit: 100 },
  ];

  /** A middleware whose next limits are `given.limit`; `ask` returns the status and the windows. */
  function byRequest(options) {
    const given = { limit: {}, cost: 1 };
    const limit = async () => given.limit;
    const middleware = rateLimit({
      limits: LIMITS,
      limit,
      cost: () => given.cost,
      clock,
      keyGenerator,
      ...options,
    });
    const ask = async (asked) => {
      Object.assign(given, { cost: 1 }, asked);
      const { calls, req, headers, returned } = callDirectly(middleware, {
        url: '/',
        method: 'GET',
        headers: {},
      });
      await returned;
      return { error: calls[0]?.[0], passed: calls.length === 1, info: req.rateLimit, headers };
    };
    return { ask, middleware };
  }

  const limitedBy = ({ passed, info: { limit, used } }) => [passed, limit, used];

  // Kills: a function that is not called beside `limits`; another count for another plan.
  test('replaces the maxima, and keeps the count', async () => {
    const { ask } = byRequest();
    const free = { calls: 1 };
    const paid = { calls: 3, bytes: 1000 };
    const answers = await inTurn([free, free, paid, paid, paid, free], (limit) => ask({ limit }));
    expect(answers.map(limitedBy)).toEqual([
      [true, 1, 1],
      [false, 1, 1],
      [true, 3, 2],
      [true, 3, 3],
      [false, 3, 3],
      [false, 1, 3],
    ]);
  });

  // Kills: a window of Infinity that counts, that is shown, or that refuses.
  test('Infinity leaves a window uncounted', async () => {
    for (const [algorithm, cost] of [
      ['sliding-window-log', 3],
      ['gcra', 3],
      ['fixed-window', { calls: 3, bytes: 3 }],
    ]) {
      const { ask, middleware } = byRequest({ algorithm, standardHeaders: 'draft-10' });
      const limit = { calls: ALL, bytes: 7 };
      const answers = await inTurn([1, 2, 3], () => ask({ limit, cost }));
      expect(answers.map(limitedBy)).toEqual([
        [true, 7, 3],
        [true, 7, 6],
        [false, 7, 6],
      ]);
      expect(String(answers[0].headers['RateLimit-Policy'])).toMatch(
        /^"bytes";q=7;w=3600;pk=:.*:$/,
      );
      expect(limitedBy(await ask({ limit: { calls: 1 } }))).toEqual([true, 1, 1]);
      expect((await middleware.getKey('ada')).totalHits).toBe(1);
    }
  });

  // Kills: a reset that tells a suspended client to try again at once.
  test.each(['draft-8', 'draft-10'])('%s has the time that a limit of 0 refuses', async (draft) => {
    const { ask } = byRequest({ standardHeaders: draft });
    const { headers } = await ask({ limit: { calls: 0, bytes: 7 } });
    const seconds = headers['Retry-After'];
    expect(Number(seconds)).toBeGreaterThan(0);
    expect(String(headers.RateLimit).replaceAll('; ', ';')).toContain(`"calls";r=0;t=${seconds}`);
  });

  // Kills: an error for a customer whose calls are all refused.
  test('0 refuses, whatever the windows', async () => {
    const { ask, middleware } = byRequest();
    const { passed, error } = await ask({ limit: 0 });
    expect([passed, error]).toEqual([false, undefined]);
    expect(await middleware.getKey('ada')).toBe(undefined);
  });

  // Kills: an amount for the window that did not count, and an error for a number.
  test('settles what was counted', async () => {
    const { ask } = byRequest();
    const settle = async (limit, cost, actual) => (await ask({ limit, cost })).info.settle(actual);
    const limit = { calls: ALL, bytes: 90 };
    expect(await settle(limit, 3, 5)).toBe(true);
    expect(await settle(limit, { bytes: 4 }, { bytes: 1 })).toBe(true);
    expect(await settle(limit, 9, 0)).toBe(true);
    await expect(settle(limit, { bytes: 4 }, 5)).rejects.toMatchObject({
      code: 'ERR_ROLLGATE_COST',
    });
    const { info } = await ask({ limit: { calls: ALL } });
    expect([info.limit, info.used]).toEqual([100, 11]);
  });

  test('all of Infinity lets pass, without headers', async () => {
    const { ask, middleware } = byRequest();
    for (const limit of [ALL, { calls: ALL, bytes: ALL }]) {
      for (let i = 0; i < 5; i++) {
        const { passed, headers, info } = await ask({ limit });
        expect([passed, headers, info.limit, info.settle(3)]).toEqual([true, {}, ALL, false]);
      }
    }
    const { passed } = await ask({ limit: { calls: ALL }, cost: { calls: 1, bytes: 0 } });
    expect(passed).toBe(true);
    expect(await middleware.getKey('ada')).toBe(undefined);
  });

  // Kills: an answer of 200 for a wrong limit, also with passOnStoreError; a count for it.
  test.each([
    [5, 'RangeError', 'limits: expected integers >= 0 by name of a limit (calls, bytes), got 5'],
    [{ call: 5 }, 'TypeError', "did you mean 'calls'?"],
    [
      { calls: -1 },
      'RangeError',
      'limits of "calls": expected an integer >= 0 or Infinity, got -1',
    ],
    [
      undefined,
      'TypeError',
      'limit: expected the function to give an integer >= 0 or Infinity, or an object',
    ],
  ])('%p is no limit', async (limit, name, message) => {
    for (const passOnStoreError of [false, true]) {
      const { ask, middleware } = byRequest({ passOnStoreError });
      const { error } = await ask({ limit });
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_LIMIT', name });
      expect(error.message).toContain(message);
      expect(await middleware.getKey('ada')).toBe(undefined);
    }
  });

  // Kills: a limit by name where there are no names.
  test('is no limit of one window, or over a store', async () => {
    for (const options of [
      { limits: undefined },
      { limits: undefined, store: new MemoryStore(), clock: undefined },
    ]) {
      const middleware = rateLimit({
        limit: () => ({ calls: 1 }),
        keyGenerator,
        clock,
        ...options,
      });
      const { calls } = callDirectly(middleware);
      expect(calls).toMatchObject([[{ code: 'ERR_ROLLGATE_LIMIT' }]]);
    }
  });

  // Kills: a request that passes, because the store cannot refuse what nobody could allow.
  test('a cost above the limits is an error or a refusal, also while the store fails', async () => {
    const kv = createPlainKv();
    const { ask } = byRequest({ kv, namespace: 'n', passOnStoreError: true, logger: newLogger() });
    kv.get = () => Promise.reject(new Error('down'));
    expect((await ask({ limit: { calls: 4 }, cost: 3 })).passed).toBe(true);
    expect((await ask({ limit: { calls: 4 }, cost: 5 })).error.code).toBe('ERR_ROLLGATE_COST');
    expect((await ask({ limit: { calls: ALL }, cost: 5 })).passed).toBe(true);
    const closed = await ask({ limit: { calls: 0 } });
    expect([closed.passed, closed.headers['Retry-After']]).toEqual([false, '3600']);
  });
});

describe('limit of 0 and limit as a function', () => {
  // Kills: a limit that gcra refuses at construction; a rate of the placeholder.
  test('work with gcra, and getKey shows the count', async () => {
    let limit = 10;
    const middleware = rateLimit({
      algorithm: 'gcra',
      limit: () => limit,
      windowMs: 1000,
      clock,
      keyGenerator,
    });
    const passed = () => callDirectly(middleware).calls.length === 1;
    for (let i = 0; i < 10; i++) expect(passed()).toBe(true);
    expect(passed()).toBe(false);
    expect((await middleware.getKey('ada')).totalHits).toBe(10);
    limit = 11;
    expect([passed(), passed()]).toEqual([true, false]);
  });

  // Kills: a closed limit that asks a store that does not answer; the interval of the placeholder as Retry-After.
  test('a limit of 0 refuses until the end of the month, and asks no store', async () => {
    const kv = { get: () => Promise.reject(new Error('down')), set: () => false };
    const limits = [{ ...MONTH, name: 'n' }];
    const middleware = rateLimit({ ...fixed, kv, namespace: 'n', limits, limit: () => ({ n: 0 }) });
    const { status, headers } = await get(appWith(middleware));
    expect([status, headers['retry-after'], headers['x-ratelimit-limit']]).toEqual([
      429,
      String(DAYS_LEFT),
      '0',
    ]);
  });
});

describe('rules', () => {
  const limits = [{ name: 'n', windowMs: 60_000, limit: 1 }];

  // Kills: limits by name that rules do not pass on, and that a block everywhere does not show.
  test('take limits by name', async () => {
    const limit = (req) => ({ n: Number(req.headers['x-group'] ?? 1) });
    const { ask, statuses } = setUp([
      { path: '/', limits, limit, blockFor: 5000, blockEverywhere: true },
    ]);
    expect(
      await statuses(['/', { group: '2' }], ['/', { group: '2' }], ['/', { group: '2' }]),
    ).toEqual([200, 200, 429]);
    const { status, headers } = await ask('/', { group: '9' });
    expect([status, headers['x-ratelimit-limit']]).toEqual([429, '9']);
    expect((await ask('/', { id: 'eva' })).headers['x-ratelimit-limit']).toBe('1');
  });

  // Kills: rules of one zone that agree although their calendars differ.
  test('of one zone agree in their calendars', () => {
    const zoneOf =
      (...calendars) =>
      () => {
        const algorithm = 'fixed-window';
        const rules = calendars.map((calendar, i) => {
          return { path: `/${i}`, zone: 'z', algorithm, limits: [{ limit: 5, ...calendar }] };
        });
        rateLimit({ rules });
      };
    const month = { calendar: 'month' };
    expect(zoneOf(month, { ...month, startsOn: 1, timeZone: 'UTC' })).not.toThrow();
    for (const other of [
      { calendar: 'year' },
      { ...month, startsOn: 2 },
      { ...month, timeZone: 'Asia/Tokyo' },
    ]) {
      expect(zoneOf(month, other)).toThrow("'rules[1].zone'");
    }
  });
});

test('the storage for Nest keeps counts with gcra', async () => {
  const storage = new RollgateThrottlerStorage({ clock, algorithm: 'gcra' });
  const hit = async (limit) => (await storage.increment('a', 1000, limit, 0, 'default')).isBlocked;
  expect([await hit(2), await hit(2), await hit(2), await hit(3), await hit(3)]).toEqual([
    ...[false, false, true],
    ...[false, true],
  ]);
});
