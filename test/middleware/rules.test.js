// Rules of the middleware: which one decides, on whom, and what comes of it.
'use strict';

const express = require('express');
const request = require('supertest');
const RateLimiter = require('../..');
const { get } = require('./apps');

const { rateLimit } = RateLimiter;

const MINUTE_MS = 60_000;

/** A clock moved by hand, and an app that answers every method and path behind rules with it. */
function setUp(rules, options) {
  const hand = { now: 1_000_000 };
  const settings = { clock: () => hand.now, authenticate: byHeaders, rules, ...options };
  if ('keyGenerator' in settings) delete settings.authenticate;
  const middleware = rateLimit(settings);
  const app = express();
  app.use(middleware);
  app.use((req, res) => res.json(req.rateLimit ?? null));
  app.use((error, _req, res, _next) => {
    res.status(500).json({ code: error.code, message: error.message });
  });
  const ask = (path, { id = 'ada', group, method = 'get' } = {}) => {
    const asked = request(app)[method](path).set('x-id', id);
    return group === undefined ? asked : asked.set('x-group', group);
  };
  const statuses = async (...paths) => {
    const found = [];
    for (const path of paths) found.push((await ask(...[].concat(path))).status);
    return found;
  };
  return { app, middleware, hand, ask, statuses };
}

function byHeaders(req) {
  return { id: req.headers['x-id'], group: req.headers['x-group'] };
}

describe('the rule that decides', () => {
  test('is the first whose path matches; where none does, the request passes uncounted', async () => {
    const { ask, statuses } = setUp([
      { path: '/api/slow', limit: 1 },
      { path: '/api', limit: 2 },
    ]);
    expect(await statuses('/api/slow', '/api/slow/x')).toEqual([200, 429]);
    expect(await statuses('/api', '/api/x/y', '/api?slow')).toEqual([200, 200, 429]);
    const { status, body, headers } = await ask('/apix');
    expect([status, body]).toEqual([200, null]);
    expect(headers).not.toHaveProperty('x-ratelimit-limit');
  });

  test('is the first in order, be it a path or a RegExp', async () => {
    const { ask } = setUp([
      { path: /^\/a\/\d+$/, limit: 1 },
      { path: '/a', limit: 2 },
      { path: /^\/a/, limit: 3 },
      { path: '/', limit: 4 },
    ]);
    const limitAt = async (path) => Number((await ask(path)).headers['x-ratelimit-limit']);
    expect(await limitAt('/a/5')).toBe(1);
    expect(await limitAt('/a/x')).toBe(2);
    expect(await limitAt('/ax')).toBe(3);
    expect(await limitAt('/x')).toBe(4);
    expect(await limitAt('/a/5?x')).toBe(1);
  });

  test.each(['', 'g', 'y', 'gy'])(
    'a RegExp with the flags %p is asked anew each time',
    async (flags) => {
      const path = new RegExp('/api', flags);
      path.lastIndex = 3;
      const { statuses } = setUp([{ path, limit: 1 }]);
      expect(await statuses('/api', '/api', '/api', '/api')).toEqual([200, 429, 429, 429]);
    },
  );

  test('goes by method; GET is HEAD, too', async () => {
    const { statuses } = setUp([
      { path: '/', method: 'get', limit: 1 },
      { path: '/', method: ['PUT', 'POST'], limit: 1 },
    ]);
    const by = (method) => ['/', { method }];
    expect(await statuses(by('get'), by('head'), by('get'))).toEqual([200, 429, 429]);
    expect(await statuses(by('put'), by('post'))).toEqual([200, 429]);
    expect(await statuses(by('delete'), by('delete'))).toEqual([200, 200]);
  });

  test('goes by group; who is of none is of the group default', async () => {
    const { statuses } = setUp([
      { path: '/', group: 'admin' },
      { path: '/', group: ['gold', 'silver'], limit: 2 },
      { path: '/', group: 'default', limit: 1 },
    ]);
    const of = (group) => ['/', { group }];
    expect(await statuses(of('admin'), of('admin'), of('admin'))).toEqual([200, 200, 200]);
    expect(await statuses(of('gold'), of('silver'), of('gold'))).toEqual([200, 200, 429]);
    expect(await statuses(of(), of('default'))).toEqual([200, 429]);
    expect(await statuses(of('other'), of('other'))).toEqual([200, 200]);
  });

  test('without authenticate the key is the id, and the group is default', async () => {
    const rules = [{ path: '/', group: 'default', limit: 1 }];
    const { statuses } = setUp(rules, { keyGenerator: (req) => req.headers['x-id'] });
    const by = (id) => ['/', { id }];
    expect(await statuses(by('ada'), by('bob'), by('ada'))).toEqual([200, 200, 429]);
    const byAddress = setUp(rules, { keyGenerator: undefined });
    expect((await byAddress.ask('/')).body.key).toBe('127.0.0.1');
  });

  test('one without limits lets pass, whoever asks: nobody is authenticated for it', async () => {
    const authenticate = jest.fn(() => ({ id: 'ada' }));
    const { statuses } = setUp([{ path: '/public' }, { path: '/', limit: 1 }], { authenticate });
    expect(await statuses('/public/a', '/public/a', '/public')).toEqual([200, 200, 200]);
    expect(authenticate).not.toHaveBeenCalled();
    expect(await statuses('/', '/')).toEqual([200, 429]);
    expect(authenticate).toHaveBeenCalledTimes(2);
  });

  test('is found among hundreds', async () => {
    const many = Array.from({ length: 300 }, (_, i) => ({ path: `/api/v1/r${i}/items`, limit: i }));
    const { ask } = setUp([...many, { path: /r\d+/, limit: 1000 }]);
    const limitAt = async (path) => (await ask(path)).body.limit;
    expect(await limitAt('/api/v1/r299/items/5')).toBe(299);
    expect(await limitAt('/api/v1/r17/items')).toBe(17);
    expect(await limitAt('/api/v1/r17/item')).toBe(1000);
    expect((await ask('/api/v1')).body).toBe(null);
  });
});

describe('what is counted together', () => {
  test('each rule counts by itself, and rules of one zone together', async () => {
    const { statuses } = setUp([
      { path: '/a', limit: 2, zone: 'z' },
      { path: '/b', max: 2, windowMs: MINUTE_MS, zone: 'z' },
      { path: '/c', limit: 2 },
    ]);
    expect(await statuses('/a', '/b', '/a', '/b')).toEqual([200, 200, 429, 429]);
    expect(await statuses('/c', '/c', '/c')).toEqual([200, 200, 429]);
    expect(await statuses(['/a', { id: 'bob' }])).toEqual([200]);
  });

  test('perPath counts each URL apart, whatever its query and its spelling', async () => {
    const { statuses } = setUp([{ path: '/item', limit: 1, perPath: true }]);
    expect(await statuses('/item/1', '/item/2', '/item')).toEqual([200, 200, 200]);
    const sameAs1 = ['/item/1?x', '/item/1/', '/ITEM/1', '/item/%31', '/%69tem/1?y'];
    expect(await statuses(...sameAs1)).toEqual([429, 429, 429, 429, 429]);
    expect(await statuses('/item/a:b', '/item/a%3ab', '/item/a%3Ab')).toEqual([200, 429, 429]);
    expect(await statuses('/item/%2531', '/item/x%2fy', '/item/x/y')).toEqual([200, 200, 200]);
    expect(await statuses(['/item/1', { id: 'bob' }])).toEqual([200]);
  });

  test('perPath in a zone: one count for each path, whichever rule it is', async () => {
    const { statuses } = setUp([
      { path: '/a', method: 'GET', limit: 1, zone: 'z', perPath: true },
      { path: '/a', method: 'POST', limit: 1, zone: 'z', perPath: true },
      { path: '/b', limit: 1, zone: 'z' },
    ]);
    expect(await statuses('/a/1', ['/a/1', { method: 'post' }], '/a/2')).toEqual([200, 429, 200]);
    expect(await statuses('/b', '/b/1')).toEqual([200, 429]);
  });

  test('no path and id share a count with another path and id', async () => {
    const { statuses } = setUp([{ path: '/', limit: 1, perPath: true }]);
    const asked = [
      ['/a', { id: '1' }],
      ['/a1', { id: '' }],
      ['/', { id: 'a1' }],
      ['/', { id: '2:/a1' }],
      [`/${'x'.repeat(200)}`, { id: 'a' }],
      [`/${'x'.repeat(201)}`, { id: 'a' }],
      [`/${'x'.repeat(200)}`, { id: 'b' }],
    ];
    expect(await statuses(...asked)).toEqual(asked.map(() => 200));
    expect(await statuses(...asked)).toEqual(asked.map(() => 429));
  });

  test('an id that is none is an error, with perPath as well', async () => {
    for (const perPath of [false, true]) {
      const { ask } = setUp([{ path: '/', limit: 1, perPath }], {
        authenticate: () => ({ id: {} }),
      });
      expect((await ask('/')).body.code).toBe('ERR_ROLLGATE_ID');
    }
  });

  test('1 and "1" are one id, and null is the one of callers without', async () => {
    const ids = [1, '1', 1n, null, ''];
    for (const perPath of [false, true]) {
      const left = [...ids];
      const authenticate = () => ({ id: left.shift() });
      const { statuses } = setUp([{ path: '/', limit: 1, perPath }], { authenticate });
      expect(await statuses('/', '/', '/', '/', '/')).toEqual([200, 429, 429, 200, 429]);
    }
  });
});

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

describe('blocks', () => {
  const BLOCK_MS = 10 * MINUTE_MS;

  test('blockFor refuses in the zone of its rule, for that long', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/a', limit: 1, windowMs: 1000, blockFor: BLOCK_MS, zone: 'z' },
      { path: '/b', limit: 1, windowMs: 1000, blockFor: BLOCK_MS, zone: 'z' },
      { path: '/c', limit: 1, windowMs: 1000 },
    ]);
    expect(await statuses('/a', '/a', '/c')).toEqual([200, 429, 200]);
    hand.now += BLOCK_MS - 1;
    const refused = await ask('/b');
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
    expect(await statuses('/c')).toEqual([200]);
    hand.now += 1;
    expect(await statuses('/b')).toEqual([200]);
  });

  test('blockEverywhere refuses on every rule with limits, that id only, and not for longer', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/health' },
      { path: '/login', limit: 1, windowMs: 1000, blockFor: BLOCK_MS, blockEverywhere: true },
      { path: '/other', limit: 7, windowMs: 2000 },
    ]);
    expect(await statuses('/other', '/login', '/other', '/login')).toEqual([200, 200, 200, 429]);
    hand.now += BLOCK_MS - 3000;
    const { status, headers } = await ask('/other');
    expect(status).toBe(429);
    expect(headers).toMatchObject({
      'retry-after': '3',
      'x-ratelimit-limit': '7',
      'x-ratelimit-remaining': '0',
    });
    expect(await statuses('/login', '/health', '/nowhere')).toEqual([429, 200, 200]);
    expect(await statuses(['/other', { id: 'bob' }])).toEqual([200]);
    hand.now += 3000 - 1;
    expect(await statuses('/other')).toEqual([429]);
    hand.now += 1;
    const { body } = await ask('/other');
    expect(body.used).toBe(1); // what was refused meanwhile left no trace
    expect(await statuses('/login')).toEqual([200]);
  });

  test('blockEverywhere lasts as long as the block, though the window is longer', async () => {
    const { hand, statuses } = setUp([
      {
        path: '/login',
        limit: 1,
        windowMs: 60 * MINUTE_MS,
        blockFor: MINUTE_MS,
        blockEverywhere: true,
      },
      { path: '/', limit: 9 },
    ]);
    expect(await statuses('/login', '/login', '/')).toEqual([200, 429, 429]);
    hand.now += MINUTE_MS;
    expect(await statuses('/', '/login')).toEqual([200, 429]);
  });

  test('blockEverywhere goes with the lengths of a growing list', async () => {
    const lengths = [1000, 5000, 20_000];
    const { hand, statuses } = setUp([
      {
        path: '/login',
        limit: 1,
        windowMs: 30 * MINUTE_MS,
        blockFor: lengths,
        blockEverywhere: true,
      },
      { path: '/', limit: 1000 },
    ]);
    await statuses('/login');
    for (const length of [...lengths, 20_000]) {
      expect(await statuses('/', '/login', '/')).toEqual([200, 429, 429]);
      hand.now += length - 1;
      expect(await statuses('/')).toEqual([429]);
      hand.now += 1;
    }
  });

  test('blocks of several lengths: the longest counts', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/a', limit: 1, blockFor: 1000, blockEverywhere: true },
      { path: '/b', limit: 1, blockFor: 5000, blockEverywhere: true },
      { path: '/', limit: 9 },
    ]);
    await statuses('/a', '/b', '/b');
    expect((await ask('/')).headers['retry-after']).toBe('5');
    hand.now += 4999;
    expect(await statuses('/a')).toEqual([429]);
    hand.now += 1;
    expect(await statuses('/')).toEqual([200]);
  });

  test('a trap: whoever asks for it is blocked everywhere', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/.env', limit: 0, blockFor: BLOCK_MS, blockEverywhere: true },
      { path: '/', limit: 100 },
    ]);
    const { headers } = await ask('/.env', { id: 'bob' });
    expect(headers['retry-after']).toBe('600');
    expect(await statuses('/', '/.env', '/')).toEqual([200, 429, 429]);
    hand.now += BLOCK_MS;
    expect(await statuses('/')).toEqual([200]);
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

describe('authenticate', () => {
  const rules = [{ path: '/', group: 'staff', limit: 1 }];

  test('may answer later', async () => {
    const authenticate = async () => ({ id: 'ada', group: 'staff' });
    expect(await setUp(rules, { authenticate }).statuses('/', '/')).toEqual([200, 429]);
  });

  test('without rules its id is the key', async () => {
    for (const authenticate of [byHeaders, async (req) => byHeaders(req)]) {
      const { ask, statuses } = setUp(undefined, { authenticate, limit: 1 });
      expect((await ask('/')).body.key).toBe('ada');
      expect(await statuses('/', ['/', { id: 'bob' }])).toEqual([429, 200]);
      const { middleware } = setUp(undefined, { authenticate, limit: 1 });
      expect(middleware).toHaveLength(3);
    }
  });

  const failures = [
    [
      'throws',
      () => {
        throw new Error('no token');
      },
      { message: 'no token' },
    ],
    ['rejects', () => Promise.reject(new Error('no token')), { message: 'no token' }],
    [
      'throws nothing',
      () => {
        throw undefined;
      },
      { code: 'ERR_ROLLGATE_THROWN' },
    ],
    ['gives nothing', () => undefined, { code: 'ERR_ROLLGATE_AUTHENTICATE' }],
    ['gives null, later', async () => null, { code: 'ERR_ROLLGATE_AUTHENTICATE' }],
    ['gives an id alone', () => 'ada', { code: 'ERR_ROLLGATE_AUTHENTICATE' }],
    ['gives no id', () => ({ group: 'staff' }), { code: 'ERR_ROLLGATE_AUTHENTICATE' }],
    [
      'gives a group that is none',
      () => ({ id: 1, group: 5 }),
      { code: 'ERR_ROLLGATE_AUTHENTICATE' },
    ],
  ];

  test.each(failures)('that %s is an error for next', async (_what, authenticate, error) => {
    for (const options of [{ authenticate }, { authenticate, passOnStoreError: true }]) {
      const { status, body } = await setUp(rules, options).ask('/');
      expect(status).toBe(500);
      expect(body).toMatchObject(error);
      const { body: withoutRules } = await setUp(undefined, options).ask('/');
      expect(withoutRules).toMatchObject(error);
    }
  });

  test.each(failures)('that %s is for onAuthError to answer', async (_what, authenticate) => {
    const onAuthError = jest.fn((_error, _req, res, _next) => void res.status(401).end());
    const { status } = await setUp(rules, { authenticate, onAuthError }).ask('/');
    expect(status).toBe(401);
    expect(onAuthError).toHaveBeenCalledTimes(1);
  });

  const fails = { authenticate: () => Promise.reject(new Error('no token')) };

  test('onAuthError gets the error and may let the request pass, uncounted', async () => {
    const onAuthError = jest.fn(async (_error, _req, _res, next) => next());
    const { status, body } = await setUp(rules, { ...fails, onAuthError }).ask('/');
    expect([status, body]).toEqual([200, null]);
    expect(onAuthError.mock.calls[0][0].message).toBe('no token');
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('worse');
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('worse');
      },
    ],
  ])('onAuthError that %s itself: its error reaches next, once', async (_what, onAuthError) => {
    const next = jest.fn();
    const req = { method: 'GET', url: '/', headers: {} };
    await rateLimit({ rules, ...fails, onAuthError })(req, {}, next);
    expect(next.mock.calls).toEqual([[expect.objectContaining({ message: 'worse' })]]);
  });

  test('is not asked where no rule could apply', async () => {
    const { statuses } = setUp([{ path: '/api', method: 'POST', limit: 1 }], fails);
    expect(await statuses('/', '/api', ['/api', { method: 'post' }])).toEqual([200, 200, 500]);
  });
});

test('with a limiter in memory all of it happens within the call', () => {
  const rules = [{ path: '/', limit: 1, perPath: true, blockFor: 5, blockEverywhere: true }];
  const middleware = rateLimit({ rules, authenticate: byHeaders });
  const next = jest.fn();
  const answer = { headersSent: true, end: jest.fn() };
  const ask = () => middleware({ method: 'GET', url: '/', headers: { 'x-id': 'a' } }, answer, next);
  expect(ask()).toBe(undefined);
  expect(next).toHaveBeenCalledTimes(1);
  expect(ask()).toBe(undefined);
  expect(answer.end).toHaveBeenCalledTimes(1);
});

test('resetKey and getKey go through all zones, and resetKey ends blocks', async () => {
  const { middleware, statuses } = setUp([
    { path: '/a', limit: 5 },
    { path: '/b', limit: 3 },
    { path: '/c', limit: 1, blockFor: MINUTE_MS, blockEverywhere: true },
    { path: '/d', limit: 1, perPath: true },
    { path: '/e' },
  ]);
  expect(await middleware.getKey('ada')).toBe(undefined);
  await statuses('/a', '/a', '/a', '/b', '/d/1');
  // Of /a 2 are left, of /b 2, of which /b takes as long to give more.
  expect(await middleware.getKey('ada')).toMatchObject({ resetTime: expect.any(Date) });
  await statuses('/b');
  expect(await middleware.getKey('ada')).toMatchObject({ totalHits: 2 });
  expect(await statuses('/c', '/c', '/a')).toEqual([200, 429, 429]);
  await middleware.resetKey('ada');
  expect(await middleware.getKey('ada')).toBe(undefined);
  expect(await statuses('/a', '/b', '/c')).toEqual([200, 200, 200]);
  expect(await statuses('/d/1')).toEqual([429]);
});

describe('where a block on every rule cannot be recorded', () => {
  /** The clock fails from the second reading on, which is that of the record. */
  function trapWithFailingClock(options) {
    const readings = [1000];
    const clock = () => readings.shift();
    return setUp([{ path: '/', limit: 0, blockFor: 1, blockEverywhere: true }], {
      clock,
      ...options,
    });
  }

  test('the request fails', async () => {
    const { status, body } = await trapWithFailingClock().ask('/');
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_CLOCK']);
  });

  test('with passOnStoreError it is refused all the same, which was decided', async () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const { ask } = trapWithFailingClock({ passOnStoreError: true, logger });
    expect((await ask('/')).status).toBe(429);
    expect(logger.error.mock.calls).toEqual([
      [
        expect.objectContaining({ code: 'ERR_ROLLGATE_CLOCK' }),
        expect.stringContaining('rollgate_block_lost'),
      ],
    ]);
    expect((await ask('/')).status).toBe(200); // now no decision can be made
  });
});
