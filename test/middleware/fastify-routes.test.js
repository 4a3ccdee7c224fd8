// Routes of Fastify with their own limits: what they replace, what they inherit, and which methods count together.
'use strict';

const RateLimiter = require('../..');
const { createPlainKv } = require('../support/kv-stores');
const { startRedis } = require('../support/redis-server');
const { newName } = require('../support/shared-regions');
const { FAILING, HOUR_MS, byHeaders, useFastify, withCode } = require('./apps');

const { answer, get, newApp, own, ready, rollgate, serve, start, statusesAt, statusesOf } =
  useFastify();
const LIMITS = { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS }; // it stands still
const as = (id) => ({ headers: { 'x-id': id } });
const limiterOf = (maxInInterval) => RateLimiter({ interval: HOUR_MS, maxInInterval });
const refuse = (_request, reply) => reply.code(429).send();

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
    [
      'authenticate over a key',
      { keyGenerator: () => 'all' },
      { limit: 1, authenticate: byHeaders },
    ],
    ['authenticate over ipv6Subnet', { ipv6Subnet: 64 }, { limit: 1, authenticate: byHeaders }],
    ['authenticate over another one', all, { limit: 1, authenticate: byHeaders }],
    ['a handler over problemDetails', { problemDetails: true }, { limit: 1, handler: refuse }],
    ['the scope over undefined', { limit: 1 }, { limit: undefined }],
    ['a limit over rules', { rules }, { limit: 1 }],
    ['a limit function over rules', { rules }, { max: () => 1 }],
    ['limits over rules', { rules }, { limits }],
    ['a limiter over rules', { rules }, { limiter: limiterOf(1) }],
    ['rules over rules', { rules }, { rules: [{ path: '/own', limit: 1 }] }],
    ['rules over limits', gcra, { rules: [{ path: '/', limit: 1 }] }],
  ])('%s', async (_what, ofScope, ofRoute) => {
    const url = await start(ofScope, { '/own': ofRoute });
    expect(await statusesOf(`${url}/own`, 2, as('ada'))).toEqual([200, 429]);
    const isById = ofRoute.keyGenerator || ofRoute.authenticate;
    if (isById) expect(await statusesOf(`${url}/own`, 1, as('bob'))).toEqual([200]);
  });

  test('inherits what it does not replace', async () => {
    const answers = { standardHeaders: 'draft-7', message: 'slow down' };
    const url = await start({ ...LIMITS, ...answers }, { '/own': { limit: 1 } });
    const passed = await get(`${url}/own`);
    expect(passed.headers.get('ratelimit')).toBe('limit=1, remaining=0, reset=3600');
    expect(await get(`${url}/own`)).toMatchObject({ status: 429, text: 'slow down' });
  });

  test('ipv6Subnet replaces authenticate, and onAuthError needs one', async () => {
    const subnet = await start(all, { '/own': { limit: 1, ipv6Subnet: 64 } });
    expect(await statusesOf(`${subnet}/own`, 1, as('ada'))).toEqual([200]);
    expect(await statusesOf(`${subnet}/own`, 1, as('bob'))).toEqual([429]);
    const [, authenticate] = FAILING(new Error('who?'))[0];
    const onAuthError = (_error, _request, reply) => reply.code(401) && 'own';
    const url = await start({ authenticate }, { '/own': { limit: 1, onAuthError } });
    expect(await get(`${url}/own`)).toMatchObject({ status: 401, text: 'own' });
    const limits = { limit: 1, onAuthError };
    await expect(ready({}, limits)).rejects.toEqual(withCode('ERR_ROLLGATE_OPTION'));
  });

  test('a store or limiter replaces the store of the scope', async () => {
    const kv = createPlainKv();
    const ofRedis = { redis: 'redis://127.0.0.1:1', namespace: 'api', clock: undefined };
    const inKv = await start(ofRedis, {
      '/kv': { limit: 1, kv },
      '/own': { limiter: limiterOf(1) },
    });
    expect(await statusesAt(inKv, '/kv', '/kv', '/own', '/own')).toEqual([200, 429, 200, 429]);
    expect([...kv.entries.keys()].join()).toContain('api GET,POST /kv');
    const ofKv = { kv, namespace: 'api', commandTimeout: 9000 };
    const { url: redis } = await startRedis();
    const inRedis = await start(ofKv, {
      '/redis': { limit: 1, redis },
      '/own': { limiter: limiterOf(1) },
    });
    expect(await statusesAt(inRedis, '/redis', '/redis', '/own', '/own')).toEqual([
      200, 429, 200, 429,
    ]);
  });

  test('on Redis counts under its own name, whatever is in the path', async () => {
    const { url: redis } = await startRedis();
    const options = { redis, namespace: 'api', windowMs: HOUR_MS, limit: 2 };
    const url = await start(options, { '/own/:id(^\\d{2}$)': { limit: 3 }, '/scope': undefined });
    expect(await statusesOf(`${url}/scope`, 3)).toEqual([200, 200, 429]);
    expect(await statusesOf(`${url}/own/42`, 4)).toEqual([200, 200, 200, 429]);
    const other = await start(options, { '/scope': undefined }); // a second process
    expect(await statusesOf(`${other}/scope`, 1)).toEqual([429]);
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
      const statuses = [];
      for (const method of [first, 'HEAD', 'GET']) {
        statuses.push(...(await statusesOf(`${url}/own`, 1, { method })));
      }
      expect(statuses).toEqual([200, 429, 429]);
      expect((await get(`${url}/wrong`)).text).toContain('ERR_ROLLGATE_OPTION');
    },
  );
});

describe.each([
  ['in memory', async () => ({})],
  ['on Redis', async () => ({ redis: (await startRedis()).url, namespace: 'api' })],
  ['in shared memory', async () => ({ shared: newName(), maxKeys: 50 })],
])('several methods at one path, %s', (_store, storeOptions) => {
  async function play(declare, ...calls) {
    const app = newApp({ exposeHeadRoutes: !declare.hasOwnHead });
    await app.register(rollgate, { windowMs: HOUR_MS, limit: 9, ...(await storeOptions()) });
    declare(app);
    const url = await serve(app);
    const statuses = [];
    for (const method of calls) statuses.push(...(await statusesOf(`${url}/own`, 1, { method })));
    return statuses;
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

  test('include a HEAD derived from one of several methods', async () => {
    const route = { method: ['POST', 'GET'], url: '/own', ...own({ limit: 2 }), handler: answer };
    const statuses = await play((app) => app.route(route), 'HEAD', 'POST', 'GET');
    expect(statuses).toEqual([200, 200, 429]);
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
