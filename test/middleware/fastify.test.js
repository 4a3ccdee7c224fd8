// The Fastify plugin: scopes, routes with their own limits, and wrong options.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { hasAddon } = require('../support/bindings');
const { redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { newName } = require('../support/shared-regions');
const apps = require('./apps');

const { FAILING, HOUR_MS, byHeaders, useFastify, withCode } = apps;
const { answer, newApp, own, ready, rollgate, serve, start, statusesAt } = useFastify();
const { fetchStatuses: statusesOf, fetchText: get, inTurn } = apps;
const statusesBy = (url, ...methods) =>
  inTurn(methods, async (method) => (await get(`${url}/own`, { method })).status);
const LIMITS = { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS }; // it stands still
const as = (id) => ({ headers: { 'x-id': id } });
const [, authenticate] = FAILING(new Error('who?'))[0];
const refuse = (_request, reply) => reply.code(429).send();
const limiterOf = (maxInInterval) => RateLimiter({ interval: HOUR_MS, maxInInterval });

describe('a scope', () => {
  test('counts all its routes together, with inner scopes and 404s, and no others', async () => {
    const app = newApp();
    app.get('/around', answer);
    app.register(async (scope) => {
      scope.get('/before', answer);
      scope.register(rollgate, { ...LIMITS, limit: 3 });
      scope.get('/in', answer);
      scope.register(async (inner) => inner.get('/within', answer));
    });
    app.register(async (scope) => scope.get('/beside', answer));
    const url = await serve(app);
    const paths = ['/before', '/in', '/within', '/within', '/beside', '/around'];
    expect(await statusesAt(url, ...paths)).toEqual([200, 200, 200, 429, 200, 200]);
    const all = await start(LIMITS);
    expect(await statusesAt(all, '/no', '/', '/no')).toEqual([404, 200, 429]);
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
    expect(await statusesAt(url, '/v1/items', '/v1/items', '/v1/other')).toEqual([200, 429, 200]);
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
    ['rules over rules', { rules }, { rules: [{ path: '/own', limit: 1 }] }],
    ['rules over limits', gcra, { rules: [{ path: '/', limit: 1 }] }],
    ['rules over a cost', { cost: 2 }, { rules: [{ path: '/', limit: 1 }] }],
  ])('%s', async (_what, ofScope, ofRoute) => {
    const url = await start(ofScope, { '/own': ofRoute });
    expect(await statusesOf(`${url}/own`, 2, as('ada'))).toEqual([200, 429]);
    if (!ofRoute.keyGenerator && !ofRoute.authenticate) return;
    expect(await statusesOf(`${url}/own`, 1, as('bob'))).toEqual([200]);
  });

  test('ipv6Subnet replaces authenticate, and leaves a key that takes it', async () => {
    const statusesFor = (url, ...ids) =>
      inTurn(ids, async (id) => (await statusesOf(`${url}/own`, 1, as(id)))[0]);
    const keyGenerator = (request, _reply, clientKey) => request.headers['x-id'] ?? clientKey();
    const routes = { '/own': { limit: 1, ipv6Subnet: 64 } };
    const withKey = await start({ keyGenerator }, routes);
    expect(await statusesFor(withKey, 'ada', 'ada', 'bob')).toEqual([200, 429, 200]);
    expect(await statusesFor(await start(all, routes), 'ada', 'bob')).toEqual([200, 429]);
  });

  test('onAuthError needs authenticate, be it that of the scope', async () => {
    const onAuthError = (_error, _request, reply) => reply.code(401) && 'own';
    const limits = { limit: 1, onAuthError };
    const url = await start({ authenticate }, { '/own': limits });
    expect(await get(`${url}/own`)).toMatchObject({ status: 401, text: 'own' });
    await expect(ready({}, limits)).rejects.toEqual(withCode('ERR_ROLLGATE_OPTION'));
  });

  test('a store or limiter replaces the store of the scope, whatever is in the path', async () => {
    const kv = createPlainKv();
    const redis = redisAt((await startRedis()).url);
    const ofRedis = { redis: redisAt('redis://127.0.0.1:1'), namespace: 'api', clock: undefined };
    const ofKv = { kv, namespace: 'api', commandTimeout: 9000 };
    for (const [ofScope, ofRoute] of [
      [ofRedis, { kv }],
      [ofKv, { redis }],
    ]) {
      const ofStore = { '/store/:id(^\\d{2}$)': { limit: 1, ...ofRoute } };
      const url = await start(ofScope, { ...ofStore, '/own': { limiter: limiterOf(1) } });
      const statuses = await statusesAt(url, '/store/42', '/store/42', '/own', '/own');
      expect(statuses).toEqual([200, 429, 200, 429]);
    }
    expect([...kv.entries.keys()].join()).toContain('api GET,POST /store/:id(^\\d%7B2%7D$)');
  });

  // Kills: a request property that Fastify's decorator hides.
  test('has shadow rules as well', async () => {
    const app = newApp();
    await app.register(rollgate, { limit: 5 });
    const limit = (request) => request.routeOptions.url.length;
    const rules = [
      { path: '/', limit, shadow: true },
      { path: '/', limit: 9 },
    ];
    app.get('/own', own({ rules }), (request) => request.rateLimit);
    const { limit: shown, shadow } = JSON.parse((await get(`${await serve(app)}/own`)).text);
    expect([shown, shadow]).toMatchObject([9, [{ rule: 0, limit: 4, used: 1 }]]);
  });

  // Kills: a cost that belongs to other limits.
  test('with limits of its own has no cost of its scope', async () => {
    const dear = { limit: 5, cost: 6 };
    const routes = { '/own': { limit: 5 }, '/dear': dear, '/same': { statusCode: 420 } };
    const url = await start({ limit: 10, cost: 10 }, routes);
    const statuses = await statusesAt(url, '/own', '/dear', '/same', '/same');
    expect(statuses).toEqual([200, 429, 200, 420]);
  });

  test('is not under the blocks of the rules of its scope', async () => {
    const trap = { path: '/trap', limit: 0, blockFor: HOUR_MS, blockEverywhere: true };
    const routes = { '/own': { limit: 5 }, '/scope': undefined, '/free': false, '/same': true };
    const url = await start({ rules: [trap, ...rules] }, routes);
    const statuses = await statusesAt(url, '/trap', '/scope', '/same', '/own', '/free');
    expect(statuses).toEqual([429, 429, 429, 200, 200]);
  });

  test.each([[{ blockFor: 5 }], [{ limit: undefined }]])(
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

// In these stores, routes with one name count together.
describe.each([
  ['on Redis', async () => ({ redis: redisAt((await startRedis()).url), namespace: newName() })],
  ...(hasAddon ? [['in shared memory', async () => ({ shared: newName(), maxKeys: 50 })]] : []),
])('several methods at one path, %s', (_store, storeOptions) => {
  async function play(declare, ...calls) {
    const app = newApp({ exposeHeadRoutes: !declare.hasOwnHead });
    await app.register(rollgate, { windowMs: HOUR_MS, limit: 9, ...(await storeOptions()) });
    declare(app);
    return statusesBy(await serve(app), ...calls);
  }

  test('count apart, and HEAD with the GET that it is derived from', async () => {
    const derived = (app) => {
      app.get('/own', own({ limit: 2 }), answer);
      app.post('/own', own({ limit: 1 }), answer);
      app.route({ method: ['PUT', 'DELETE'], url: '/own', ...own({ limit: 2 }), handler: answer });
    };
    const calls = ['POST', 'POST', 'GET', 'HEAD', 'GET', 'HEAD', 'PUT', 'DELETE', 'DELETE'];
    const expected = [200, 429, 200, 200, 429, 429, 200, 200, 429];
    expect(await play(derived, ...calls)).toEqual(expected);
  });

  test('count apart for a declared HEAD, and for routes with one options object', async () => {
    const declared = (app) => {
      app.head('/own', own({ limit: 1 }), answer);
      app.get('/own', own({ limit: 2 }), answer);
    };
    const calls = ['HEAD', 'HEAD', 'GET', 'GET', 'GET'];
    expect(await play(declared, ...calls)).toEqual([200, 429, 200, 200, 429]);
    const shared = own({ limit: 1 });
    const many = (app) => {
      for (const method of ['get', 'post', 'head']) app[method]('/own', shared, answer);
    };
    many.hasOwnHead = true;
    expect(await play(many, 'GET', 'GET', 'POST', 'POST')).toEqual([200, 429, 200, 429]);
  });
});

describe('wrong options are errors of ready()', () => {
  test.each([
    [{ prefix: '/v1' }, /prefix/],
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
    const registered = async () => app.register(rollgate, { requestPropertyName: 'user' });
    await expect(registered()).rejects.toEqual(withCode('ERR_ROLLGATE_OPTION'));
  });
});
