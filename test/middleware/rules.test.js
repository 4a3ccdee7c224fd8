// Rules of the middleware: which one decides, on whom, and what is counted together.
'use strict';

const { rateLimit } = require('../..');
const { byHeaders, setUp } = require('./rules-app');

const MINUTE_MS = 60_000;

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
    expect(await statuses('/item/%2531', '/item/x%2fy', '/item/x/y')).toEqual([200, 200, 429]);
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
