// The Fastify plugin: its scopes, functions and handlers with request and reply, and wrong options.
'use strict';

const RateLimiter = require('../..');
const { askProgram } = require('../support/run-program');
const { waitUntil } = require('../support/outcome');
const { FAILING, HOUR_MS, byHeaders, newLogger, useFastify, withCode } = require('./apps');

const { answer, get, newApp, own, ready, rollgate, serve, start, statusesAt, statusesOf } =
  useFastify();
const LIMITS = { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS }; // it stands still
const as = (id) => ({ headers: { 'x-id': id } });
const from = (address) => ({ headers: { 'x-forwarded-for': address } });
const limiterOf = (maxInInterval) => RateLimiter({ interval: HOUR_MS, maxInInterval });

describe('a scope', () => {
  test('counts all its routes together, wherever they are declared, and 404s', async () => {
    const app = newApp();
    app.get('/before', answer);
    app.register(rollgate, { ...LIMITS, limit: 3 });
    app.get('/after', answer);
    const statuses = await statusesAt(
      await serve(app),
      '/before',
      '/no',
      '/after',
      '/after',
      '/no',
    );
    expect(statuses).toEqual([200, 404, 200, 429, 429]);
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

  test('of another server with the same options counts apart', async () => {
    const options = { ...LIMITS, limit: 1 };
    const limits = { limit: 1 };
    for (let i = 0; i < 2; i++) {
      const url = await start(options, { '/scope': undefined, '/own': limits });
      expect(await statusesOf(`${url}/scope`, 2)).toEqual([200, 429]);
      expect(await statusesOf(`${url}/own`, 2)).toEqual([200, 429]);
    }
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

test('rules decide by method, group and path, and block everywhere', async () => {
  const rules = [
    { path: '/health' },
    { path: '/api', method: 'POST', limit: 1 },
    { path: '/api', group: 'gold', limit: 3 },
    { path: '/api', limit: 1, perPath: true },
    { path: '/trap', limit: 0, blockFor: HOUR_MS, blockEverywhere: true },
  ];
  const url = await start({ authenticate: byHeaders, rules }, { '/*': undefined });
  const at = (path, times, init) => statusesOf(url + path, times, init);
  expect(await at('/api', 2, { method: 'POST', ...as('ada') })).toEqual([200, 429]);
  expect(await at('/api/1', 2, as('ada'))).toEqual([200, 429]);
  expect(await at('/api/2', 1, as('ada'))).toEqual([200]);
  const gold = { headers: { 'x-id': 'ada', 'x-group': 'gold' } };
  expect(await at('/api', 4, gold)).toEqual([200, 200, 200, 429]);
  expect(await at('/trap', 1, as('bob'))).toEqual([429]);
  expect(await at('/api', 1, as('bob'))).toEqual([429]);
  expect(await at('/health', 1, as('bob'))).toEqual([200]);
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

  test.each([
    ['sends', (reply, body) => void reply.send(body)],
    ['returns what it sends', (reply, body) => reply.send(body)],
    ['returns the body', (_reply, body) => body],
    ['returns it later', async (_reply, body) => body],
  ])('handler and onAuthError answer if one %s', async (_what, send) => {
    const [, authenticate] = FAILING(new Error('who?'))[0];
    const handler = (_request, reply) => send(reply.code(418), { own: true });
    const refused = await get(await start({ limit: 0, handler }));
    expect(refused).toMatchObject({ status: 418, text: '{"own":true}' });
    const onAuthError = (error, _request, reply) => send(reply.code(401), { why: error.message });
    for (const limits of [{ limit: 9 }, { rules: [{ path: '/', limit: 9 }] }]) {
      const url = await start({ authenticate, onAuthError, ...limits });
      expect(await get(url)).toMatchObject({ status: 401, text: '{"why":"who?"}' });
    }
  });

  test.each([
    ['at once', (next) => next()],
    ['later', async (next) => next()],
    ['and return something', (next) => next() ?? 'body'],
    ['and return something later', async (next) => next() ?? 'body'],
  ])('handler and onAuthError may let pass %s', async (_what, goOn) => {
    const [, authenticate] = FAILING(new Error('who?'))[0];
    const handler = (_request, _reply, next) => goOn(next);
    const onAuthError = (_error, _request, _reply, next) => goOn(next);
    for (const options of [
      { limit: 0, handler },
      { authenticate, onAuthError, limit: 1 },
    ]) {
      expect(await statusesOf(await start(options), 3)).toEqual([200, 200, 200]);
    }
  });

  test('a handler gets the options as they were given', async () => {
    const handler = jest.fn(() => 'no');
    const [max, message] = [() => 0, () => 'own'];
    await get(await start({ max, message, handler }));
    const settings = handler.mock.calls[0][3];
    expect([settings.limit, settings.message]).toEqual([max, message]);
  });

  const UNAUTHORIZED = Object.assign(new Error('boom'), { statusCode: 401 });
  const [, authenticate] = FAILING(new Error('who?'))[0];
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

test('headers are there for hooks, and for answers of the error handler', async () => {
  const app = newApp();
  app.register(rollgate, { ...LIMITS, standardHeaders: true });
  const seen = [];
  app.addHook('onSend', async (_request, reply) => {
    seen.push(reply.getHeader('ratelimit-remaining'));
  });
  app.get('/', FAILING(new Error('boom'))[0][1]);
  const { status, headers } = await get(await serve(app));
  expect([status, headers.get('ratelimit-remaining'), seen]).toEqual([503, '1', ['1']]);
});

test('requests of inject() are limited', async () => {
  // In a program of its own, because Jest cannot load what inject() needs.
  const statuses = await askProgram(`
    const app = require('fastify')();
    app.register(require('rollgate/fastify'), { windowMs: 1e6, limit: 2 });
    app.get('/', () => 'passed');
    (async () => {
      const statuses = [];
      for (let i = 0; i < 3; i++) statuses.push((await app.inject('/')).statusCode);
      console.log(JSON.stringify(statuses));
    })();
  `);
  expect(statuses).toEqual([200, 200, 429]);
});

test('a keyGenerator with a bare request.ip is a warning', async () => {
  const logger = newLogger();
  await start({ keyGenerator: (request) => request.ip, logger });
  expect(logger.warn.mock.calls).toEqual([[withCode('ROLLGATE_BARE_IP_KEY')]]);
});

describe('wrong options are errors of ready()', () => {
  const two = [
    { path: '/a', limit: 1 },
    { path: '/b', limitt: 2 },
  ];
  test.each([
    [{ limitt: 3 }, /limitt/],
    [{ windowMs: -1 }, /windowMs/],
    [{ prefix: '/v1' }, /prefix/],
    [{ limiter: limiterOf(1), limit: 2 }, /conflicts with 'limiter'/],
    [{ requestPropertyName: 'ip' }, /requestPropertyName/],
    [{ requestPropertyName: 'log' }, /requestPropertyName/],
    [{ rules: two }, /rules\[1\]/],
    [{ rules: [null] }, /rules\[0\]/],
    [{ rules: '/a' }, /rules/],
    [{ onAuthError: answer }, /authenticate/],
    [{ authenticate: 'ada' }, /authenticate/],
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
