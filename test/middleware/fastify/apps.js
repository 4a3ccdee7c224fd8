// Small Fastify applications for the plugin's tests: real servers on ports of their own, closed after each test.
'use strict';

const createFastify = require('fastify');
const rollgate = require('../../../lib/fastify');

const HOUR_MS = 3_600_000;

/** A clock that stands, so that what is told in seconds is the same however slow the machine is. */
const LIMITS = { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS };

const open = [];

/** Fastify with an error handler that shows what reached it. */
function newApp(options) {
  const app = createFastify(options);
  app.setErrorHandler((error, _request, reply) => {
    reply.code(error.statusCode ?? 503).send({ code: error.code, handled: error.message });
  });
  open.push(app);
  return app;
}

/** With the plugin at the root and GET / behind it, which tells what the request was told. */
async function startWith(options) {
  const app = newApp();
  app.register(rollgate, options.limiter ? options : { ...LIMITS, ...options });
  app.get('/', (request) => ({ seen: request[options.requestPropertyName ?? 'rateLimit'] }));
  return listen(app);
}

async function listen(app) {
  await app.listen({ port: 0, host: '127.0.0.1' });
  return `http://127.0.0.1:${app.server.address().port}`;
}

async function get(url, init) {
  const response = await fetch(url, init);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function statusesOf(url, times, init) {
  const statuses = [];
  for (let i = 0; i < times; i++) statuses.push((await get(url, init)).status);
  return statuses;
}

async function closeAll() {
  await Promise.all(open.splice(0).map((app) => app.close()));
}

module.exports = {
  HOUR_MS,
  LIMITS,
  closeAll,
  get,
  listen,
  newApp,
  rollgate,
  startWith,
  statusesOf,
};
