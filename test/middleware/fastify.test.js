// The Fastify plugin: scopes, routes with their own limits, functions with request and reply, and wrong options.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { waitUntil } = require('../support/outcome');
const { hasAddon } = require('../support/bindings');
const { redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { newName } = require('../support/shared-regions');
const apps = require('./apps');

const { FAILING, HOUR_MS, byHeaders, newLogger, useFastify, withCode } = apps;
const { answer, newApp, own, ready, rollgate, serve, start, statusesAt } = useFastify();
const { fetchStatuses: statusesOf, fetchText: get, inTurn } = apps;
const statusesBy = (url, ...methods) =>
  inTurn(methods, async (method) => (await get(`${url}/own`, { method })).status);
const LIMITS = { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS }; // it stands still
const as = (id) => ({ headers: { 'x-id': id } });
const from = (address) => ({ headers: { 'x-forwarded-for': address } });
const [, authenticate] = FAILING(new Error('who?'))[0];
const refuse = (_request, reply) => reply.code(429).send();
const limiterOf = (maxInInterval) => RateLimiter({ interval: HOUR_MS, maxInInterval });

describe('a scope', () => {
  test('counts all its routes together, wherever they are declared, and 404s', async () => {
    const app = newApp();
    app.get('/before', answer);
    app.register(rollgate, { ...LIMITS, limit: 3 });
    app.get('/after', answer);
    const paths = ['/before', '/no', '/after', '/after', '/no'];
    expect(await statusesAt(await serve(app), ...paths)).toEqual([200, 404, 200, 429, 429]);
  });

  test('includes inner scopes, and neither outer nor other ones', async () => {
    const app = newApp();
    app.register(async (scope) => {
      scope.register(rollgate, LIMITS);
      scope.get('/in', answer);
      scope.register(async (inner) => inner.get('/within', answer));
    });
    app.register(async (scope) => scope.get('/beside', answer));
    app.get('/around', answer);
    const url = await serve(app);
    expect(await statusesAt(url, '/in', '/within', '/within')).toEqual([200, 200, 429]);
    for (const path of ['/beside', '/around']) {
      expect(await statusesOf(url + path, 3)).toEqual([200, 200, 200]);
    }
  });

  test('in another one counts in both, with both in the headers, and its routes once', async () => {
    const app = newApp();
    const options = { ...LIMITS, limit: 9, standardHeaders: 'draft-8', legacyHeaders: false };
    app.register(rollgate, { ...options, identifier: 'outer' });
    app.register(async (scope) => {
      scope.register(rollgate, { ...options, limit: 1, identifier: 'inner' });
      scope.get('/in', answer);
      scope.get('/own', own({ limit: 3 }), answer);
      scope.register(async (inner) => inner.get('/within', own({ limit: 2 }), answer));
    });
    app.register(async (scope) => scope.get('/beside', own({ limit: 1 }), answer));
    const url = await serve(app);
    const sentAt = async (path) => (await get(url + path)).headers.get('ratelimit');
    expect(await sentAt('/in')).toBe('"outer"; r=8; t=3600, "inner"; r=0; t=3600');
    expect((await get(`${url}/in`)).status).toBe(429);
    expect(await sentAt('/own')).toBe('"inner"; r=2; t=3600');
    expect(await sentAt('/within')).toBe('"inner"; r=1; t=3600');
    expect(await sentAt('/beside')).toBe('"outer"; r=0; t=3600');
    expect(await sentAt('/404')).toBe('"outer"; r=6; t=3600');
  });

  test('with a prefix has rules for whole paths', async () => {
    const app = newApp();
    app.register(
      async (scope) => {
        scope.register(rollgate, { rules: [{ path: '/v1/items', limit: 1 }] });
        for (const path of ['/items', '/other']) scope.get(path, answer);
      },
      { prefix: '/v1' },
    );
    const url = await serve(app);
    expect(await statusesOf(`${url}/v1/items`, 2)).toEqual([200, 429]);
    expect(await statusesOf(`${url}/v1/other`, 2)).toEqual([200, 200]);
  });
});

describe('config.rateLimit', () => {
  test.each([
    [false, [200, 200, 200], [200, 200, 429]],
    [true, [200, 200, 429], [429, 429, 429]],
    [undefined, [200, 200, 429], [429, 429, 429]],
    [{ limit: 1 }, [200, 429, 429], [200, 200, 429]],
  ])('%j', async (limits, atRoute, atScope) => {
    const url = await start(LIMITS, { '/own': limits, '/scope': undefined });
    expect(await statusesOf(`${url}/own`, 3)).toEqual(atRoute);
    expect(await statusesOf(`${url}/scope`, 3)).toEqual(atScope);
    if (limits !== false) return;
    expect((await get(`${url}/own`)).headers.get('x-ratelimit-limit')).toBeNull();
  });

  const rules = [{ path: '/', limit: 2 }];
  const byId = { keyGenerator: (request) => request.headers['x-id'] };
  const byUser = { authenticate: byHeaders };
  const all = { authenticate: () => ({ id: 'all' }), onAuthError: () => 'no' };
  const limits = [{ interval: HOUR_MS, maxInInterval: 1 }];
  const gcra = { limit: 9, windowMs: 5, countBlocked: false, algorithm: 'gcra', blockFor: 7 };
  test.each([
    ['max over limit', { limit: 9 }, { max: 1 }],
    ['a limit over limits', { limits: [{ interval: 5, maxInInterval: 9 }] }, { limit: 1 }],
    ['limits over a limit', { limit: 9 }, { limits }],
    ['a limiter over a limit', { limit: 9 }, { limiter: limiterOf(1) }],
    ['a limit over a limiter', { limiter: limiterOf(9) }, { limit: 1 }],
    ['a key over ipv6Subnet', { ipv6Subnet: 64 }, { limit: 1, ...byId }],
    ['a key over authenticate', all, { limit: 1, ...byId }],
    ['authenticate over a key', { keyGenerator: () => 'all' }, { limit: 1, ...byUser }],
    ['authenticate over ipv6Subnet', { ipv6Subnet: 64 }, { limit: 1, ...byUser }],
    ['authenticate over another one', all, { limit: 1, ...byUser }],
    ['a handler over problemDetails', { problemDetails: true }, { limit: 1, handler: refuse }],
    ['the scope over undefined', { limit: 1 }, { limit: undefined }],
    ['a limit over rules', { rules }, { limit: 1 }],
    ['a limit function over rules', { rules }, { max: () => 1 }],
    ['limits over rules', { rules }, { limits }],
    ['a limiter over rules', { rules }, { limiter: limiterOf(1) }],
    ['rules over rules', { rules }, { rules: [{ path: '/own', limit: 1 }] }],
    ['rules over limits', gcra, { rules: [{ path: '/', limit: 1 }] }],
    ['rules over a cost', { cost: 2 }, { rules: [{ path: '/', limit: 1 }] }],
  ])('%s', async (_what, ofScope, ofRoute) => {
    const url = await start(ofScope, { '/own': ofRoute });
    expect(await statusesOf(`${url}/own`, 2, as('ada'))).toEqual([200, 429]);
    if (!ofRoute.keyGenerator && !ofRoute.authenticate) return;
    expect(await statusesOf(`${url}/own`, 1, as('bob'))).toEqual([200]);
  });

  test('ipv6Subnet leaves a key that takes it as the default key', async () => {
    const keyGenerator = (request, _reply, clientKey) => request.headers['x-id'] ?? clientKey();
    const url = await start({ keyGenerator }, { '/own': { limit: 1, ipv6Subnet: 64 } });
    const ids = ['ada', 'ada', 'bob'];
    const statuses = ids.map(async (id) => (await statusesOf(`${url}/own`, 1, as(id)))[0]);
    expect((await Promise.all(statuses)).sort()).toEqual([200, 200, 429]);
  });

  test('ipv6Subnet replaces authenticate, and onAuthError needs one', async () => {
    const subnet = await start(all, { '/own': { limit: 1, ipv6Subnet: 64 } });
    expect(await statusesOf(`${subnet}/own`, 1, as('ada'))).toEqual([200]);
    expect(await statusesOf(`${subnet}/own`, 1, as('bob'))).toEqual([429]);
    const onAuthError = (_error, _request, reply) => reply.code(401) && 'own';
    const url = await start({ authenticate }, { '/own': { limit: 1, onAuthError } });
    expect(await get(`${url}/own`)).toMatchObject({ status: 401, text: 'own' });
    await expect(ready({}, { limit: 1, onAuthError })).rejects.toEqual(
      withCode('ERR_ROLLGATE_OPTION'),
    );
  });

  test('a store or limiter replaces the store of the scope', async () => {
    const kv = createPlainKv();
    const redis = redisAt((await startRedis()).url);
    const ofRedis = { redis: redisAt('redis://127.0.0.1:1'), namespace: 'api', clock: undefined };
    const ofKv = { kv, namespace: 'api', commandTimeout: 9000 };
    for (const [ofScope, ofRoute] of [
      [ofRedis, { kv }],
      [ofKv, { redis }],
    ]) {
      const routes = { '/store': { limit: 1, ...ofRoute }, '/own': { limiter: limiterOf(1) } };
      const url = await start(ofScope, routes);
      const statuses = await statusesAt(url, '/store', '/store', '/own', '/own');
      expect(statuses).toEqual([200, 429, 200, 429]);
    }
    expect([...kv.entries.keys()].join()).toContain('api GET,POST /store');
  });

  test('on Redis counts under its own name, whatever is in the path', async () => {
    const redis = redisAt((await startRedis()).url);
    const options = { redis, namespace: 'api', windowMs: HOUR_MS, limit: 2 };
    const url = await start(options, { '/own/:id(^\\d{2}$)': { limit: 3 }, '/scope': undefined });
    expect(await statusesOf(`${url}/scope`, 3)).toEqual([200, 200, 429]);
    expect(await statusesOf(`${url}/own/42`, 4)).toEqual([200, 200, 200, 429]);
    const other = await start(options, { '/scope': undefined }); // a second process
    expect(await statusesOf(`${other}/scope`, 1)).toEqual([429]);
  });

  // Kills: a request property that Fastify's decorator hides.
  test('has shadow rules as well', async () => {
    const shadow = { path: '/', limit: (request) => request.routeOptions.url.length, shadow: true };
    const own = { rules: [shadow, { path: '/own/x', limit: 1 }, { path: '/', limit: 9 }] };
    const app = newApp();
    await app.register(rollgate, { limit: 5 });
    const answerInfo = (request) => request.rateLimit;
    for (const url of ['/own', '/own/x']) app.get(url, { config: { rateLimit: own } }, answerInfo);
    const url = await serve(app);
    const trial = (used, limit) => ({
      rule: 0,
      allowed: true,
      limit,
      used,
      remaining: limit - used,
    });
    const infos = await inTurn(['/own', '/own/x'], async (path) =>
      (await fetch(url + path)).json(),
    );
    expect(infos[0]).toMatchObject({ limit: 9, used: 1, shadow: [trial(1, 4)] });
    expect(infos[1]).toMatchObject({ limit: 1, used: 1, shadow: [trial(1, 6)] });
  });

  // Kills: a cost that belongs to other limits.
  test('with limits of its own has no cost of its scope', async () => {
    const routes = {
      '/own': { limit: 5 },
      '/dear': { limit: 5, cost: 6 },
      '/same': { statusCode: 420 },
    };
    const url = await start({ limit: 20, cost: 10 }, routes);
    expect(await statusesAt(url, '/own', '/dear', '/same', '/same', '/same')).toEqual([
      ...[200, 429, 200, 200, 420],
    ]);
  });

  test('is not under the blocks of the rules of its scope', async () => {
    const trap = { path: '/trap', limit: 0, blockFor: HOUR_MS, blockEverywhere: true };
    const routes = { '/own': { limit: 5 }, '/scope': undefined, '/free': false, '/same': true };
    const url = await start({ rules: [trap, ...rules] }, routes);
    const statuses = await statusesAt(url, '/trap', '/scope', '/same', '/own', '/free');
    expect(statuses).toEqual([429, 429, 429, 200, 200]);
  });

  test.each([[{}], [{ message: 'no' }], [{ blockFor: 5 }], [{ limit: undefined }]])(
    '%j under rules is refused, because it would count apart',
    async (limits) => {
      const message = expect.stringContaining("'config.rateLimit'");
      const error = expect.objectContaining({ code: 'ERR_ROLLGATE_OPTION', message });
      await expect(ready({ rules }, limits)).rejects.toEqual(error);
    },
  );

  test('of two plugins in one scope counts once, by the later one', async () => {
    const app = newApp();
    for (const message of ['first', 'second']) await app.register(rollgate, { ...LIMITS, message });
    app.get('/own', own({ limit: 1 }), answer);
    const url = await serve(app);
    expect(await statusesOf(`${url}/own`, 1)).toEqual([200]);
    expect((await get(`${url}/own`)).text).toBe('second');
  });

  test.each(['GET', 'HEAD'])(
    'is read at the first %s if declared before the plugin',
    async (first) => {
      const app = newApp();
      app.get('/own', own({ limit: 1 }), answer);
      app.get('/wrong', own({ limitt: 3 }), answer);
      await app.register(rollgate, LIMITS);
      const url = await serve(app);
      const statuses = await statusesBy(url, first, 'HEAD', 'GET');
      expect(statuses).toEqual([200, 429, 429]);
      expect((await get(`${url}/wrong`)).text).toContain('ERR_ROLLGATE_OPTION');
    },
  );
});

describe.each([
  ['in memory', async () => ({})],
  ['on Redis', async () => ({ redis: redisAt((await startRedis()).url), namespace: 'api' })],
  ...(hasAddon ? [['in shared memory', async () => ({ shared: newName(), maxKeys: 50 })]] : []),
])('several methods at one path, %s', (_store, storeOptions) => {
  async function play(declare, ...calls) {
    const app = newApp({ exposeHeadRoutes: !declare.hasOwnHead });
    await app.register(rollgate, { windowMs: HOUR_MS, limit: 9, ...(await storeOptions()) });
    declare(app);
    return statusesBy(await serve(app), ...calls);
  }

  test('count apart, and HEAD with the GET that it is derived from', async () => {
    const declare = (app) => {
      app.get('/own', own({ limit: 2 }), answer);
      app.post('/own', own({ limit: 1 }), answer);
      app.route({ method: ['PUT', 'DELETE'], url: '/own', ...own({ limit: 2 }), handler: answer });
    };
    const calls = ['POST', 'POST', 'GET', 'HEAD', 'GET', 'HEAD', 'PUT', 'DELETE', 'DELETE'];
    const expected = [200, 429, 200, 200, 429, 429, 200, 200, 429];
    expect(await play(declare, ...calls)).toEqual(expected);
  });

  test('count apart for a declared HEAD, and for routes with one options object', async () => {
    const shared = own({ limit: 1 });
    const one = (app) => {
      app.head('/own', own({ limit: 1 }), answer);
      app.get('/own', own({ limit: 2 }), answer);
    };
    const many = (app) => {
      for (const method of ['get', 'post', 'head']) app[method]('/own', shared, answer);
    };
    many.hasOwnHead = true;
    expect(await play(one, 'HEAD', 'HEAD', 'GET', 'GET', 'GET')).toEqual([200, 429, 200, 200, 429]);
    expect(await play(many, 'GET', 'GET', 'POST', 'POST')).toEqual([200, 429, 200, 429]);
  });
});

describe('functions', () => {
  test("get Fastify's request and reply", async () => {
    const seen = {};
    const see = (name, value) => (request, reply) => {
      seen[name] = [request.routeOptions.url, typeof reply.code, reply.request === request];
      return value;
    };
    const successful = { skipSuccessfulRequests: true, countBlocked: true };
    const values = { skip: false, keyGenerator: 'k', identifier: 'n', requestWasSuccessful: true };
    const options = { ...successful, limit: see('limit', 1), standardHeaders: 'draft-8' };
    for (const [name, value] of Object.entries(values)) options[name] = see(name, value);
    await get(await start(options));
    await waitUntil('it is asked how the request ended', () => seen.requestWasSuccessful);
    expect(Object.keys(seen).sort()).toEqual([...Object.keys(values), 'limit'].sort());
    for (const args of Object.values(seen)) expect(args).toEqual(['/', 'function', true]);
    const app = newApp({ trustProxy: true });
    const ipv6Subnet = see('ipv6Subnet', 48);
    app.register(rollgate, { ...LIMITS, ipv6Subnet, requestPropertyName: 'quota' });
    app.get('/', (request) => request.quota.key);
    const url = await serve(app);
    expect((await get(url, from('2001:db8:0:142::1'))).text).toBe('2001:db8::/48');
    expect(seen.ipv6Subnet).toEqual(['/', 'function', true]);
    expect((await get(url, from('::ffff:192.0.2.1'))).text).toBe('192.0.2.1');
  });

  test.each(['limit', 'max', 'maxInInterval'])(
    '%s judges each request, also in rules',
    async (name) => {
      const byHeader = async (request, reply) =>
        reply.request === request && Number(request.headers['x-id']);
      const one = { [name]: byHeader, countBlocked: false };
      for (const options of [one, { rules: [{ path: '/', ...one }] }]) {
        const url = await start(options);
        expect(await statusesOf(url, 2, as('1'))).toEqual([200, 429]);
        expect(await statusesOf(url, 2, as('2'))).toEqual([200, 429]);
      }
      const zone = (limit) => ({ zone: 'z', [name]: limit });
      const rulesOf = (other) => [
        { path: '/a', ...zone(byHeader) },
        { path: '/b', ...zone(other) },
      ];
      await ready({ rules: rulesOf(byHeader) });
      const different = ready({ rules: rulesOf((...args) => byHeader(...args)) });
      await expect(different).rejects.toThrow("'rules[1].zone'");
    },
  );

  test.each([
    ['a function', (request) => `not ${request.method}`, 'not GET'],
    ['an async function', async () => 'later', 'later'],
    ['a function that answers', (_request, reply) => void reply.code(429).send('own'), 'own'],
  ])('message may be %s', async (_what, message, text) => {
    expect(await get(await start({ limit: 0, message }))).toMatchObject({ status: 429, text });
  });

  const BODY = '{"own":true}';
  test.each([
    ['sends', (reply) => void reply.send({ own: true }), 418],
    ['returns what it sends', (reply) => reply.send({ own: true }), 418],
    ['returns the body', () => ({ own: true }), 418],
    ['returns it later', async () => ({ own: true }), 418],
    ['lets pass', (_reply, next) => next(), 0],
    ['lets pass later', async (_reply, next) => next(), 0],
    ['lets pass and returns something', (_reply, next) => next() ?? 'body', 0],
    ['lets pass and returns it later', async (_reply, next) => next() ?? 'body', 0],
  ])('handler and onAuthError answer if one %s', async (_what, end, code) => {
    const handler = (_request, reply, next) => end(code ? reply.code(code) : reply, next);
    const onAuthError = (_error, ...args) => handler(...args);
    const expected = code ? { status: code, text: BODY } : { status: 200, text: 'passed' };
    for (const options of [
      { limit: 0, handler },
      { authenticate, onAuthError, limit: 1 },
      { authenticate, onAuthError, rules: [{ path: '/', limit: 1 }] },
    ]) {
      const url = await start(options);
      for (let i = 0; i < 2; i++) expect(await get(url)).toMatchObject(expected);
    }
  });

  const UNAUTHORIZED = Object.assign(new Error('boom'), { statusCode: 401 });
  test.each([
    ...FAILING(new Error('boom')).flatMap(([, fails]) =>
      [
        { keyGenerator: fails },
        { skip: fails },
        { limit: fails },
        { rules: [{ path: '/', limit: fails }] },
        { limit: 0, message: fails },
        { limit: 0, handler: fails },
        { authenticate, onAuthError: fails },
      ].map((options) => [options, 503]),
    ),
    [{ authenticate, onAuthError: (...args) => args[3](new Error('boom')) }, 503],
    ...FAILING(UNAUTHORIZED).map(([, fails]) => [{ authenticate: fails }, 401]),
  ])("an error in %p reaches Fastify's error handler once", async (options, expected) => {
    const { status, text } = await get(await start(options));
    expect([status, JSON.parse(text)]).toEqual([expected, { handled: 'boom' }]);
  });
});

describe('the option hook', () => {
  const byAccount = { limit: 1, keyGenerator: ({ body }) => body?.name };
  const logIn = (url, name) =>
    get(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    });
  const statusesFor = (url, ...names) =>
    inTurn(names, async (name) => (await logIn(url, name)).status);

  test.each(['preValidation', 'preHandler'])('%s sees the body', async (hook) => {
    const url = await start({ ...byAccount, hook }, { '/': undefined, '/own': { limit: 2 } });
    expect(await statusesFor(`${url}/`, 'ada', 'ada', 'bob')).toEqual([200, 429, 200]);
    expect(await statusesFor(`${url}/own`, 'ada', 'ada', 'ada', 'bob')).toEqual([
      200, 200, 429, 200,
    ]);
  });

  test('is onRequest by default, before the body', async () => {
    const logger = newLogger();
    const url = await start({ ...byAccount, hook: undefined, logger });
    expect(await statusesFor(`${url}/`, 'ada', 'bob')).toEqual([200, 429]);
  });

  test.each(['onSend', 'preParsing', '', 5, null])('%p is refused', async (hook) => {
    await expect(ready({ hook })).rejects.toThrow(
      /^Fastify plugin: option 'hook': expected one of/,
    );
  });

  test('is no option of a route', async () => {
    await expect(ready({}, { hook: 'preHandler' })).rejects.toThrow(/unknown option "hook"/);
  });
});

test('a keyGenerator with a bare request.ip is a warning', async () => {
  const logger = newLogger();
  await start({ keyGenerator: (request) => request.ip, logger });
  expect(logger.warn.mock.calls).toEqual([[withCode('ROLLGATE_BARE_IP_KEY')]]);
});

describe('wrong options are errors of ready()', () => {
  test.each([
    [{ limitt: 3 }, /limitt/],
    [{ prefix: '/v1' }, /prefix/],
    [{ limiter: limiterOf(1), limit: 2 }, /conflicts with 'limiter'/],
    [{ requestPropertyName: 'ip' }, /requestPropertyName/],
    [{ rules: [{ path: '/a' }, { path: '/b', limitt: 2 }] }, /rules\[1\]/],
  ])('of the plugin: %j', async (options, message) => {
    const error = { code: 'ERR_ROLLGATE_OPTION', message: expect.stringMatching(message) };
    await expect(ready(options)).rejects.toMatchObject(error);
  });

  test.each([[{ limitt: 3 }], [3], [[]], [null], [{ requestPropertyName: 'ip' }]])(
    'of a route: %j',
    async (limits) => {
      await expect(ready(LIMITS, limits)).rejects.toEqual(withCode('ERR_ROLLGATE_OPTION'));
    },
  );

  test('a property of the application is not overwritten', async () => {
    const app = newApp();
    app.decorateRequest('user', null);
    const registered = async () =>
      app.register(rollgate, { ...LIMITS, requestPropertyName: 'user' });
    await expect(registered()).rejects.toEqual(withCode('ERR_ROLLGATE_OPTION'));
  });
});
