// Rules of the middleware: what they allow, what the client is told of it, and rules on trial.
'use strict';

const express = require('express');
const { rateLimit } = require('../..');
const { get } = require('./apps');
const { setUp } = require('./rules-app');

const MINUTE_MS = 60_000;

describe('limits', () => {
  test('5 per second, 100 per minute and 1000 per hour at once; refusals do not count', async () => {
    const limits = [
      { interval: 1000, maxInInterval: 5 },
      { interval: MINUTE_MS, maxInInterval: 100 },
      { interval: 60 * MINUTE_MS, maxInInterval: 1000 },
    ];
    const { middleware, hand } = setUp([{ path: '/multiple', countBlocked: false, limits }]);
    let passed = 0;
    const res = { headersSent: true, end() {} };
    const attempt = () => {
      const req = { method: 'GET', url: '/multiple', headers: { 'x-id': 'ada' } };
      let hasPassed = false;
      middleware(req, { ...res }, () => {
        hasPassed = true;
      });
      if (hasPassed) passed++;
      return req.rateLimit;
    };
    /** Seven requests in each second: two are refused and leave no trace. */
    const run = (seconds) => {
      const before = passed;
      for (let s = 0; s < seconds; s++, hand.now += 1000) for (let i = 0; i < 7; i++) attempt();
      return passed - before;
    };
    expect(run(1)).toBe(5);
    expect(run(19)).toBe(95);
    expect(run(40)).toBe(0); // the minute is full
    expect(run(60)).toBe(100);
    expect(run(8 * 60)).toBe(800);
    expect(attempt().limit).toBe(1000); // the hour is full
    expect(run(50 * 60)).toBe(0);
    expect(run(60)).toBe(100);
  });

  test('0 refuses everything', async () => {
    const { ask } = setUp([{ path: '/wp-admin', limit: 0 }]);
    const { status, headers } = await ask('/wp-admin/login.php');
    expect([status, headers['x-ratelimit-limit']]).toEqual([429, '0']);
  });

  test.each(['sliding-window-counter', 'fixed-window', 'gcra'])(
    'by the algorithm %s',
    async (algorithm) => {
      const { statuses } = setUp([{ path: '/', limit: 2, algorithm }]);
      expect(await statuses('/', '/', '/')).toEqual([200, 200, 429]);
    },
  );

  test('headers and the rest are those of the top level', async () => {
    const { ask } = setUp(
      [
        { path: '/a', limit: 1, windowMs: 2000 },
        { path: '/b', limit: 3, windowMs: 5000 },
      ],
      {
        standardHeaders: 'draft-8',
        statusCode: 503,
        requestPropertyName: 'quota',
        message: { no: 1 },
      },
    );
    const { headers } = await ask('/b');
    expect(headers.ratelimit).toBe('"3-in-5sec"; r=2; t=5');
    expect((await ask('/a')).headers['ratelimit-policy']).toMatch(/^"1-in-2sec"; q=1; w=2; pk=/);
    const refused = await ask('/a');
    expect([refused.status, refused.body]).toEqual([503, { no: 1 }]);
    expect(refused.headers['retry-after']).toBe('2');
  });

  test('skipFailedRequests takes a request back in the zone that counted it', async () => {
    const rules = [
      { path: '/a', limit: 2 },
      { path: '/b', limit: 2, perPath: true },
    ];
    const options = {
      skipFailedRequests: true,
      requestWasSuccessful: (req) => !req.url.endsWith('bad'),
    };
    const { ask } = setUp(rules, options);
    const used = async (path) => (await ask(path)).body.used;
    for (const path of ['/a', '/b']) {
      expect(await used(`${path}?bad`)).toBe(1);
      expect(await used(`${path}?bad`)).toBe(1);
      expect(await used(path)).toBe(1);
      expect(await used(path)).toBe(2);
    }
  });

  test('one request counted twice in one zone is told', async () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const middleware = rateLimit({ rules: [{ path: '/', limit: 9 }], logger });
    const app = express();
    app.use(middleware, middleware, (_req, res) => res.end());
    await get(app);
    expect(logger.warn.mock.calls).toEqual([
      [expect.objectContaining({ code: 'ROLLGATE_DOUBLE_COUNT' })],
    ]);
  });
});

describe('shadow', () => {
  test('decides, counts and reports, but lets pass, and tells the client nothing', async () => {
    const handler = jest.fn();
    const { ask } = setUp([{ path: '/', limit: 1, shadow: true }], {
      standardHeaders: true,
      handler,
    });
    const first = await ask('/');
    expect(first.body).toMatchObject({ limit: 1, used: 1, shadow: true, limited: false });
    const { status, body, headers } = await ask('/');
    expect(status).toBe(200);
    expect(body).toMatchObject({ limit: 1, remaining: 0, key: 'ada', shadow: true, limited: true });
    for (const name of ['retry-after', 'x-ratelimit-limit', 'ratelimit-limit']) {
      expect(headers).not.toHaveProperty(name);
    }
    expect(handler).not.toHaveBeenCalled();
  });

  test('blocks nobody on other rules', async () => {
    const { ask, statuses } = setUp([
      { path: '/new', limit: 1, blockFor: MINUTE_MS, blockEverywhere: true, shadow: true },
      { path: '/', limit: 100 },
    ]);
    expect(await statuses('/new', '/new', '/new', '/')).toEqual([200, 200, 200, 200]);
    expect((await ask('/new')).body.limited).toBe(true);
  });

  test('reports a block that another rule began, and lets pass', async () => {
    const { ask, statuses } = setUp([
      { path: '/new', limit: 5, shadow: true },
      { path: '/', limit: 1, blockFor: MINUTE_MS, blockEverywhere: true },
    ]);
    expect(await statuses('/', '/')).toEqual([200, 429]);
    const { status, body } = await ask('/new');
    expect([status, body.limited]).toEqual([200, true]);
  });

  test('without it, req.rateLimit has the fields it always had', async () => {
    const { ask } = setUp([{ path: '/', limit: 1 }]);
    expect(Object.keys((await ask('/')).body)).toEqual([
      'limit',
      'used',
      'remaining',
      'resetTime',
      'key',
    ]);
  });
});
