// The middleware in each framework, with real servers and clients.
'use strict';

require('reflect-metadata');
const { EventEmitter, once } = require('node:events');
const http = require('node:http');
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
async function onNest(options, routes) {
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
      consumer.apply(rateLimit(options)).forRoutes(Routes);
    }
  }
  Module({ controllers: [Routes] })(App);
  const app = await NestFactory.create(App, { logger: false });
  app.use(readBody);
  app.useGlobalFilters(new Filter());
  await app.init();
  return app.getHttpServer();
}

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
afterEach(async () => {
  for (const server of open.splice(0)) {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }
});

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
  ['NestJS with a consumer', onNest], // app.use is that of Express
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

  const LEGACY = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'retry-after', 'ratelimit'];
  const sent = ({ status, headers }) => [status, ...LEGACY.map((name) => headers.get(name))];

  test('requests pass with headers until the limit, then get 429', async () => {
    const url = await start({ standardHeaders: 'draft-8' });
    const [first, , refused] = await inTurn([url, url, url], get);
    expect(sent(first)).toEqual([200, '2', '1', null, '"2-in-1hr"; r=1; t=3600']);
    const counts = { limit: 2, used: 1, remaining: 1, key: '127.0.0.1' };
    const resetTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
    expect(JSON.parse(first.text).seen).toEqual({ ...counts, resetTime });
    expect(sent(refused)).toEqual([429, '2', '0', '3600', '"2-in-1hr"; r=0; t=3600']);
    expect(refused.text).toBe('Too many requests, please try again later.');
    expect(refused.headers.get('content-type')).toMatch(/^text\/(html|plain); charset=utf-8$/);
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

  test('failed requests and clients that hang up are taken back', async () => {
    const arrivals = new EventEmitter();
    const limiter = RateLimiter({ interval: HOUR_MS, maxInInterval: 5, countBlocked: false });
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

  const linuxTest = process.platform === 'linux' ? test : test.skip;

  linuxTest('requests without an address share one count, with one warning', async () => {
    const socketPath = `\0rollgate ${process.pid}`; // a name in place of a file
    await listen({ path: socketPath }, {});
    let statuses;
    const warnings = await warningsDuring(async () => {
      statuses = await inTurn(Array(3).fill({ socketPath }), (each) => askWith(each));
    });
    expect(statuses).toEqual([200, 200, 429]);
    expect(warnings).toEqual(['ROLLGATE_NO_CLIENT_IP']);
  });

  test('a body that was read before changes nothing', async () => {
    const { port } = await listen({ port: 0, host: '127.0.0.1' }, { limit: 1 });
    const body = 'x'.repeat(100_000);
    const options = { host: '127.0.0.1', port, headers: { 'Content-Length': body.length } };
    expect([await askWith(options, body), await askWith(options, body)]).toEqual([200, 429]);
  });
});
