// Bad input on every adapter: no address, two forwarded chains, a body that was read, wrong options.
'use strict';

require('reflect-metadata');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { promisify } = require('node:util');
const nest = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { getRequestListener } = require('@hono/node-server');
const { getConnInfo } = require('@hono/node-server/conninfo');
const createFastify = require('fastify');
const { Hono } = require('hono');
const Koa = require('koa');
const { rateLimit } = require('../..');
const rollgate = require('../../lib/adapters/fastify');
const { rateLimitFetch } = require('../../lib/adapters/fetch');
const { RollgateThrottlerStorage } = require('../../lib/adapters/nest-throttler');
const RollgateStore = require('../../lib/adapters/express-rate-limit-store');
const { inTurn, warningsDuring, withCode } = require('./apps');

const ends = [];
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));

/** A middleware for a request whose body was read by another one. */
async function readBody(req, _res, next) {
  for await (const _ of req);
  next();
}

const nothing = (_req, _res, next) => next();

/** Express recognizes an error handler by its four parameters. */
const onError = (error, _req, res, _next) => res.status(500).send(error.code);

const onExpress = (name) => (options, readsFirst) => {
  const app = require(name)();
  app.use(readsFirst ? readBody : nothing, rateLimit(options));
  app.all('/', (_req, res) => res.send('passed'));
  return app.use(onError);
};

function onHttp(options, readsFirst) {
  const limit = rateLimit(options);
  const first = readsFirst ? readBody : nothing;
  return (req, res) => {
    first(req, res, () => limit(req, res, (error) => res.end(error?.code ?? 'passed')));
  };
}

function onKoa(options, readsFirst) {
  const limit = promisify(
    rateLimit({
      handler: (_req, _res, next) => next(Object.assign(new Error('refused'), { status: 429 })),
      ...options,
    }),
  );
  const app = new Koa();
  app.silent = true;
  app.use(async (ctx, next) => {
    if (readsFirst) await promisify(readBody)(ctx.req, ctx.res);
    await limit(ctx.req, ctx.res);
    await next();
  });
  app.use((ctx) => {
    ctx.body = 'passed';
  });
  return app.callback();
}

function onHono(options, readsFirst) {
  const limit = rateLimitFetch(options);
  const app = new Hono();
  app.use(async (c, next) => {
    if (readsFirst) await c.req.raw.text();
    const { allowed, response } = await limit(c.req.raw, { ip: getConnInfo(c).remote.address });
    if (!allowed) return response;
    return next();
  });
  app.all('/', (c) => c.text('passed'));
  return getRequestListener(app.fetch);
}

async function onFastify(options, readsFirst) {
  const app = createFastify();
  if (readsFirst) {
    app.addHook('onRequest', ({ raw }, _reply, next) => readBody(raw, undefined, next));
    app.removeAllContentTypeParsers(); // they would wait for the body
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  }
  await app.register(rollgate, options);
  app.all('/', () => 'passed');
  await app.ready();
  ends.push(() => app.close());
  return app.routing;
}

async function onNest(options, readsFirst) {
  class Pages {
    all() {
      return 'passed';
    }
  }
  nest.Controller()(Pages);
  nest.All()(Pages.prototype, 'all', Object.getOwnPropertyDescriptor(Pages.prototype, 'all'));
  class Root {}
  nest.Module({ controllers: [Pages] })(Root);
  const app = await NestFactory.create(Root, { logger: false, bodyParser: !readsFirst });
  app.use(readsFirst ? readBody : nothing);
  const limit = promisify(
    rateLimit({
      handler: (_req, _res, next) => next(new nest.HttpException('refused', 429)),
      ...options,
    }),
  );
  app.useGlobalGuards({
    async canActivate(context) {
      const { getRequest, getResponse } = context.switchToHttp();
      await limit(getRequest(), getResponse());
      return true;
    },
  });
  await app.init();
  ends.push(() => app.close());
  return app.getHttpAdapter().getInstance();
}

/** Each: the listener of a server with a limit on `/`; the second argument makes it read bodies before. */
const LISTENERS = {
  'Express 4': onExpress('express-4'),
  'Express 5': onExpress('express'),
  'node:http': onHttp,
  Koa: onKoa,
  Hono: onHono,
  Fastify: onFastify,
  NestJS: onNest,
};

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-adapters-'));
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Listens on a Unix socket, whose clients have no address, or on a port. */
async function serve(listener, where) {
  const server = http.createServer(listener).listen(where);
  ends.push(async () => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return where.path === undefined ? { host: where.host, port: server.address().port } : where;
}

/** The status of a request, each on its own connection. */
async function ask(where, { headers, body } = {}) {
  const options = { ...(where.path ? { socketPath: where.path } : where), agent: false };
  const request = http.request({ ...options, method: body ? 'POST' : 'GET', headers });
  request.end(body);
  const [response] = await once(request, 'response');
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

const LOOPBACK = { host: '127.0.0.1', port: 0 };
const ONE = { windowMs: 3_600_000, limit: 1 };

describe.each(Object.entries(LISTENERS))('%s', (name, createListener) => {
  const unixTest = process.platform === 'win32' ? test.skip : test;

  unixTest('requests without an address share one count, with one warning', async () => {
    const socket = path.join(folder, `${Object.keys(LISTENERS).indexOf(name)}.sock`);
    const where = await serve(await createListener(ONE), { path: socket });
    let statuses;
    const warnings = await warningsDuring(async () => {
      statuses = await inTurn([where, where, where], ask);
    });
    expect(statuses).toEqual([200, 429, 429]);
    expect(warnings).toEqual(['ROLLGATE_NO_CLIENT_IP']);
  });

  test('of two X-Forwarded-For headers, the last address is the client of one proxy', async () => {
    const where = await serve(await createListener({ ...ONE, trustProxy: 1 }), LOOPBACK);
    const chains = [
      ['203.0.113.1', '192.0.2.1'],
      ['203.0.113.2, 203.0.113.3', '192.0.2.1'],
      ['203.0.113.1', '192.0.2.2'],
      ['203.0.113.1', '203.0.113.1, 192.0.2.2'],
    ];
    const statuses = await inTurn(chains, (chain) =>
      ask(where, { headers: { 'X-Forwarded-For': chain } }),
    );
    expect(statuses).toEqual([200, 429, 200, 429]);
  });

  test('a body that was read before changes nothing', async () => {
    const where = await serve(await createListener(ONE, true), LOOPBACK);
    const post = { body: 'x'.repeat(100_000), headers: { 'content-type': 'text/plain' } };
    expect(await inTurn([post, post], (request) => ask(where, request))).toEqual([200, 429]);
  });
});

describe('rateLimitFetch alone', () => {
  const url = 'http://localhost/';
  const allowedOf = (limit, calls) =>
    inTurn(calls, async ([init, info]) => (await limit(new Request(url, init), info)).allowed);

  test('requests without an address share one count, with one warning', async () => {
    let allowed;
    const warnings = await warningsDuring(async () => {
      allowed = await allowedOf(rateLimitFetch(ONE), [[], [{}, { ip: '' }], [{}, {}]]);
    });
    expect(allowed).toEqual([true, false, false]);
    expect(warnings).toEqual(['ROLLGATE_NO_CLIENT_IP']);
  });

  test('two X-Forwarded-For headers are one chain', async () => {
    const limit = rateLimitFetch({ ...ONE, trustProxy: 1 });
    const through = (...chain) => [
      { headers: chain.map((part) => ['X-Forwarded-For', part]) },
      { ip: '127.0.0.1' },
    ];
    const calls = [
      through('203.0.113.1', '192.0.2.1'),
      through('203.0.113.2', '192.0.2.1'),
      through('203.0.113.1', '192.0.2.2'),
    ];
    expect(await allowedOf(limit, calls)).toEqual([true, false, true]);
  });

  test('a body that was read before changes nothing', async () => {
    const request = new Request(url, { method: 'POST', body: 'hello' });
    await request.text();
    const { allowed } = await rateLimitFetch(ONE)(request, { ip: '192.0.2.1' });
    expect(allowed).toBe(true);
  });
});

describe('wrong options', () => {
  /** Each adapter's name in messages, and how it gets options. */
  const ADAPTERS = [
    ['rateLimit', async (options) => rateLimit(options)],
    ['rateLimitFetch', async (options) => rateLimitFetch(options)],
    ['Fastify plugin', (options) => onFastify(options)],
    ['RollgateStore', async (options) => new RollgateStore(options)],
    ['RollgateThrottlerStorage', async (options) => new RollgateThrottlerStorage(options)],
  ];

  test.each(ADAPTERS)('%s names itself and an unknown option', async (name, create) => {
    const refused = create({ maxKey: 5 });
    await expect(refused).rejects.toThrow(withCode('ERR_ROLLGATE_OPTION'));
    await expect(refused).rejects.toThrow(TypeError);
    await expect(refused).rejects.toThrow(
      new RegExp(`^${name}: unknown option "maxKey"; did you mean 'maxKeys'`),
    );
  });

  test.each(ADAPTERS)('%s names itself and an option out of range', async (name, create) => {
    const refused = create({ maxKeys: 0 });
    await expect(refused).rejects.toThrow(withCode('ERR_ROLLGATE_OPTION'));
    await expect(refused).rejects.toThrow(RangeError);
    await expect(refused).rejects.toThrow(new RegExp(`^${name}: option 'maxKeys': expected`));
  });

  test('a rule names its place after the adapter', () => {
    const create = () => rateLimitFetch({ rules: [{ path: '/a' }, { path: '/', limit: -1 }] });
    expect(create).toThrow(/^rateLimitFetch: in rules\[1\]: option 'limit': /);
  });

  test("a Fastify route's own limits name the plugin", async () => {
    const app = createFastify();
    ends.push(() => app.close());
    await app.register(rollgate, ONE);
    const addRoute = (rateLimit) => () => app.get('/', { config: { rateLimit } }, () => 'passed');
    expect(addRoute({ limit: '5' })).toThrow(/^Fastify plugin: option 'limit': /);
    expect(addRoute(5)).toThrow(/^Fastify plugin: option 'config.rateLimit': /);
  });

  test('init of RollgateStore names it', () => {
    const init = () => new RollgateStore().init({ windowMs: 0, limit: 5 });
    expect(init).toThrow(/^RollgateStore: option 'interval': /);
  });

  test('RateLimiter, which is no adapter, names the option alone', () => {
    expect(() => rateLimit({ limit: -1 })).toThrow(/^rateLimit: /);
    expect(() => require('../..')({ interval: 0, maxInInterval: 1 })).toThrow(/^option 'interval'/);
  });
});
