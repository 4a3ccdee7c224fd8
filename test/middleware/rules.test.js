// Rules: which one decides, what is counted together, and blocks on every rule.
'use strict';
const { rateLimit } = require('../..');
const { callDirectly, inTurn, newLogger, setUp, withCode } = require('./apps');

const MINUTE_MS = 60_000;

describe('the rule that decides', () => {
  test('is the first in order, of a path or a RegExp; without one the request passes', async () => {
    const many = Array.from({ length: 300 }, (_, i) => ({ path: `/r${i}/items`, limit: 100 + i }));
    const { ask } = setUp([
      { path: /^\/a\/\d+$/, limit: 10 },
      { path: '/a/b', limit: 5 },
      { path: '/a', limit: 2 },
      { path: /^\/a/, limit: 3 },
      ...many,
    ]);
    const limitAt = async (path) => (await ask(path)).body?.limit;
    const ofFew = await inTurn(['/a/5', '/a/b/x', '/a/x', '/ax', '/a?b', '/a/5?x'], limitAt);
    expect(ofFew).toEqual([10, 5, 2, 3, 2, 10]);
    const ofMany = await inTurn(['/r299/items/5', '/r17/items', '/r17/item'], limitAt);
    expect(ofMany).toEqual([399, 117, undefined]);
    expect((await ask('/x')).headers).not.toHaveProperty('x-ratelimit-limit');
  });

  test.each(['', 'g', 'y', 'gy'])('does not depend on the lastIndex of /api/%s', async (flags) => {
    const path = Object.assign(new RegExp('/api', flags), { lastIndex: 3 });
    const { statuses } = setUp([{ path, limit: 1 }]);
    expect(await statuses('/api', '/api', '/api', '/api')).toEqual([200, 429, 429, 429]);
  });

  test('depends on the method in any case, as in HTTP/2 and Request, where GET includes HEAD', () => {
    const methods = ['get', ['PUT', 'POST']];
    const rules = methods.map((method) => ({ path: '/', method, limit: 1 }));
    const middleware = rateLimit({ rules });
    const passes = (method) => {
      const req = { method, url: '/', ip: '192.0.2.1', headers: {} };
      return callDirectly(middleware, req).calls.length === 1;
    };
    const asked = ['GET', 'HEAD', 'post', 'Put', 'DELETE', 'DELETE'];
    expect(asked.map(passes)).toEqual([true, false, true, false, true, true]);
  });

  test('depends on the group, which is default for callers without one', async () => {
    const { statuses } = setUp([
      { path: '/', group: 'admin' },
      { path: '/', group: ['gold', 'silver'], limit: 2 },
      { path: '/', group: 'default', limit: 1 },
    ]);
    const of = (...groups) => statuses(...groups.map((group) => ['/', { group }]));
    expect(await of('admin', 'admin', 'admin')).toEqual([200, 200, 200]);
    expect(await of('gold', 'silver', 'gold')).toEqual([200, 200, 429]);
    expect(await of(undefined, 'default', 'other', 'other')).toEqual([200, 429, 200, 200]);
  });

  test('is found without authenticate if it has no limits', async () => {
    const authenticate = jest.fn(() => ({ id: 'ada' }));
    const { statuses } = setUp([{ path: '/public' }, { path: '/', limit: 1 }], { authenticate });
    expect(await statuses('/public/a', '/public/a')).toEqual([200, 200]);
    expect(authenticate).not.toHaveBeenCalled();
    expect(await statuses('/', '/')).toEqual([200, 429]);
    expect(authenticate).toHaveBeenCalledTimes(2);
  });

  test('decides within the call if the limiter is in memory', () => {
    const rules = [{ path: '/', limit: 1, perPath: true, blockFor: 5, blockEverywhere: true }];
    const req = { method: 'GET', url: '/', ip: '192.0.2.1', headers: {} };
    expect(callDirectly(rateLimit({ rules }), req)).toMatchObject({
      calls: [[]],
      returned: undefined,
    });
  });
});

describe('what is counted together', () => {
  test('is each rule, or the rules of one zone', async () => {
    const { statuses } = setUp([
      { path: '/a', limit: 2, zone: 'z' },
      { path: '/b', max: 2, windowMs: MINUTE_MS, zone: 'z' },
      { path: '/c', limit: 2 },
    ]);
    expect(await statuses('/a', '/b', '/a', '/b')).toEqual([200, 200, 429, 429]);
    expect(await statuses('/c', ['/a', { id: 'bob' }])).toEqual([200, 200]);
  });

  test('is each path with perPath, whatever its query and spelling', async () => {
    const { statuses } = setUp([{ path: '/item', limit: 1, perPath: true }]);
    expect(await statuses('/item/1', '/item/2', '/item')).toEqual([200, 200, 200]);
    const sameAs1 = ['/item/1?x', '/item/1/', '/ITEM/1', '/item/%31', '/%69tem/1?y'];
    expect(await statuses(...sameAs1)).toEqual([429, 429, 429, 429, 429]);
    expect(await statuses('/item/a:b', '/item/a%3ab', '/item/a%3Ab')).toEqual([200, 429, 429]);
    expect(await statuses('/item/%2531', '/item/x%2fy', '/item/x/y')).toEqual([200, 200, 429]);
    expect(await statuses(['/item/1', { id: 'bob' }])).toEqual([200]);
  });

  test('is never another pair of path and id', async () => {
    const { statuses } = setUp([{ path: '/', limit: 1, perPath: true }]);
    const long = `/${'x'.repeat(200)}`;
    const pairs = [
      ['/a', '1'],
      ['/a1', ''],
      ['/', 'a1'],
      ['/', '2:/a1'],
      [long, 'a'],
      [long, 'b'],
    ];
    const asked = [...pairs, [`${long}x`, 'a']].map(([path, id]) => [path, { id }]);
    expect(await statuses(...asked)).toEqual(asked.map(() => 200));
    expect(await statuses(...asked)).toEqual(asked.map(() => 429));
  });

  test.each([false, true])('is the id as a string, perPath: %p', async (perPath) => {
    const ids = [1, '1', null, {}];
    const authenticate = () => ({ id: ids.shift() });
    const { ask, statuses } = setUp([{ path: '/', limit: 1, perPath }], { authenticate });
    expect(await statuses('/', '/', '/')).toEqual([200, 429, 200]);
    expect((await ask('/')).body.code).toBe('ERR_ROLLGATE_ID');
  });

  test('is all zones for resetKey and getKey, and a reset ends blocks', async () => {
    const { middleware, statuses } = setUp([
      { path: '/a', limit: 5 },
      { path: '/b', limit: 3 },
      { path: '/c', limit: 1, blockFor: MINUTE_MS, blockEverywhere: true },
      { path: '/d', limit: 1, perPath: true },
      { path: '/e' },
    ]);
    expect(await middleware.getKey('ada')).toBe(undefined);
    await statuses('/a', '/a', '/a', '/b', '/b', '/d/1');
    expect(await middleware.getKey('ada')).toMatchObject({ totalHits: 2 }); // of /b, with 1 left
    expect(await statuses('/c', '/c', '/a')).toEqual([200, 429, 429]);
    await middleware.resetKey('ada');
    expect(await middleware.getKey('ada')).toBe(undefined);
    expect(await statuses('/a', '/b', '/c', '/d/1')).toEqual([200, 200, 200, 429]);
  });
});

test('the limits of a rule are sent with the headers and answers of the top level', async () => {
  const rules = [
    { path: '/a', limit: 1, windowMs: 2000 },
    { path: '/b', limit: 3, windowMs: 5000 },
  ];
  const answers = { standardHeaders: 'draft-8', statusCode: 503, message: { no: 1 } };
  const { ask } = setUp(rules, { ...answers, requestPropertyName: 'quota' });
  expect((await ask('/b')).headers.ratelimit).toBe('"3-in-5sec"; r=2; t=5');
  const policy = (await ask('/a')).headers['ratelimit-policy'];
  expect(policy).toMatch(/^"1-in-2sec"; q=1; w=2; pk=/);
  const { status, body, headers } = await ask('/a');
  expect([status, body, headers['retry-after']]).toEqual([503, { no: 1 }, '2']);
});

describe('blocks', () => {
  const BLOCK_MS = 10 * MINUTE_MS;
  const EVERYWHERE = { blockFor: BLOCK_MS, blockEverywhere: true };

  /** Refuses at these paths until `ms` have passed, and allows the first of them exactly then. */
  async function expectBlockFor(ms, { hand, statuses }, ...paths) {
    hand.now += ms - 1;
    expect(await statuses(...paths)).toEqual(paths.map(() => 429));
    hand.now += 1;
    expect(await statuses(paths[0])).toEqual([200]);
  }

  test('blockEverywhere refuses one id on every rule with limits, and leaves no trace', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/health' },
      { path: '/login', limit: 1, windowMs: 1000, ...EVERYWHERE },
      { path: '/other', limit: 7, windowMs: 2000 },
    ]);
    expect(await statuses('/other', '/login', '/other', '/login')).toEqual([200, 200, 200, 429]);
    hand.now += BLOCK_MS - 3000;
    const { status, headers } = await ask('/other');
    const shown = [headers['retry-after'], headers['x-ratelimit-limit']];
    expect([status, ...shown, headers['x-ratelimit-remaining']]).toEqual([429, '3', '7', '0']);
    const others = ['/login', '/health', '/nowhere', ['/other', { id: 'bob' }]];
    expect(await statuses(...others)).toEqual([429, 200, 200, 200]);
    hand.now += 3000 - 1;
    expect(await statuses('/other')).toEqual([429]);
    hand.now += 1;
    expect((await ask('/other')).body.used).toBe(1);
    expect(await statuses('/login')).toEqual([200]);
  });

  test.each([
    ['a number', 1, 100],
    ['a function', () => 1, () => 100],
  ])('blockEverywhere follows a list of lengths; limit is %s', async (_what, limit, other) => {
    const lengths = [1000, 5000, 20_000];
    const login = { path: '/login', limit, windowMs: 30 * MINUTE_MS, blockFor: lengths };
    const app = setUp([
      { ...login, blockEverywhere: true },
      { path: '/', limit: other },
    ]);
    await app.statuses('/login');
    for (const length of [...lengths, 20_000]) {
      expect(await app.statuses('/', '/login')).toEqual([200, 429]);
      expect((await app.ask('/')).headers['x-ratelimit-limit']).toBe('100');
      await expectBlockFor(length, app, '/');
    }
  });

  test('a limit of 0 is a trap, and the longest of several blocks counts', async () => {
    const app = setUp([
      { path: '/.env', limit: 0, ...EVERYWHERE },
      { path: '/a', limit: 0, blockFor: 1000, blockEverywhere: true },
      { path: '/', limit: 100 },
    ]);
    expect((await app.ask('/.env', { id: 'bob' })).headers['retry-after']).toBe('600');
    expect(await app.statuses('/', '/.env', '/a', '/')).toEqual([200, 429, 429, 429]);
    await expectBlockFor(BLOCK_MS, app, '/');
  });

  // The zone blocks the caller by another rule, which blocks on no other.
  test.each([
    ['a length', MINUTE_MS, []],
    ['a list', [1000, MINUTE_MS], [1000]], // it is the second block
  ])('that are not recorded are, by the next refusal, for the time left of %s', async (...row) => {
    const [, blockFor, waits] = row;
    const rule = { limit: 1, windowMs: BLOCK_MS, zone: 'z', blockFor };
    const app = setUp([
      { path: '/first', ...rule },
      { path: '/login', ...rule, blockEverywhere: true },
      { path: '/other', limit: 100 },
    ]);
    await app.statuses('/first', '/first');
    for (const ms of waits) {
      app.hand.now += ms;
      await app.statuses('/first');
    }
    app.hand.now += MINUTE_MS / 4;
    expect(await app.statuses('/other', '/login', '/other')).toEqual([200, 429, 429]);
    await expectBlockFor((MINUTE_MS * 3) / 4, app, '/other');
  });

  test.each([
    ['memory', [200, 429, 429]],
    ['allow', [200, 200, 200]],
    ['block', [429, 429, 429]],
  ])("hold in an outage as onError: '%s' says", async (onError, expected) => {
    const down = () => Promise.reject(new Error('down'));
    const kv = { get: down, set: down, delete: down };
    const rules = [
      { path: '/login', limit: 1, ...EVERYWHERE },
      { path: '/other', limit: 100 },
    ];
    const { statuses } = setUp(rules, { kv, namespace: 'n', onError });
    expect(await statuses('/login', '/login', '/other')).toEqual(expected);
  });

  test('that cannot be recorded fail the request, or are reported with passOnStoreError', async () => {
    const rules = [
      { path: '/login', limit: 1, windowMs: 1000, blockFor: MINUTE_MS, blockEverywhere: true },
      { path: '/other', limit: 100 },
    ];
    for (const passOnStoreError of [false, true]) {
      const readings = [];
      const clock = () => (readings.length > 0 ? readings.shift() : 1000);
      const logger = newLogger();
      const { ask, statuses } = setUp(rules, { clock, passOnStoreError, logger });
      await ask('/login');
      readings.push(1000, 1000, Number.NaN); // of the search, the refusal and the record
      const { status, body } = await ask('/login');
      const failed = withCode('ERR_ROLLGATE_CLOCK');
      if (passOnStoreError) expect(status).toBe(429);
      else expect([status, body]).toEqual([500, failed]);
      const link = expect.stringContaining('rollgate_block_lost');
      expect(logger.error.mock.calls).toEqual(passOnStoreError ? [[failed, link]] : []);
      expect(await statuses('/other', '/login', '/other')).toEqual([200, 429, 429]);
    }
  });
});
