// The middleware in each framework, with real servers and clients.
'use strict';

require('reflect-metadata');
const { EventEmitter, once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { Catch, Controller, Get, Module, Req, Res } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const connect = require('connect');
const express5 = require('express');
const express4 = require('express-4');
const fastify = require('fastify');
const polka = require('polka');
const RateLimiter = require('../..');
const rollgate = require('../../lib/adapters/fastify');
const { waitUntil } = require('../support/outcome');
const apps = require('./apps');

const { FAILING, HOUR_MS, inTurn, warningsDuring } = apps;
const { rateLimit } = RateLimiter;
const get = apps.fetchText;
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

/** A middleware that reads the body of a request in front of the limiter. */
async function readBody(req, _res, next) {
  for await (const _ of req);
  next();
}

function addRoutes(app, middleware, routes) {
  app.use(readBody);
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
  const app = connect().use(readBody).use(rateLimit(options));
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
  app.use(readBody);
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
  app.addHook('onRequest', ({ raw }) => readBody(raw, undefined, () => {}));
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
let folder;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-frameworks-'));
});
afterEach(async () => {
  for (const server of open.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** The status of a request of http.request(), each on its own connection. */
async function askWith(options, body) {
  const request = http.request({ agent: false, ...options }).end(body);
  const [response] = await once(request, 'response');
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

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
  async function listen(place, options, arrivals = new EventEmitter()) {
    const limits = options.limiter ? {} : { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS };
    const server = await create({ ...limits, ...options }, routesOf(arrivals));
    open.push(server.listen(place));
    await once(server, 'listening');
    return server.address();
  }

  async function start(...args) {
    const { port } = await listen({ port: 0, host: '127.0.0.1' }, ...args);
    return `http://127.0.0.1:${port}`;
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

  const unixTest = process.platform === 'win32' ? test.skip : test;

  unixTest('requests without an address share one count, with one warning', async () => {
    const socketPath = path.join(folder, `${fs.readdirSync(folder).length}.sock`);
    await listen({ path: socketPath }, {});
    let statuses;
    const warnings = await warningsDuring(async () => {
      statuses = await inTurn([{ socketPath }, { socketPath }, { socketPath }], (each) =>
        askWith(each),
      );
    });
    expect(statuses).toEqual([200, 200, 429]);
    expect(warnings).toEqual(['ROLLGATE_NO_CLIENT_IP']);
  });

  test('of two X-Forwarded-For headers, the last address is the client of one proxy', async () => {
    const { port } = await listen({ port: 0, host: '127.0.0.1' }, { limit: 1, trustProxy: 1 });
    const chains = [
      ['203.0.113.1', '192.0.2.1'],
      ['203.0.113.2, 203.0.113.3', '192.0.2.1'],
      ['203.0.113.1', '192.0.2.2'],
      ['203.0.113.1', '203.0.113.1, 192.0.2.2'],
    ];
    const statuses = await inTurn(chains, (chain) =>
      askWith({ host: '127.0.0.1', port, headers: { 'X-Forwarded-For': chain } }),
    );
    expect(statuses).toEqual([200, 429, 200, 429]);
  });

  test('a body that was read before changes nothing', async () => {
    const { port } = await listen({ port: 0, host: '127.0.0.1' }, { limit: 1 });
    const body = 'x'.repeat(100_000);
    const headers = { 'Content-Length': body.length };
    const ask = () => askWith({ host: '127.0.0.1', port, headers }, body);
    const statuses = [await ask(), await ask()];
    expect(statuses).toEqual([200, 429]);
  });
});
