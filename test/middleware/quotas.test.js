// Limits of a request: calendar windows in headers, `limit` as a function that returns limits by name, and Infinity.
'use strict';

const { MemoryStore } = require('express-rate-limit');
const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { appWith, callDirectly, get, getTimes, inTurn, newLogger, setUp } = require('./apps');

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
  const headersOf = (middleware) =>
    Object.fromEntries(
      Object.entries(callDirectly(middleware).headers).map(([name, value]) => [
        name,
        String(value).replace(/;\s?pk=:.*?:/g, ''),
      ]),
    );
  const all = [MONTH, MINUTE, { ...MONTH, calendar: 'day', name: 'daily' }];

  // Kills: a w that is the longest length of the unit, or NaN; a name in-NaNdays; a t that is left out.
  test.each([
    ['draft-7', '1000, 10;w=60, 1000', 'limit=10, remaining=9, reset=60'],
    [
      'draft-10',
      '"1000-per-month";q=1000, "10-in-1min";q=10;w=60, "daily";q=1000',
      `"1000-per-month";r=999;t=${DAYS_LEFT}, "10-in-1min";r=9;t=60, "daily";r=999;t=50400`,
    ],
  ])('%s has no length of them', (standardHeaders, policy, state) => {
    const headers = headersOf(rateLimit({ ...fixed, limits: all, standardHeaders }));
    expect(headers).toMatchObject({ 'RateLimit-Policy': policy, RateLimit: state });
  });

  // Kills: headers that are remembered from windows of the same maximum and another calendar.
  test('are those of this request', () => {
    const numbers = { maxInInterval: 5, used: 1, remaining: 4, resetIn: 1 };
    const calendars = ['day', 'day', 'week'];
    const attempt = () => {
      const limits = [{ calendar: calendars.shift(), ...numbers }];
      return { allowed: true, timeLeft: 0, actionsLeft: 4, resetIn: 1, blockedBy: null, limits };
    };
    const middleware = rateLimit({ limiter: { attempt }, standardHeaders: 'draft-8' });
    const policies = [1, 2, 3].map(() => headersOf(middleware)['RateLimit-Policy']);
    expect(policies).toEqual(['"5-per-day"; q=5', '"5-per-day"; q=5', '"5-per-week"; q=5']);
  });
});

describe('limit as a function, with limits by name', () => {
  const LIMITS = [
    { name: 'calls', windowMs: 60_000, limit: 2 },
    { name: 'bytes', windowMs: 3_600_000, limit: 100 },
  ];

  /** A middleware whose next limits are `given.limit`; `ask` returns whether it passed, and its windows. */
  function byRequest(options) {
    const given = { limit: {}, cost: 1 };
    const limit = async () => given.limit;
    const cost = () => given.cost;
    const own = { limits: LIMITS, limit, cost, clock, keyGenerator };
    const middleware = rateLimit({ ...own, ...options });
    const ask = async (asked) => {
      Object.assign(given, { cost: 1 }, asked);
      const { calls, req, headers, returned } = callDirectly(middleware);
      await returned;
      return { error: calls[0]?.[0], passed: calls.length === 1, info: req.rateLimit, headers };
    };
    return { ask, middleware };
  }

  const limitedBy = ({ passed, info: { limit, used } }) => [passed, limit, used];

  // Kills: a function that is not called beside `limits`; another count for another plan; an error for a customer whose
  // calls are all refused; a reset that tells a suspended client to try again at once.
  test('replaces the maxima, and keeps the count', async () => {
    const { ask } = byRequest({ standardHeaders: 'draft-8' });
    const free = { calls: 1 };
    const paid = { calls: 3, bytes: 1000 };
    const answers = await inTurn([free, free, paid, paid, paid, free, 0], (limit) =>
      ask({ limit }),
    );
    expect(answers.map(limitedBy)).toEqual([
      [true, 1, 1],
      [false, 1, 1],
      [true, 3, 2],
      [true, 3, 3],
      [false, 3, 3],
      [false, 1, 3],
      [false, 0, 0],
    ]);
    const { headers } = await ask({ limit: { calls: 0, bytes: 7 } });
    const seconds = headers['Retry-After'];
    expect(Number(seconds)).toBeGreaterThan(0);
    expect(String(headers.RateLimit)).toContain(`"calls"; r=0; t=${seconds}`);
  });

  // Kills: a window of Infinity that counts, that is shown, or that refuses; settling an amount of it.
  test.each(['sliding-window-log', 'gcra'])(
    'Infinity leaves a window uncounted, by %s',
    async (algorithm) => {
      const { ask, middleware } = byRequest({ algorithm, standardHeaders: 'draft-10' });
      const limit = { calls: ALL, bytes: 7 };
      const answers = await inTurn([1, 2, 3], () => ask({ limit, cost: 3 }));
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
      expect(answers[0].info.settle(1)).toBe(true);
      await middleware.resetKey('ada');
      for (const every of [ALL, { calls: ALL, bytes: ALL }]) {
        const { passed, headers, info } = await ask({ limit: every });
        expect([passed, headers, info.limit, info.settle(3)]).toEqual([true, {}, ALL, false]);
      }
      expect(await middleware.getKey('ada')).toBe(undefined);
    },
  );

  // Kills: an answer of 200 for a wrong limit, also with passOnStoreError; a count for it; names where there are none.
  const expected = 'expected the function to give an integer >= 0 or Infinity';
  test.each([
    [5, {}, 'limits: expected integers >= 0 by name of a limit (calls, bytes), got 5'],
    [{ call: 5 }, {}, "did you mean 'calls'?"],
    [undefined, {}, `limit: ${expected}, or an object`],
    ...[-1, Number.NaN, '5'].map((limit) => [limit, { limits: undefined }, expected]),
    [{ calls: 1 }, { limits: undefined }, ''],
    [{ calls: 1 }, { limits: undefined, store: new MemoryStore() }, `limit: ${expected}, got`],
  ])('%p is no limit with %j', async (limit, options, message) => {
    for (const passOnStoreError of [false, true]) {
      const others = options.store ? { clock: undefined, cost: undefined } : {};
      const { ask } = byRequest({ passOnStoreError, ...options, ...others });
      const { error } = await ask({ limit });
      expect(error.code).toBe('ERR_ROLLGATE_LIMIT');
      expect(error.message).toContain(message);
    }
  });

  // Kills: a request that passes, because the store cannot refuse what nobody could allow.
  test('a cost above the limits is an error or a refusal, also while the store fails', async () => {
    const kv = { ...createPlainKv(), get: () => Promise.reject(new Error('down')) };
    const { ask } = byRequest({ kv, namespace: 'n', passOnStoreError: true, logger: newLogger() });
    expect((await ask({ limit: { calls: 4 }, cost: 3 })).passed).toBe(true);
    expect((await ask({ limit: { calls: 4 }, cost: 5 })).error.code).toBe('ERR_ROLLGATE_COST');
    expect((await ask({ limit: { calls: ALL }, cost: 5 })).passed).toBe(true);
    const closed = await ask({ limit: { calls: 0 } });
    expect([closed.passed, closed.headers['Retry-After']]).toEqual([false, '3600']);
  });

  // Kills: limits by name that rules do not pass on, and that a block everywhere does not show.
  test('is that of a rule as well', async () => {
    const limits = [{ name: 'n', windowMs: 60_000, limit: 1 }];
    const limit = (req) => ({ n: Number(req.headers['x-group'] ?? 1) });
    const block = { blockFor: 5000, blockEverywhere: true };
    const { ask, statuses } = setUp([{ path: '/', limits, limit, ...block }]);
    const two = ['/', { group: '2' }];
    expect(await statuses(two, two, two)).toEqual([200, 200, 429]);
    const { status, headers } = await ask('/', { group: '9' });
    expect([status, headers['x-ratelimit-limit']]).toEqual([429, '9']);
    expect((await ask('/', { id: 'eva' })).headers['x-ratelimit-limit']).toBe('1');
  });
});

describe('limit of 0 and limit as a function', () => {
  // Kills: a limit that gcra refuses at construction; a rate of the placeholder.
  test('work with gcra, and getKey shows the count', async () => {
    let limit = 10;
    const gcra = { algorithm: 'gcra', windowMs: 1000, clock, keyGenerator };
    const middleware = rateLimit({ ...gcra, limit: () => limit });
    const passed = () => callDirectly(middleware).calls.length === 1;
    const passes = Array.from({ length: 11 }, passed);
    expect(passes).toEqual([...Array(10).fill(true), false]);
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
    const shown = [headers['retry-after'], headers['x-ratelimit-limit']];
    expect([status, ...shown]).toEqual([429, String(DAYS_LEFT), '0']);
  });
});

describe('a limit of Infinity', () => {
  const UNCOUNTED = { limit: ALL, remaining: ALL, used: 0, resetTime: undefined };
  /** Of callers with the header `x-exempt` there is no limit, of others one request. */
  const limit = ({ headers }) => (headers?.['x-exempt'] === undefined ? 1 : ALL);

  test.each([
    ['a number', { limit: ALL, standardHeaders: 'draft-8', clock }],
    ['a function, beside cost', { limit, clock, cost: 7 }],
    ['a number, over a store', { limit: ALL, store: new MemoryStore() }],
    ['a function of a rule', { rules: [{ path: '/', limit, cost: 7 }], clock }],
  ])('as %s lets requests pass without headers and uncounted', async (_what, options) => {
    const middleware = rateLimit(options);
    const asked = { ip: '192.0.2.1', headers: { 'x-exempt': '1' }, url: '/', method: 'GET' };
    for (let i = 0; i < 9; i++) {
      const { req, headers, calls } = callDirectly(middleware, { ...asked });
      expect([calls, headers]).toEqual([[[]], {}]);
      expect(req.rateLimit).toMatchObject(UNCOUNTED);
      expect(req.rateLimit.settle(3)).toBe(false);
    }
    expect(await middleware.getKey('192.0.2.1')).toBeUndefined();
  });

  test('leaves nothing to refund or to be counted twice', async () => {
    const logger = newLogger();
    const common = { skipFailedRequests: true, skipSuccessfulRequests: true, clock, logger };
    const middleware = rateLimit({ limit: ALL, ...common });
    const trial = rateLimit({ rules: [{ path: '/', shadow: true, limit: ALL }], ...common });
    const answers = await getTimes(appWith(middleware, middleware, trial), 2);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    for (const log of [logger.warn, logger.error]) expect(log).not.toHaveBeenCalled();
  });

  test('is under no block, and a shadow rule reports it', async () => {
    const { ask } = setUp([
      { path: '/', limit: ALL, shadow: true },
      { path: '/', limit, blockFor: 1000, blockEverywhere: true },
    ]);
    const statusOf = async () => (await ask('/')).status;
    expect([await statusOf(), await statusOf(), await statusOf()]).toEqual([200, 429, 429]);
    const { status, body } = await ask('/').set('x-exempt', '1');
    const report = { rule: 0, allowed: true, used: 0 };
    expect([status, body]).toMatchObject([200, { used: 0, shadow: [report] }]);
  });
});
