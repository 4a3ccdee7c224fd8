// Which routes the Fastify plugin limits: its scope and those within, and routes with limits of their own.
'use strict';

const RateLimiter = require('../../..');
const { startRedis } = require('../../support/redis-server');
const { newName } = require('../../support/shared-regions');
const { HOUR_MS, LIMITS, closeAll, get, listen, newApp, rollgate, statusesOf } = require('./apps');

afterEach(closeAll);

const answer = () => 'passed';

describe('scopes', () => {
  test('all routes of the scope count together, wherever they are declared, 404s too', async () => {
    const app = newApp();
    app.get('/before', answer);
    app.register(rollgate, { ...LIMITS, limit: 3 });
    app.get('/after', answer);
    const url = await listen(app);
    expect(await statusesOf(`${url}/before`, 1)).toEqual([200]);
    expect(await statusesOf(`${url}/missing`, 1)).toEqual([404]);
    expect(await statusesOf(`${url}/after`, 2)).toEqual([200, 429]);
    expect(await statusesOf(`${url}/missing`, 1)).toEqual([429]);
  });

  test('a scope is limited with the scopes within it, not those beside or around it', async () => {
    const app = newApp();
    app.register(async (scope) => {
      scope.register(rollgate, { ...LIMITS, limit: 2 });
      scope.get('/in', answer);
      scope.register(async (inner) => inner.get('/within', answer));
    });
    app.register(async (scope) => scope.get('/beside', answer));
    app.get('/around', answer);
    const url = await listen(app);
    expect(await statusesOf(`${url}/in`, 1)).toEqual([200]);
    expect(await statusesOf(`${url}/within`, 2)).toEqual([200, 429]);
    expect(await statusesOf(`${url}/beside`, 4)).toEqual([200, 200, 200, 200]);
    expect(await statusesOf(`${url}/around`, 4)).toEqual([200, 200, 200, 200]);
  });

  test('a scope within another counts in both, and both are in the headers', async () => {
    const app = newApp();
    const options = { ...LIMITS, standardHeaders: 'draft-8', legacyHeaders: false };
    app.register(rollgate, { ...options, limit: 5, identifier: 'all' });
    app.register(async (scope) => {
      scope.register(rollgate, { ...options, limit: 1, identifier: 'inner' });
      scope.get('/in', answer);
    });
    app.get('/', answer);
    const url = await listen(app);
    const { headers } = await get(`${url}/in`);
    expect(headers.get('ratelimit')).toBe('"all"; r=4; t=3600, "inner"; r=0; t=3600');
    expect(await statusesOf(`${url}/in`, 1)).toEqual([429]);
    expect((await get(url)).headers.get('ratelimit')).toBe('"all"; r=2; t=3600');
  });

  test('two servers with the same options count apart', async () => {
    const options = { ...LIMITS, limit: 1 };
    const route = { config: { rateLimit: { limit: 1 } } };
    for (let i = 0; i < 2; i++) {
      const app = newApp();
      app.register(rollgate, options);
      app.get('/', answer);
      app.get('/own', route, answer);
      const url = await listen(app);
      expect(await statusesOf(url, 2)).toEqual([200, 429]);
      expect(await statusesOf(`${url}/own`, 2)).toEqual([200, 429]);
    }
  });
});

describe('config.rateLimit', () => {
  async function start(config, options = {}) {
    const app = newApp();
    await app.register(rollgate, { ...LIMITS, ...options });
    app.get('/own', { config: { rateLimit: config } }, answer);
    app.get('/scope', answer);
    return listen(app);
  }

  test('false: no limit, and nothing is counted', async () => {
    const url = await start(false);
    expect(await statusesOf(`${url}/own`, 5)).toEqual([200, 200, 200, 200, 200]);
    expect((await get(`${url}/own`)).headers.get('x-ratelimit-limit')).toBeNull();
    expect(await statusesOf(`${url}/scope`, 3)).toEqual([200, 200, 429]);
  });

  test.each([true, undefined])('%p: those of the scope', async (config) => {
    const url = await start(config);
    expect(await statusesOf(`${url}/own`, 2)).toEqual([200, 200]);
    expect(await statusesOf(`${url}/scope`, 1)).toEqual([429]);
  });

  test('options: limits of its own in place of the scope’s, the rest inherited', async () => {
    const url = await start({ limit: 1 }, { standardHeaders: 'draft-7', message: 'slow down' });
    const passed = await get(`${url}/own`);
    expect(passed.headers.get('ratelimit')).toBe('limit=1, remaining=0, reset=3600');
    const refused = await get(`${url}/own`);
    expect([refused.status, refused.text]).toEqual([429, 'slow down']);
    expect(await statusesOf(`${url}/scope`, 3)).toEqual([200, 200, 429]);
  });

  test.each([
    ['max over limit', { limit: 9 }, { max: 1 }],
    ['a limit over limits', { limits: [{ interval: HOUR_MS, maxInInterval: 9 }] }, { limit: 1 }],
    ['limits over a limit', { limit: 9 }, { limits: [{ interval: HOUR_MS, maxInInterval: 1 }] }],
    ['a limiter over a limit', { limit: 9 }, { limiter: limiterOf(1) }],
    [
      'a keyGenerator over ipv6Subnet',
      { ipv6Subnet: 64 },
      { limit: 1, keyGenerator: () => 'everybody' },
    ],
    ['a handler over problemDetails', { problemDetails: true }, { limit: 1, handler: refuse }],
    ['undefined is left out', { limit: 1 }, { limit: undefined }],
  ])('%s', async (_what, ofScope, ofRoute) => {
    const url = await start(ofRoute, ofScope);
    expect(await statusesOf(`${url}/own`, 2)).toEqual([200, 429]);
  });

  test('a limit over the limiter of the scope', async () => {
    const app = newApp();
    await app.register(rollgate, { limiter: limiterOf(9) });
    app.get('/own', { config: { rateLimit: { limit: 1 } } }, answer);
    expect(await statusesOf(`${await listen(app)}/own`, 2)).toEqual([200, 429]);
  });

  test('GET and HEAD of a route count together, routes of one object apart', async () => {
    const app = newApp();
    await app.register(rollgate, LIMITS);
    const config = { rateLimit: { limit: 1 } };
    app.get('/one', { config }, answer);
    app.get('/two', { config }, answer);
    const url = await listen(app);
    expect(await statusesOf(`${url}/one`, 1)).toEqual([200]);
    expect(await statusesOf(`${url}/one`, 1, { method: 'HEAD' })).toEqual([429]);
    expect(await statusesOf(`${url}/two`, 1)).toEqual([200]);
  });

  describe.each([
    ['in memory', async () => ({})],
    ['on Redis', async () => ({ redis: (await startRedis()).url, namespace: 'api' })],
    ['in shared memory', async () => ({ shared: newName() })],
  ])('of several methods at one path, %s', (_store, storeOptions) => {
    const limited = (limit) => ({ config: { rateLimit: { limit } } });

    async function startWithStore(fastifyOptions) {
      const app = newApp(fastifyOptions);
      await app.register(rollgate, { windowMs: HOUR_MS, limit: 9, ...(await storeOptions()) });
      return app;
    }

    const counter = (url) => (method, times) => statusesOf(`${url}/own`, times, { method });

    test('each route counts apart, HEAD with the GET that it was made of', async () => {
      const app = await startWithStore();
      app.get('/own', limited(3), answer);
      app.post('/own', limited(1), answer);
      app.route({ method: ['PUT', 'DELETE'], url: '/own', ...limited(2), handler: answer });
      const statuses = counter(await listen(app));
      expect(await statuses('POST', 2)).toEqual([200, 429]);
      expect(await statuses('GET', 1)).toEqual([200]);
      expect(await statuses('HEAD', 1)).toEqual([200]);
      expect(await statuses('GET', 2)).toEqual([200, 429]);
      expect(await statuses('HEAD', 1)).toEqual([429]);
      expect(await statuses('PUT', 1)).toEqual([200]);
      expect(await statuses('DELETE', 2)).toEqual([200, 429]);
    });

    test('HEAD is made of a route of several methods, too', async () => {
      const app = await startWithStore();
      app.route({ method: ['POST', 'GET'], url: '/own', ...limited(2), handler: answer });
      const statuses = counter(await listen(app));
      expect(await statuses('HEAD', 1)).toEqual([200]);
      expect(await statuses('POST', 1)).toEqual([200]);
      expect(await statuses('GET', 1)).toEqual([429]);
    });

    test('a HEAD with limits of its own counts apart', async () => {
      const app = await startWithStore();
      app.head('/own', limited(1), answer);
      app.get('/own', limited(2), answer);
      const statuses = counter(await listen(app));
      expect(await statuses('HEAD', 2)).toEqual([200, 429]);
      expect(await statuses('GET', 3)).toEqual([200, 200, 429]);
    });

    test('routes of one object count apart, too', async () => {
      const app = await startWithStore({ exposeHeadRoutes: false });
      const one = limited(1);
      for (const method of ['get', 'post', 'head']) app[method]('/own', one, answer);
      const statuses = counter(await listen(app));
      expect(await statuses('GET', 2)).toEqual([200, 429]);
      expect(await statuses('POST', 2)).toEqual([200, 429]);
    });
  });

  test.each(['GET', 'HEAD'])('declared before the plugin, and asked by %s first', async (first) => {
    const app = newApp();
    app.get('/own', { config: { rateLimit: { limit: 1 } } }, answer);
    await app.register(rollgate, LIMITS);
    const url = `${await listen(app)}/own`;
    expect(await statusesOf(url, 1, { method: first })).toEqual([200]);
    expect(await statusesOf(url, 1, { method: 'HEAD' })).toEqual([429]);
    expect(await statusesOf(url, 1, { method: 'GET' })).toEqual([429]);
  });

  test('counts once where scopes are within one another, by what the nearest says', async () => {
    const app = newApp();
    const options = { ...LIMITS, limit: 9, legacyHeaders: false, standardHeaders: 'draft-8' };
    app.register(rollgate, { ...options, identifier: 'outer' });
    app.register(async (scope) => {
      scope.register(rollgate, { ...options, identifier: 'inner' });
      scope.get('/own', { config: { rateLimit: { limit: 3 } } }, answer);
      scope.register(async (within) => {
        within.get('/within', { config: { rateLimit: { limit: 2 } } }, answer);
      });
    });
    app.register(async (scope) => {
      scope.get('/beside', { config: { rateLimit: { limit: 1 } } }, answer);
    });
    const url = await listen(app);
    const told = async (path) => (await get(`${url}${path}`)).headers.get('ratelimit');
    expect(await told('/own')).toBe('"inner"; r=2; t=3600');
    expect(await statusesOf(`${url}/own`, 4)).toEqual([200, 200, 429, 429]);
    expect(await told('/within')).toBe('"inner"; r=1; t=3600');
    expect(await told('/beside')).toBe('"outer"; r=0; t=3600');
  });

  test('two plugins in one scope: the route counts once, by the later one', async () => {
    const app = newApp();
    await app.register(rollgate, { ...LIMITS, message: 'first' });
    await app.register(rollgate, { ...LIMITS, message: 'second' });
    app.get('/own', { config: { rateLimit: { limit: 1 } } }, answer);
    const url = await listen(app);
    expect(await statusesOf(`${url}/own`, 1)).toEqual([200]);
    expect((await get(`${url}/own`)).text).toBe('second');
  });

  test('on Redis it counts under a name of its own', async () => {
    const redis = await startRedis();
    const app = newApp();
    await app.register(rollgate, {
      windowMs: HOUR_MS,
      limit: 2,
      redis: redis.url,
      namespace: 'api',
    });
    app.get('/own/:id(^\\d{2}$)', { config: { rateLimit: { limit: 3 } } }, answer);
    app.get('/scope', answer);
    const url = await listen(app);
    expect(await statusesOf(`${url}/scope`, 3)).toEqual([200, 200, 429]);
    expect(await statusesOf(`${url}/own/42`, 4)).toEqual([200, 200, 200, 429]);
  });
});

test('a property of the application is not written over', async () => {
  const app = newApp();
  app.decorateRequest('user', null);
  app.register(rollgate, { ...LIMITS, requestPropertyName: 'user' });
  await expect(ready(app)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
});

describe('wrong options are errors of ready()', () => {
  test.each([
    ['unknown', { limitt: 3 }],
    ['of the wrong type', { limit: '3' }],
    ['out of range', { windowMs: -1 }],
    ['of register itself', { prefix: '/v1' }],
    ['that contradict each other', { limiter: limiterOf(1), limit: 2 }],
    ['a property that requests have', { requestPropertyName: 'ip' }],
    ['a property that requests get', { requestPropertyName: 'log' }],
  ])('of the plugin: %s', async (_what, options) => {
    const app = newApp();
    app.register(rollgate, options);
    await expect(ready(app)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  });

  test.each([
    ['unknown', { limitt: 3 }],
    ['no options', 3],
    ['a list', []],
    ['null', null],
    ['a property that requests have', { requestPropertyName: 'ip' }],
  ])('of a route: %s', async (_what, rateLimit) => {
    const app = newApp();
    app.register(rollgate, LIMITS);
    app.register(async (scope) => scope.get('/', { config: { rateLimit } }, answer));
    await expect(ready(app)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  });

  test('of a route that was declared before the plugin was loaded: of its requests', async () => {
    const app = newApp();
    app.register(rollgate, LIMITS);
    app.get('/', { config: { rateLimit: { limitt: 3 } } }, answer);
    const { status, text } = await get(await listen(app));
    expect([status, JSON.parse(text).code]).toEqual([503, 'ERR_ROLLGATE_OPTION']);
  });
});

/** `ready()` alone is a thenable that Jest's `rejects` does not take. */
async function ready(app) {
  await app.ready();
}

function refuse(_request, reply) {
  reply.code(429).send();
}

function limiterOf(maxInInterval) {
  return RateLimiter({ interval: HOUR_MS, maxInInterval });
}
