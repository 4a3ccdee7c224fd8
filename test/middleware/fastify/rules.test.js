// The Fastify plugin with rules: which one decides on a request, and what routes say for themselves.
'use strict';

const RateLimiter = require('../../..');
const { createPlainKv } = require('../../support/kv-stores');
const { startRedis } = require('../../support/redis-server');
const { waitUntil } = require('../../support/wait-until');
const { HOUR_MS, closeAll, get, listen, newApp, rollgate, statusesOf } = require('./apps');

afterEach(closeAll);

const clock = () => 5 * HOUR_MS;
const answer = () => 'passed';
const as = (id, group) => ({ headers: { 'x-id': id, ...(group && { 'x-group': group }) } });

/** Tells the caller as headers say. */
function authenticate(request) {
  return { id: request.headers['x-id'], group: request.headers['x-group'] };
}

/** The plugin at the root; `routes` are paths with what their config.rateLimit is. */
async function start(options, routes) {
  const app = newApp();
  await app.register(rollgate, { clock, ...options });
  for (const [path, rateLimit] of Object.entries(routes)) {
    const config = rateLimit === undefined ? {} : { rateLimit };
    app.route({ method: ['GET', 'POST'], url: path, config, handler: answer });
  }
  return listen(app);
}

describe('rules', () => {
  test('the first whose path, method and group match decides', async () => {
    const url = await start(
      {
        authenticate,
        rules: [
          { path: '/health' },
          { path: '/api', method: 'POST', limit: 1 },
          { path: '/api', group: 'gold', limit: 3 },
          { path: '/api', limit: 2 },
        ],
      },
      { '/health': undefined, '/api/items': undefined, '/other': undefined },
    );
    const at = (path, times, init) => statusesOf(`${url}${path}`, times, init);
    expect(await at('/health', 9, as('ada'))).toEqual(Array(9).fill(200));
    expect(await at('/other', 9, as('ada'))).toEqual(Array(9).fill(200));
    expect(await at('/api/items', 2, { method: 'POST', ...as('ada') })).toEqual([200, 429]);
    expect(await at('/api/items', 3, as('ada'))).toEqual([200, 200, 429]);
    expect(await at('/api/missing', 1, as('ada'))).toEqual([429]);
    expect(await at('/api/items', 4, as('ada', 'gold'))).toEqual([200, 200, 200, 429]);
    expect(await at('/api/items', 1, as('bob'))).toEqual([200]);
  });

  test('go by the whole path, whatever the prefix of the scope', async () => {
    const app = newApp();
    app.register(
      async (scope) => {
        scope.register(rollgate, { clock, rules: [{ path: '/v1/items', limit: 1 }] });
        scope.get('/items', answer);
        scope.get('/other', answer);
      },
      { prefix: '/v1' },
    );
    const url = await listen(app);
    expect(await statusesOf(`${url}/v1/items`, 2)).toEqual([200, 429]);
    expect(await statusesOf(`${url}/v1/other`, 2)).toEqual([200, 200]);
  });

  test('perPath, zone, shadow and blockEverywhere work', async () => {
    const app = newApp();
    const block = { blockFor: HOUR_MS, blockEverywhere: true };
    app.register(rollgate, {
      clock,
      authenticate,
      rules: [
        { path: '/each', limit: 1, perPath: true },
        { path: '/one', limit: 1, zone: 'z' },
        { path: '/two', limit: 1, zone: 'z' },
        { path: '/trial', limit: 0, shadow: true },
        { path: '/trap', limit: 0, ...block },
      ],
    });
    app.get('/trial', (request) => request.rateLimit);
    app.get('/*', answer);
    const url = await listen(app);
    const at = (path, id) => get(`${url}${path}`, as(id));
    const statuses = async (id, ...paths) => {
      const found = [];
      for (const path of paths) found.push((await at(path, id)).status);
      return found;
    };
    expect(await statuses('ada', '/each/1', '/each/2', '/each/1')).toEqual([200, 200, 429]);
    expect(await statuses('ada', '/one', '/two')).toEqual([200, 429]);
    const { status, text, headers } = await at('/trial', 'ada');
    expect([status, JSON.parse(text)]).toEqual([
      200,
      expect.objectContaining({ shadow: true, limited: true }),
    ]);
    expect(headers.get('x-ratelimit-limit')).toBeNull();
    expect(await statuses('bob', '/one', '/trap', '/each/1', '/free')).toEqual([
      200, 429, 429, 200,
    ]);
  });

  test('skipFailedRequests takes back what failed', async () => {
    const rules = [{ path: '/', limit: 1 }];
    const url = await start({ rules, skipFailedRequests: true }, { '/': undefined });
    for (let i = 0; i < 3; i++) {
      await waitUntil('there is room', async () => (await get(`${url}/missing`)).status === 404);
    }
    await waitUntil('there is room', async () => (await get(url)).status === 200);
    expect(await statusesOf(url, 1)).toEqual([429]);
  });

  test('on Redis two servers count together', async () => {
    const redis = await startRedis();
    const rules = [{ path: '/api', limit: 3, windowMs: HOUR_MS }];
    const options = { rules, redis: redis.url, namespace: 'api', clock: undefined };
    const one = await start(options, { '/api': undefined });
    const other = await start(options, { '/api': undefined });
    expect(await statusesOf(`${one}/api`, 2)).toEqual([200, 200]);
    expect(await statusesOf(`${other}/api`, 2)).toEqual([200, 429]);
  });

  test('wrong ones are errors of ready() that tell the place', async () => {
    const wrong = [
      [
        {
          rules: [
            { path: '/a', limit: 1 },
            { path: '/b', limitt: 2 },
          ],
        },
        /rules\[1\]/,
      ],
      [{ rules: [{ path: '/a', limit: '1' }] }, /rules\[0\]/],
      [{ rules: [null] }, /rules\[0\]/],
      [{ rules: [] }, /rules/],
      [{ rules: '/a' }, /rules/],
      [{ rules: [{ path: '/a', limit: 1 }], limit: 2 }, /beside 'rules'/],
      [{ onAuthError: answer }, /authenticate/],
      [{ authenticate: 'ada' }, /authenticate/],
      [{ authenticate, keyGenerator: () => 'k' }, /authenticate/],
    ];
    for (const [options, message] of wrong) {
      const app = newApp();
      app.register(rollgate, options);
      const found = await readyError(app);
      expect(found).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
      expect(found.message).toMatch(message);
    }
  });
});

describe('limit as a function', () => {
  const byHeader = (request, reply) => {
    expect(reply.request).toBe(request);
    return Number(request.headers['x-limit']);
  };
  const allowed = (limit) => ({ headers: { 'x-limit': String(limit) } });

  test.each(['limit', 'max', 'maxInInterval'])('%s gets request and reply', async (name) => {
    for (const own of [byHeader, async (...args) => byHeader(...args)]) {
      const url = await start({ [name]: own, countBlocked: false }, { '/': undefined });
      expect(await statusesOf(url, 2, allowed(1))).toEqual([200, 429]);
      expect(await statusesOf(url, 2, allowed(2))).toEqual([200, 429]);
    }
  });

  test.each(['limit', 'max', 'maxInInterval'])('%s does so in rules, too', async (name) => {
    const rules = [{ path: '/', [name]: byHeader, countBlocked: false }];
    const url = await start({ rules }, { '/': undefined });
    expect(await statusesOf(url, 2, allowed(1))).toEqual([200, 429]);
    expect(await statusesOf(url, 2, allowed(2))).toEqual([200, 429]);
  });

  test('rules of one zone agree in one function, and in no other', async () => {
    const zone = { zone: 'z', countBlocked: false };
    const rules = (other) => [
      { path: '/a', limit: byHeader, ...zone },
      { path: '/b', limit: other, ...zone },
    ];
    const url = await start({ rules: rules(byHeader) }, { '/a': undefined, '/b': undefined });
    expect(await statusesOf(`${url}/a`, 1, allowed(2))).toEqual([200]);
    expect(await statusesOf(`${url}/b`, 2, allowed(2))).toEqual([200, 429]);

    const app = newApp();
    app.register(rollgate, { rules: rules((...args) => byHeader(...args)) });
    expect((await readyError(app)).message).toContain("'rules[1].zone'");
  });

  test('a handler knows it as it was given, by the name that the middleware uses', async () => {
    let settings;
    const url = await start(
      {
        max: byHeader,
        handler: (_request, _reply, _next, told) => {
          settings = told;
          return 'no';
        },
      },
      { '/': undefined },
    );
    expect((await get(url, allowed(0))).text).toBe('no');
    expect(settings.limit).toBe(byHeader);
  });

  test("what it throws reaches Fastify's error handler", async () => {
    const limit = () => {
      throw new Error('no plan');
    };
    for (const options of [{ limit }, { rules: [{ path: '/', limit }] }]) {
      const { status, text } = await get(await start(options, { '/': undefined }));
      expect([status, JSON.parse(text)]).toEqual([503, { handled: 'no plan' }]);
    }
  });
});

describe('authenticate', () => {
  const rejectsAll = () => {
    throw Object.assign(new Error('who?'), { statusCode: 401 });
  };

  test('without rules its id is the key, of a promise as well', async () => {
    for (const own of [authenticate, async (request) => authenticate(request)]) {
      const url = await start({ authenticate: own, limit: 1 }, { '/': undefined });
      expect(await statusesOf(url, 2, as('ada'))).toEqual([200, 429]);
      expect(await statusesOf(url, 1, as('bob'))).toEqual([200]);
    }
  });

  test("its error reaches Fastify's error handler with its status", async () => {
    for (const own of [rejectsAll, async () => rejectsAll()]) {
      for (const limits of [{ limit: 9 }, { rules: [{ path: '/', limit: 9 }] }]) {
        const url = await start({ authenticate: own, ...limits }, { '/': undefined });
        const { status, text } = await get(url);
        expect([status, JSON.parse(text)]).toEqual([401, { handled: 'who?' }]);
      }
    }
  });

  test('an answer without an id is an error with a code', async () => {
    const url = await start({ authenticate: () => ({}), limit: 9 }, { '/': undefined });
    expect(JSON.parse((await get(url)).text).code).toBe('ERR_ROLLGATE_AUTHENTICATE');
  });

  test.each([
    ['sends', (error, _request, reply) => void reply.code(401).send({ why: error.message })],
    [
      'returns what it sends',
      (error, _request, reply) => reply.code(401).send({ why: error.message }),
    ],
    ['returns the body', (error, _request, reply) => reply.code(401) && { why: error.message }],
    [
      'returns it later',
      async (error, _request, reply) => reply.code(401) && { why: error.message },
    ],
  ])('onAuthError that %s answers', async (_what, onAuthError) => {
    for (const limits of [{ limit: 9 }, { rules: [{ path: '/', limit: 9 }] }]) {
      const url = await start(
        { authenticate: rejectsAll, onAuthError, ...limits },
        { '/': undefined },
      );
      const { status, text } = await get(url);
      expect([status, JSON.parse(text)]).toEqual([401, { why: 'who?' }]);
    }
  });

  test.each([
    ['at once', (_error, _request, _reply, next) => next()],
    ['later', async (_error, _request, _reply, next) => next()],
    ['and returns something', (_error, _request, _reply, next) => next() ?? 'body'],
    ['and returns something later', async (_error, _request, _reply, next) => next() ?? 'body'],
  ])('onAuthError may let pass %s', async (_what, onAuthError) => {
    const app = newApp();
    app.register(rollgate, { clock, authenticate: rejectsAll, onAuthError, limit: 1 });
    app.get('/', async (request) => {
      await new Promise(setImmediate);
      return { seen: request.rateLimit };
    });
    const url = await listen(app);
    for (let i = 0; i < 3; i++) {
      const { status, text } = await get(url);
      expect([status, JSON.parse(text)]).toEqual([200, { seen: null }]);
    }
  });

  test('what onAuthError throws, or gives to next, reaches the error handler', async () => {
    const fails = () => {
      throw new Error('worse');
    };
    const forwards = (_error, _request, _reply, next) => next(new Error('worse'));
    for (const onAuthError of [fails, async () => fails(), forwards]) {
      const url = await start({ authenticate: rejectsAll, onAuthError }, { '/': undefined });
      expect(JSON.parse((await get(url)).text)).toEqual({ handled: 'worse' });
    }
  });
});

describe('config.rateLimit', () => {
  const rules = [{ path: '/', limit: 2 }];

  test.each([
    ['a limit', { limit: 1 }],
    ['a limit as a function', { max: () => 1 }],
    ['limits', { limits: [{ interval: HOUR_MS, maxInInterval: 1 }] }],
    ['a limiter', { limiter: RateLimiter({ interval: HOUR_MS, maxInInterval: 1 }) }],
    ['rules', { rules: [{ path: '/own', limit: 1 }] }],
  ])('%s of a route is in place of the rules of the scope', async (_what, own) => {
    const url = await start({ rules, authenticate }, { '/own': own, '/scope': undefined });
    expect(await statusesOf(`${url}/own`, 2, as('ada'))).toEqual([200, 429]);
    expect(await statusesOf(`${url}/own`, 1, as('bob'))).toEqual([200]);
    expect(await statusesOf(`${url}/scope`, 3, as('ada'))).toEqual([200, 200, 429]);
  });

  test('rules of a route are in place of what the scope allows', async () => {
    const ofScope = { limit: 9, windowMs: 5, countBlocked: false, algorithm: 'gcra', blockFor: 7 };
    const own = {
      rules: [
        { path: '/', method: 'GET', limit: 1 },
        { path: '/', limit: 2 },
      ],
    };
    const url = await start({ ...ofScope, message: 'slow' }, { '/own': own });
    expect(await statusesOf(`${url}/own`, 2)).toEqual([200, 429]);
    expect(await statusesOf(`${url}/own`, 3, { method: 'POST' })).toEqual([200, 200, 429]);
    expect((await get(`${url}/own`)).text).toBe('slow');
  });

  test('blocks of the rules of the scope are none of a route with limits of its own', async () => {
    const trap = { path: '/trap', limit: 0, blockFor: HOUR_MS, blockEverywhere: true };
    const url = await start(
      { rules: [trap, ...rules] },
      { '/own': { limit: 5 }, '/scope': undefined, '/free': false, '/same': true },
    );
    expect(await statusesOf(`${url}/trap`, 1)).toEqual([429]);
    expect(await statusesOf(`${url}/scope`, 1)).toEqual([429]);
    expect(await statusesOf(`${url}/same`, 1)).toEqual([429]);
    expect(await statusesOf(`${url}/own`, 1)).toEqual([200]);
    expect(await statusesOf(`${url}/free`, 1)).toEqual([200]);
  });

  test.each([
    ['nothing', {}],
    ['a message alone', { message: 'no' }],
    ['a block alone', { blockFor: 5 }],
    ['a limit of undefined', { limit: undefined }],
  ])('%s under rules is an error: it would count apart', async (_what, own) => {
    const error = await start({ rules }, { '/own': own }).catch((caught) => caught);
    expect(error).toMatchObject({
      code: 'ERR_ROLLGATE_OPTION',
      message: expect.stringContaining("'config.rateLimit'"),
    });
  });

  test.each([
    ['authenticate', { keyGenerator: () => 'all' }, { authenticate }],
    ['authenticate', { ipv6Subnet: 64 }, { authenticate }],
    ['authenticate', { authenticate: () => ({ id: 'all' }) }, { authenticate }],
    [
      'keyGenerator',
      { authenticate: () => ({ id: 'all' }) },
      { keyGenerator: (r) => r.headers['x-id'] },
    ],
    [
      'keyGenerator',
      { authenticate: () => ({ id: 'all' }), onAuthError: () => 'no' },
      { keyGenerator: (request) => request.headers['x-id'] },
    ],
  ])('%s of a route is in place of that of the scope', async (_name, ofScope, own) => {
    const url = await start(ofScope, { '/own': { limit: 1, ...own } });
    expect(await statusesOf(`${url}/own`, 2, as('ada'))).toEqual([200, 429]);
    expect(await statusesOf(`${url}/own`, 1, as('bob'))).toEqual([200]);
  });

  test('kv of a route is in place of redis of the scope, and a limiter in place of either', async () => {
    const kv = createPlainKv();
    const limiter = RateLimiter({ interval: HOUR_MS, maxInInterval: 1 });
    const ofRedis = { redis: 'redis://127.0.0.1:1', namespace: 'api', clock: undefined };
    const ofKv = { kv, namespace: 'api', commandTimeout: 9000 };
    const inKv = await start(ofRedis, { '/kv': { limit: 1, kv }, '/limiter': { limiter } });
    expect(await statusesOf(`${inKv}/kv`, 2)).toEqual([200, 429]);
    expect([...kv.entries.keys()].join()).toContain('api GET,POST /kv');
    expect(await statusesOf(`${inKv}/limiter`, 2)).toEqual([200, 429]);
    const own = { limiter: RateLimiter({ interval: HOUR_MS, maxInInterval: 1 }) };
    const url = await start({ ...ofKv, rules }, { '/scope': undefined, '/limiter': own });
    expect(await statusesOf(`${url}/limiter`, 2)).toEqual([200, 429]);
    expect(await statusesOf(`${url}/scope`, 3)).toEqual([200, 200, 429]);
    const redis = await startRedis();
    const inRedis = await start(ofKv, { '/own': { limit: 1, redis: redis.url } });
    expect(await statusesOf(`${inRedis}/own`, 2)).toEqual([200, 429]);
  });

  test('ipv6Subnet of a route is in place of authenticate of the scope', async () => {
    const ofScope = { authenticate, onAuthError: () => 'no' };
    const url = await start(ofScope, { '/own': { limit: 1, ipv6Subnet: 64 } });
    expect(await statusesOf(`${url}/own`, 1, as('ada'))).toEqual([200]);
    expect(await statusesOf(`${url}/own`, 1, as('bob'))).toEqual([429]);
  });

  test('onAuthError of a route needs authenticate, of the route or of the scope', async () => {
    const own = { limit: 1, onAuthError: (_error, _request, reply) => reply.code(401) && 'own' };
    const failing = () => {
      throw new Error('who?');
    };
    const url = await start({ authenticate: failing }, { '/own': own });
    expect(await get(`${url}/own`)).toMatchObject({ status: 401, text: 'own' });
    await expect(start({}, { '/own': own })).rejects.toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  });
});

/** `ready()` alone is a thenable that Jest's `rejects` does not take. */
async function readyError(app) {
  try {
    await app.ready();
  } catch (error) {
    return error;
  }
  throw new Error('there was no error');
}
