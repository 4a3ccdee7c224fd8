// The middleware in each framework, with real servers, and over each store outside the process.
'use strict';

require('reflect-metadata');
const diagnostics = require('node:diagnostics_channel');
const { EventEmitter, once } = require('node:events');
const http = require('node:http');
const { Catch, Controller, Get, Module, Req, Res } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const connect = require('connect');
const express5 = require('express');
const express4 = require('express-4');
const fastify = require('fastify');
const Redis = require('ioredis');
const polka = require('polka');
const RateLimiter = require('../..');
const rollgate = require('../../lib/adapters/fastify');
const { createPlainKv } = require('../support/kv-stores');
const { hasNativeRedis } = require('../support/bindings');
const { waitUntil } = require('../support/outcome');
const { clientAt, redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const apps = require('./apps');

const { FAILING, HOUR_MS, appWith, inTurn, newLogger, setUp, statusesOf, withCode } = apps;
const { rateLimit } = RateLimiter;
const get = apps.fetchText;
const MINUTE_MS = 60_000;
const limiterOf = (maxInInterval) =>
  RateLimiter({ interval: HOUR_MS, maxInInterval, countBlocked: false });

/** What each application answers: a status and a body, or nothing, for ever. */
const routesOf = (arrivals) => ({
  '/': (req) => [200, { seen: req.rateLimit }],
  '/missing': () => [404, {}],
  '/never': () => void arrivals.emit('arrived'),
});
const errorAnswer = (error) => [503, { handled: error.message }];

function send(res, answer) {
  if (answer === undefined) return;
  res.statusCode = answer[0];
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(answer[1]));
}

function addRoutes(app, middleware, routes) {
  app.use(middleware);
  for (const [path, route] of Object.entries(routes)) {
    app.get(path, (req, res) => send(res, route(req)));
  }
  return app;
}

const onExpress = (express) => (options, routes) => {
  const app = addRoutes(express(), rateLimit(options), routes);
  // Express recognizes an error handler by its four parameters.
  app.use((error, _req, res, _next) => send(res, errorAnswer(error)));
  return http.createServer(app);
};

function onConnect(options, routes) {
  const app = connect().use(rateLimit(options));
  app.use((req, res) => send(res, routes[req.url](req))); // its paths are prefixes
  app.use((error, _req, res, _next) => send(res, errorAnswer(error)));
  return http.createServer(app);
}

function onPolka(options, routes) {
  const app = polka({ onError: (error, _req, res) => send(res, errorAnswer(error)) });
  return http.createServer(addRoutes(app, rateLimit(options), routes).handler);
}

/** In plain JavaScript decorators are functions, called by hand. */
const onNest = (isConsumer) => async (options, routes) => {
  class Routes {}
  for (const [path, route] of Object.entries(routes)) {
    Routes.prototype[path] = (req, res) => send(res, route(req));
    Req()(Routes.prototype, path, 0);
    Res()(Routes.prototype, path, 1);
    Get(path)(Routes.prototype, path, Object.getOwnPropertyDescriptor(Routes.prototype, path));
  }
  Controller()(Routes);
  class Filter {
    catch(error, host) {
      send(host.switchToHttp().getResponse(), errorAnswer(error));
    }
  }
  Catch()(Filter);
  class App {
    configure(consumer) {
      if (isConsumer) consumer.apply(rateLimit(options)).forRoutes(Routes);
    }
  }
  Module({ controllers: [Routes] })(App);
  const app = await NestFactory.create(App, { logger: false });
  if (!isConsumer) app.use(rateLimit(options));
  app.useGlobalFilters(new Filter());
  await app.init();
  return app.getHttpServer();
};

async function onFastify(options, routes) {
  const app = fastify();
  app.setErrorHandler((error, _request, reply) => {
    const [status, body] = errorAnswer(error);
    reply.code(status).send(body);
  });
  app.register(rollgate, options);
  for (const [path, route] of Object.entries(routes)) {
    app.get(path, (request, reply) => {
      const answer = route(request);
      return answer === undefined ? new Promise(() => {}) : reply.code(answer[0]).send(answer[1]);
    });
  }
  await app.ready();
  return app.server;
}

const open = [];
afterEach(async () => {
  for (const server of open.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
});

describe.each([
  ['Express 4', onExpress(express4)],
  ['Express 5', onExpress(express5)],
  ['Connect', onConnect],
  ['Polka', onPolka],
  ['NestJS with app.use', onNest(false)],
  ['NestJS with a consumer', onNest(true)],
  ['Fastify', onFastify],
])('%s', (_framework, create) => {
  /** The clock stands still, so that times in seconds do not depend on the machine. */
  async function start(options, arrivals = new EventEmitter()) {
    const limits = options.limiter ? {} : { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS };
    const server = await create({ ...limits, ...options }, routesOf(arrivals));
    open.push(server.listen(0, '127.0.0.1'));
    await once(server, 'listening');
    return `http://127.0.0.1:${server.address().port}`;
  }

  const pick = (headers, ...names) => names.map((name) => headers.get(name));

  test('requests pass with headers until the limit, then get 429', async () => {
    const url = await start({ standardHeaders: 'draft-8' });
    const first = await get(url);
    expect(first.status).toBe(200);
    const legacy = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'retry-after'];
    expect(pick(first.headers, ...legacy)).toEqual(['2', '1', null]);
    expect(first.headers.get('ratelimit')).toBe('"2-in-1hr"; r=1; t=3600');
    const counts = { limit: 2, used: 1, remaining: 1, key: '127.0.0.1' };
    const resetTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
    expect(JSON.parse(first.text).seen).toEqual({ ...counts, resetTime });
    expect((await get(url)).status).toBe(200);
    const { status, headers, text } = await get(url);
    expect([status, text]).toEqual([429, 'Too many requests, please try again later.']);
    expect(headers.get('content-type')).toMatch(/^text\/(html|plain); charset=utf-8$/);
    expect(pick(headers, ...legacy)).toEqual(['2', '0', '3600']);
    expect(headers.get('ratelimit')).toBe('"2-in-1hr"; r=0; t=3600');
  });

  test.each([
    [{ message: { no: 1 } }, 'application/json; charset=utf-8', { no: 1 }],
    [{ problemDetails: true }, 'application/problem+json', { 'violated-policies': ['0-in-1hr'] }],
  ])('the answer of %j is JSON', async (options, type, body) => {
    const { status, headers, text } = await get(await start({ limit: 0, ...options }));
    expect([status, headers.get('content-type')]).toEqual([429, type]);
    expect(JSON.parse(text)).toMatchObject(body);
  });

  test.each(FAILING(new Error('down')))(
    'a store that %s is a handled error',
    async (_, attempt) => {
      const { status, text } = await get(await start({ limiter: { attempt } }));
      expect([status, JSON.parse(text)]).toEqual([503, { handled: 'down' }]);
    },
  );

  test('asynchronous functions are awaited', async () => {
    const keyGenerator = async (req) => req.headers['x-user'];
    const skip = async (req) => req.headers['x-user'] === 'admin';
    const url = await start({ limit: 1, keyGenerator, skip });
    const users = ['ada', 'ada', 'bob', 'admin', 'admin'];
    const statuses = await inTurn(users, async (user) => {
      return (await get(url, { headers: { 'x-user': user } })).status;
    });
    expect(statuses).toEqual([200, 429, 200, 200, 200]);
  });

  test('failed requests and clients that hang up are taken back', async () => {
    const arrivals = new EventEmitter();
    const limiter = limiterOf(5);
    const url = await start({ limiter, skipFailedRequests: true }, arrivals);
    const used = () => limiter.peek('127.0.0.1').limits[0].used - 1; // the peek itself
    expect((await get(`${url}/missing`)).status).toBe(404);
    await waitUntil('the failed request is taken back', () => used() === 0);
    const arrived = once(arrivals, 'arrived');
    const client = http.get(`${url}/never`);
    client.on('error', () => {});
    await arrived;
    expect(used()).toBe(1);
    client.destroy();
    await waitUntil('the abandoned request is taken back', () => used() === 0);
    expect((await get(url)).status).toBe(200);
    expect(used()).toBe(1);
  });
});

let server;
let client;
let namespaces = 0;
beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.url);
});
beforeEach(async () => {
  namespaces += 1;
  await server.command('FLUSHALL');
});
afterAll(() => client.disconnect());

/** The options of each way to a store that processes share. */
const WAYS = {
  ...(hasNativeRedis && { 'Redis, native': () => ({ redis: server.url }) }),
  'Redis, ioredis': () => ({ redis: client }),
  'a key-value store': () => ({ kv: createPlainKv() }),
};

describe.each(Object.entries(WAYS))('over %s', (_name, optionsOf) => {
  let store;
  beforeEach(() => {
    store = { ...optionsOf(), namespace: `middleware-${namespaces}` };
  });

  test('processes count together by rules in any order, each zone by itself', async () => {
    const rules = [
      { path: '/a', limit: 2 },
      { path: /^\/r/i, method: ['PUT', 'GET'], limit: 2 },
      { path: '/z', limit: 2, zone: 'shared {z}' },
      { path: '/p', limit: 2, perPath: true },
    ];
    const one = setUp(rules, store);
    const other = setUp([...rules.reverse(), { path: '/new', limit: 9 }], store);
    for (const path of ['/a', '/r', '/z', '/p/1']) {
      expect(await one.statuses(path)).toEqual([200]);
      expect(await other.statuses(path, path)).toEqual([200, 429]);
    }
    expect(await one.statuses('/p/2')).toEqual([200]);
    expect(await one.middleware.getKey('ada')).toMatchObject({ totalHits: 2 });
  });

  test('blockEverywhere refuses on every rule of every process', async () => {
    const block = { blockFor: MINUTE_MS, blockEverywhere: true };
    const one = setUp([{ path: '/login', limit: 1, windowMs: 1000, ...block }], store);
    const rules = [
      { path: '/trap', limit: 0, blockFor: 5 * MINUTE_MS, blockEverywhere: true },
      { path: '/x', limit: 2, windowMs: 1000, ...block },
    ];
    const { hand } = one;
    const other = setUp(rules, { ...store, clock: () => hand.now });
    expect(await one.statuses('/login', '/login')).toEqual([200, 429]);
    hand.now += MINUTE_MS - 1;
    expect(await other.statuses('/x')).toEqual([429]);
    hand.now += 1;
    expect(await other.statuses('/x', '/trap', '/x')).toEqual([200, 429, 429]);
    await other.middleware.resetKey('ada');
    expect(await other.statuses('/x')).toEqual([200]);
  });

  // Kills: trials that publish decisions; a report that comes after next().
  test('a shadow rule counts for all processes, on its own channel', async () => {
    const rules = [
      { path: '/', limit: 1, zone: 'z', shadow: true },
      { path: '/', limit: 5, zone: 'z' },
    ];
    const decided = jest.fn();
    diagnostics.subscribe('rollgate:decision', decided);
    const [one, other] = [setUp(rules, store), setUp(rules, store)];
    const infos = [(await one.ask('/')).body, (await other.ask('/')).body];
    diagnostics.unsubscribe('rollgate:decision', decided);
    expect(infos.map(({ used, shadow }) => [used, shadow[0].allowed])).toEqual([
      [1, true],
      [2, false],
    ]);
    expect(decided).toHaveBeenCalledTimes(2);
  });

  test('a block of one zone is recorded once, for the time that is left', async () => {
    const rule = { limit: 1, windowMs: 1000, zone: 'z', blockFor: MINUTE_MS };
    const rules = [
      { path: '/new', ...rule },
      { path: '/login', ...rule, blockEverywhere: true },
      { path: '/x', limit: 100 },
    ];
    const { hand, statuses } = setUp(rules, store);
    expect(await statuses('/new', '/new', '/x')).toEqual([200, 429, 200]);
    hand.now += MINUTE_MS - 10_000;
    const answers = await Promise.all(Array.from({ length: 8 }, () => statuses('/login')));
    expect(answers).toEqual(answers.map(() => [429]));
    hand.now += 10_000 - 1;
    expect(await statuses('/x')).toEqual([429]);
    hand.now += 1;
    expect(await statuses('/x', '/login')).toEqual([200, 200]);
  });
});

test('on Redis each zone has a namespace, and a long path a short key', async () => {
  const names = ['a', 'b', 'A', 'a:paths', 'a b', 'a%20b', 'ä', 'shared {z}'];
  const rules = names.map((zone, i) => ({ path: `/${i}`, zone, limit: 1 }));
  const perPath = { path: '/path', zone: 'a', limit: 1, perPath: true };
  const own = { path: '/own', limit: 1 };
  const { statuses } = setUp([...rules, perPath, own], {
    redis: redisAt(server.url),
    namespace: 'n',
  });
  const paths = [...names.map((_zone, i) => `/${i}`), '/path', `/path/${'x'.repeat(9000)}`, '/own'];
  expect(await statuses(...paths)).toEqual(paths.map(() => 200));
  expect(await statuses(...paths)).toEqual(paths.map(() => 429));
  const keys = await server.command('KEYS', '*');
  for (const key of keys) expect(key.length).toBeLessThan(120);
  const found = new Set(keys.map((key) => key.slice(0, key.indexOf('{'))));
  expect(found.size).toBe(paths.length - 1);
  expect(found).toContain('n:zone:shared%20%7Bz%7D');
  expect([...found].filter((name) => /^n:rule:[\w-]{16}$/.test(name))).toHaveLength(1);
});

test.each([...(hasNativeRedis ? [['URLs', (url) => url]] : []), ['clients', clientAt]])(
  'a double count is a warning in one namespace, and none on two servers: by %s',
  async (_, at) => {
    const { url } = await startRedis();
    for (const [redis, expected] of [
      [at(server.url), [[withCode('ROLLGATE_DOUBLE_COUNT')]]],
      [at(url), []],
    ]) {
      const logger = newLogger();
      const options = { namespace: `twice-${namespaces}`, logger };
      const outer = rateLimit({ ...options, redis: at(server.url) });
      expect(await statusesOf(appWith(outer, rateLimit({ ...options, redis })), '/')).toEqual([
        200,
      ]);
      expect(logger.warn.mock.calls).toEqual(expected);
    }
  },
);

test.each([undefined, [{ path: '/', limit: 1, blockFor: 5, blockEverywhere: true }]])(
  'without its server, requests fail, pass or are decided by onError; rules: %j',
  async (rules) => {
    const gone = await startRedis();
    const logger = newLogger();
    const limits = rules === undefined ? { limit: 1 } : { rules };
    const common = { redis: redisAt(gone.url), namespace: 'gone', logger, ...limits };
    const [failing, passing, ...deciding] = [
      {},
      { passOnStoreError: true },
      ...['allow', 'block', 'memory'].map((onError) => ({ onError })),
    ].map((options) => appWith(rateLimit({ ...common, ...options })));
    await gone.stop();
    const { status, body } = await apps.get(failing);
    // A client of ioredis queues commands while it connects again.
    const why = hasNativeRedis ? 'UNREACHABLE' : 'TIMEOUT';
    expect([status, body.code]).toEqual([500, `ERR_ROLLGATE_REDIS_${why}`]);
    expect(await statusesOf(passing, '/')).toEqual([200]);
    expect(logger.error).toHaveBeenCalledTimes(1);
    const statuses = await inTurn(deciding, (app) => statusesOf(app, '/', '/'));
    expect(statuses).toEqual([
      [200, 200],
      [429, 429],
      [200, 429],
    ]);
  },
);
