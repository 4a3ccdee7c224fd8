// The Fastify plugin, request by request: what is answered, what the application is told, what is taken back.
'use strict';

const { EventEmitter, once } = require('node:events');
const http = require('node:http');
const RateLimiter = require('../../..');
const { askProgram } = require('../../support/run-program');
const { waitUntil } = require('../../support/wait-until');
const {
  LIMITS,
  closeAll,
  get,
  listen,
  newApp,
  rollgate,
  startWith,
  statusesOf,
} = require('./apps');

afterEach(closeAll);

test('requests pass with headers until the limit, and are told what is left', async () => {
  const { status, headers, text } = await get(await startWith({ standardHeaders: 'draft-7' }));
  expect(status).toBe(200);
  expect(headers.get('x-ratelimit-limit')).toBe('2');
  expect(headers.get('x-ratelimit-remaining')).toBe('1');
  expect(headers.get('ratelimit')).toBe('limit=2, remaining=1, reset=3600');
  expect(headers.get('ratelimit-policy')).toBe('2;w=3600');
  expect(headers.get('retry-after')).toBeNull();
  expect(JSON.parse(text).seen).toEqual({
    limit: 2,
    used: 1,
    remaining: 1,
    resetTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    key: '127.0.0.1',
  });
});

test('the request above the limit is answered 429', async () => {
  const url = await startWith({ standardHeaders: 'draft-8' });
  expect(await statusesOf(url, 2)).toEqual([200, 200]);
  const { status, headers, text } = await get(url);
  expect([status, text]).toEqual([429, 'Too many requests, please try again later.']);
  expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(headers.get('retry-after')).toBe('3600');
  expect(headers.get('ratelimit')).toBe('"2-in-1hr"; r=0; t=3600');
  expect(headers.get('x-ratelimit-remaining')).toBe('0');
});

test.each([
  ['an object', { error: 'slow down' }, 'application/json; charset=utf-8', '{"error":"slow down"}'],
  ['a function', (request) => `not ${request.method}`, 'text/plain; charset=utf-8', 'not GET'],
  ['an async function', async () => 'later', 'text/plain; charset=utf-8', 'later'],
  ['a function that answers', (_request, reply) => void reply.code(429).send('own'), null, 'own'],
])('the message may be %s', async (_what, message, type, body) => {
  const { status, headers, text } = await get(await startWith({ limit: 0, message }));
  expect([status, text]).toEqual([429, body]);
  if (type !== null) expect(headers.get('content-type')).toBe(type);
});

test('problem details are answered as such', async () => {
  const url = await startWith({ limit: 0, problemDetails: true, statusCode: 503 });
  const { status, headers, text } = await get(url);
  expect([status, headers.get('content-type')]).toEqual([503, 'application/problem+json']);
  expect(JSON.parse(text)).toMatchObject({ status: 503, 'violated-policies': ['0-in-1hr'] });
});

test.each([
  ['sends', (_request, reply) => reply.code(418).send({ own: true })],
  ['sends later', async (_request, reply) => reply.code(418).send({ own: true })],
  ['returns the body', (_request, reply) => reply.code(418) && { own: true }],
  ['returns it later', async (_request, reply) => reply.code(418) && { own: true }],
])('a handler that %s answers the refusal', async (_what, handler) => {
  const { status, text } = await get(await startWith({ limit: 0, handler }));
  expect([status, JSON.parse(text)]).toEqual([418, { own: true }]);
});

test('a handler may let the request pass, and knows the options as they were given', async () => {
  const message = (request, reply) => `${request.method} ${reply.statusCode}`;
  let told;
  const handler = (request, reply, next, options) => {
    told = options.message(request, reply);
    next();
  };
  expect(await statusesOf(await startWith({ limit: 0, message, handler }), 1)).toEqual([200]);
  expect(told).toBe('GET 200');
});

test("functions get Fastify's request and reply", async () => {
  const seen = {};
  const see = (name, value) => (request, reply) => {
    seen[name] = [request.routeOptions.url, typeof reply.code, reply.request === request];
    return value;
  };
  const url = await startWith({
    limit: 1,
    skip: see('skip', false),
    keyGenerator: see('keyGenerator', 'key'),
    identifier: see('identifier', 'name'),
    message: see('message', 'no'),
    requestWasSuccessful: see('requestWasSuccessful', true),
    skipSuccessfulRequests: true,
    countBlocked: true,
    standardHeaders: 'draft-8',
    handler: undefined,
  });
  await get(url);
  await waitUntil('it is asked how the request ended', () => seen.requestWasSuccessful);
  expect(Object.keys(seen).sort()).toEqual(
    ['identifier', 'keyGenerator', 'requestWasSuccessful', 'skip'].sort(),
  );
  for (const args of Object.values(seen)) expect(args).toEqual(['/', 'function', true]);
});

test('asynchronous functions are awaited', async () => {
  const url = await startWith({
    limit: 1,
    keyGenerator: async (request) => request.headers['x-user'],
    skip: async (request) => request.headers['x-user'] === 'admin',
  });
  const as = (user) => ({ headers: { 'x-user': user } });
  expect(await statusesOf(url, 2, as('ada'))).toEqual([200, 429]);
  expect(await statusesOf(url, 1, as('bob'))).toEqual([200]);
  expect(await statusesOf(url, 2, as('admin'))).toEqual([200, 200]);
});

test('clients are told apart by the address that Fastify sees, IPv6 by its /56', async () => {
  const app = newApp({ trustProxy: true });
  app.register(rollgate, { ...LIMITS, limit: 1 });
  app.get('/', (request) => request.rateLimit.key);
  const url = await listen(app);
  const from = (address) => ({ headers: { 'x-forwarded-for': address } });
  expect((await get(url, from('2001:db8:0:142::1'))).text).toBe('2001:db8:0:100::/56');
  expect(await statusesOf(url, 1, from('2001:db8:0:1ff::9'))).toEqual([429]);
  expect((await get(url, from('::ffff:192.0.2.1'))).text).toBe('192.0.2.1');
});

test.each([
  ['throws', () => fail('the store is down')],
  ['rejects', async () => fail('the store is down')],
])("a store that %s reaches Fastify's error handler, or passes", async (_what, attempt) => {
  const { status, text } = await get(await startWith({ limiter: { attempt } }));
  expect([status, JSON.parse(text).handled]).toEqual([503, 'the store is down']);
  const logger = { warn: jest.fn(), error: jest.fn() };
  const url = await startWith({ limiter: { attempt }, passOnStoreError: true, logger });
  expect(await statusesOf(url, 1)).toEqual([200]);
  expect(logger.error).toHaveBeenCalledTimes(1);
});

test.each([
  ['keyGenerator', { keyGenerator: () => fail('boom') }],
  ['keyGenerator, later', { keyGenerator: async () => fail('boom') }],
  ['skip', { skip: () => fail('boom') }],
  ['message', { limit: 0, message: () => fail('boom') }],
  ['handler', { limit: 0, handler: () => fail('boom') }],
  ['handler, later', { limit: 0, handler: async () => fail('boom') }],
])("an error in %s reaches Fastify's error handler once", async (_what, options) => {
  const { status, text } = await get(await startWith(options));
  expect([status, JSON.parse(text)]).toEqual([503, { handled: 'boom' }]);
});

test("the headers are there when hooks and the application's errors answer", async () => {
  const app = newApp();
  app.register(rollgate, { ...LIMITS, standardHeaders: true });
  let seen;
  app.addHook('onSend', async (_request, reply) => {
    seen = reply.getHeader('ratelimit-remaining');
  });
  app.get('/', () => fail('boom'));
  const { status, headers } = await get(await listen(app));
  expect([status, headers.get('ratelimit-remaining'), seen]).toEqual([503, '1', '1']);
});

describe('skipFailedRequests', () => {
  test('takes back failed requests, aborted streams and clients that hang up', async () => {
    const limiter = RateLimiter({ interval: 1e6, maxInInterval: 5, countBlocked: false });
    const used = () => limiter.peek('127.0.0.1').limits[0].used - 1; // less the peek itself
    const arrivals = new EventEmitter();
    const app = newApp();
    app.register(rollgate, { limiter, skipFailedRequests: true });
    app.get('/', () => 'passed');
    app.get('/never', (request) => {
      arrivals.emit('arrived', request);
      return new Promise(() => {});
    });
    const url = await listen(app);

    expect(await statusesOf(`${url}/missing`, 1)).toEqual([404]);
    await waitUntil('the failed request is taken back', () => used() === 0);

    const arrived = once(arrivals, 'arrived');
    const client = http.get(`${url}/never`);
    client.on('error', () => {});
    await arrived;
    expect(used()).toBe(1);
    client.destroy();
    await waitUntil('the abandoned request is taken back', () => used() === 0);

    expect(await statusesOf(url, 1)).toEqual([200]);
    expect(used()).toBe(1);
  });

  test('skipSuccessfulRequests takes back the others', async () => {
    const limiter = RateLimiter({ interval: 1e6, maxInInterval: 2 });
    const app = newApp();
    app.register(rollgate, { limiter, skipSuccessfulRequests: true });
    app.get('/', () => 'passed');
    const url = await listen(app);
    expect(await statusesOf(url, 1)).toEqual([200]);
    await waitUntil('it is taken back', () => limiter.peek('127.0.0.1').limits[0].used === 1);
    expect(await statusesOf(`${url}/missing`, 3)).toEqual([404, 404, 429]);
  });
});

test('requests of inject() are limited as well', async () => {
  // In a program of its own: Jest cannot load what inject() needs.
  const found = await askProgram(`
    const app = require('fastify')();
    app.register(require('rollgate/fastify'), { windowMs: 1e6, limit: 2 });
    app.get('/', () => 'passed');
    (async () => {
      const statuses = [];
      for (let i = 0; i < 3; i++) statuses.push((await app.inject('/')).statusCode);
      console.log(JSON.stringify(statuses));
    })();
  `);
  expect(found).toEqual([200, 200, 429]);
});

test('requestPropertyName names the property of the request', async () => {
  const { text } = await get(await startWith({ requestPropertyName: 'quota' }));
  expect(JSON.parse(text).seen.remaining).toBe(1);
});

test('a keyGenerator that reads request.ip without ipKeyGenerator is told', async () => {
  const logger = { warn: jest.fn(), error: jest.fn() };
  await startWith({ keyGenerator: (request) => request.ip, logger });
  expect(logger.warn.mock.calls).toEqual([
    [expect.objectContaining({ code: 'ROLLGATE_BARE_IP_KEY' })],
  ]);
});

function fail(message) {
  throw new Error(message);
}
