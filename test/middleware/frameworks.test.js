// The middleware in each framework, with real servers and clients.
'use strict';

require('reflect-metadata');
const { once } = require('node:events');
const http = require('node:http');
const { Catch, Controller, Get, Module, Req, Res } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const connect = require('connect');
const express5 = require('express');
const express4 = require('express-4');
const fastify = require('fastify');
const polka = require('polka');
const { rateLimit } = require('../..');
const rollgate = require('../../lib/adapters/fastify');
const apps = require('./apps');

const { FAILING, HOUR_MS, inTurn, listen, warningsDuring } = apps;
const get = apps.fetchText;

function send(res, status, body) {
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(body));
}

const showLimit = (req, res) => send(res, 200, { seen: req.rateLimit });
const showError = (error, res) => send(res, 503, { handled: error.message });

/** A middleware that reads the body of a request in front of the limiter. */
async function readBody(req, _res, next) {
  for await (const _ of req);
  next();
}

/** For applications of Express and Connect. */
const onStack = (create) => (options) => {
  const app = create().use(readBody).use(rateLimit(options)).use(showLimit);
  // They recognize an error handler by its four parameters.
  app.use((error, _req, res, _next) => showError(error, res));
  return http.createServer(app);
};

function onPolka(options) {
  const app = polka({ onError: (error, _req, res) => showError(error, res) });
  return http.createServer(app.use(readBody, rateLimit(options)).get('/', showLimit).handler);
}

/** In plain JavaScript decorators are functions, called by hand. */
async function onNest(options) {
  class Routes {}
  Routes.prototype.page = showLimit;
  Req()(Routes.prototype, 'page', 0);
  Res()(Routes.prototype, 'page', 1);
  Get('/')(Routes.prototype, 'page', Object.getOwnPropertyDescriptor(Routes.prototype, 'page'));
  Controller()(Routes);
  class Filter {
    catch(error, host) {
      showError(error, host.switchToHttp().getResponse());
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

async function onFastify(options) {
  const app = fastify();
  app.setErrorHandler((error, _request, reply) => {
    reply.code(503).send({ handled: error.message });
  });
  app.addHook('onRequest', ({ raw }) => readBody(raw, undefined, () => {}));
  app.register(rollgate, options);
  app.get('/', (request) => ({ seen: request.rateLimit }));
  await app.ready();
  return app.server;
}

async function statusAt(socketPath) {
  const [response] = await once(http.get({ socketPath, agent: false }), 'response');
  await once(response.resume(), 'end');
  return response.statusCode;
}

describe.each([
  ['Express 4', onStack(express4)],
  ['Express 5', onStack(express5)],
  ['Connect', onStack(connect)],
  ['Polka', onPolka],
  ['NestJS with a consumer', onNest], // app.use is that of Express
  ['Fastify', onFastify],
])('%s', (framework, create) => {
  /** The clock stands still, so that times in seconds do not depend on the machine. */
  async function start(options, place) {
    const limits = options.limiter ? {} : { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS };
    return `http://127.0.0.1:${await listen(await create({ ...limits, ...options }), place)}`;
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

  const linuxTest = process.platform === 'linux' ? test : test.skip;

  linuxTest('requests without an address share one count, with one warning', async () => {
    const socketPath = `\0${framework} ${process.pid}`; // a name in place of a file
    await start({}, { path: socketPath });
    let statuses;
    const warnings = await warningsDuring(async () => {
      statuses = await inTurn(Array(3).fill(socketPath), statusAt);
    });
    expect(statuses).toEqual([200, 200, 429]);
    expect(warnings).toEqual(['ROLLGATE_NO_CLIENT_IP']);
  });
});
