// What the middleware's tests have in common: small apps, calls without a server, loggers, and clocks moved by hand.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const express = require('express');
const request = require('supertest');
const { rateLimit } = require('../..');

const START_MS = Date.UTC(2024, 0, 2, 3, 4, 5, 678);
const HOUR_MS = 3_600_000;

/** Everything but Date stays real, because the requests are real ones. */
const REAL = [
  ...['hrtime', 'nextTick', 'performance', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
  ...['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'],
];

/** Stops Date in this test file; `clock`, for limiters, is the same. */
function useHandMovedClock() {
  beforeEach(() => jest.useFakeTimers({ doNotFake: REAL, now: START_MS }));
  afterEach(() => jest.useRealTimers());
  return {
    clock: () => Date.now(),
    advance: (ms) => jest.setSystemTime(Date.now() + ms),
  };
}

/** An Express 5 app with the middleware on every route; GET / answers 'passed'. */
function appWith(...middleware) {
  const app = express();
  app.use(...middleware);
  app.get('/', (_req, res) => res.send('passed'));
  // Express recognizes an error handler by its four parameters.
  app.use((error, _req, res, _next) => {
    res.status(500).json({ code: error.code, name: error.name, message: error.message });
  });
  return app;
}

const get = (app, path = '/', headers = {}) => request(app).get(path).set(headers);

/** What `ask` gives for each of these, one after the other. */
async function inTurn(items, ask) {
  const answers = [];
  for (const item of items) answers.push(await ask(item));
  return answers;
}

const getTimes = (app, times, path) => inTurn(Array(times).fill(path), (each) => get(app, each));

const statusesOf = (app, ...paths) => inTurn(paths, async (path) => (await get(app, path)).status);

/** Calls a middleware without a server: the headers that it set, and the calls of next(). */
function callDirectly(middleware, req = { ip: '192.0.2.1' }) {
  const headers = {};
  const res = {
    headersSent: false,
    getHeader: (name) => headers[name],
    setHeader: (name, value) => (headers[name] = value),
    send() {},
    end() {},
  };
  const calls = [];
  const returned = middleware(req, res, (...args) => calls.push(args));
  return { req, headers, calls, returned };
}

/** An app that answers every method and path behind rules, and a clock for it. */
function setUp(rules, options) {
  const hand = { now: 1_000_000 };
  const settings = { clock: () => hand.now, authenticate: byHeaders, rules, ...options };
  if ('keyGenerator' in settings) delete settings.authenticate;
  const middleware = rateLimit(settings);
  const app = appWith(middleware, (req, res) => res.json(req.rateLimit ?? null));
  const ask = (path, { id = 'ada', group, method = 'get' } = {}) => {
    const asked = request(app)[method](path).set('x-id', id);
    return group === undefined ? asked : asked.set('x-group', group);
  };
  const statuses = (...paths) =>
    inTurn(paths, async (path) => (await ask(...[].concat(path))).status);
  return { middleware, hand, ask, statuses };
}

function byHeaders(req) {
  return { id: req.headers['x-id'], group: req.headers['x-group'] };
}

const servers = [];
afterAll(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

/** Serves an app, or starts a server, until the tests of the file have run; resolves to its port. */
async function listen(app, place = { port: 0, host: '127.0.0.1' }) {
  const server = typeof app === 'function' ? http.createServer(app) : app;
  servers.push(server);
  await once(server.listen(place), 'listening');
  return server.address().port;
}

/** The answer of a server in any process. */
async function fetchText(url, init) {
  const response = await fetch(url, init);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const fetchStatuses = (url, times, init) =>
  inTurn(Array(times).fill(url), async (each) => (await fetchText(each, init)).status);

/** Applications on Fastify with the plugin, closed after each test. */
function useFastify() {
  const createFastify = require('fastify');
  const rollgate = require('../../lib/adapters/fastify');
  const clock = () => 5 * HOUR_MS; // stands still
  const answer = () => 'passed';
  const own = (limits) => (limits === undefined ? {} : { config: { rateLimit: limits } });

  const open = [];
  afterEach(() => Promise.all(open.splice(0).map((app) => app.close())));

  function newApp(options) {
    const app = createFastify(options);
    app.setErrorHandler((error, _request, reply) => {
      reply.code(error.statusCode ?? 503).send({ code: error.code, handled: error.message });
    });
    open.push(app);
    return app;
  }

  async function serve(app) {
    await app.listen({ port: 0, host: '127.0.0.1' });
    return `http://127.0.0.1:${app.server.address().port}`;
  }

  /** The plugin at the root, and `routes`: paths with their config.rateLimit. */
  async function start(options, routes = { '/': undefined }) {
    const app = newApp();
    await app.register(rollgate, options.limiter ? options : { clock, ...options });
    for (const [url, limits] of Object.entries(routes)) {
      app.route({ method: ['GET', 'POST'], url, ...own(limits), handler: answer });
    }
    return serve(app);
  }

  const statusesAt = (url, ...paths) =>
    inTurn(paths, async (path) => (await fetchText(url + path)).status);

  /** Rejects as app.ready() does, which alone is a thenable that Jest's `rejects` does not accept. */
  async function ready(options, limits) {
    const app = newApp();
    await app.register(rollgate, options);
    app.get('/', own(limits), answer);
    await app.ready();
  }

  return { answer, newApp, own, ready, rollgate, serve, start, statusesAt };
}

const newLogger = () => ({ warn: jest.fn(), error: jest.fn() });

/** The codes of the process's warnings while `play` runs. */
async function warningsDuring(play) {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  try {
    await play();
    await settled();
    return warn.mock.calls.map(([, { code }]) => code);
  } finally {
    warn.mockRestore();
  }
}

const settled = () => new Promise(setImmediate);

/** A function that throws, and one that rejects. */
const FAILING = (error) => [
  [
    'throws',
    () => {
      throw error;
    },
  ],
  ['rejects', () => Promise.reject(error)],
];

const withCode = (code) => expect.objectContaining({ code });

module.exports = {
  FAILING,
  HOUR_MS,
  START_MS,
  appWith,
  byHeaders,
  callDirectly,
  fetchStatuses,
  fetchText,
  get,
  getTimes,
  inTurn,
  listen,
  newLogger,
  setUp,
  settled,
  statusesOf,
  useFastify,
  useHandMovedClock,
  warningsDuring,
  withCode,
};
