// What runs at once in Express, in Fastify, and for Request and Response.
'use strict';

const { once } = require('node:events');
const express = require('express');
const { ConcurrencyLimiter, concurrencyLimit } = require('../..');
const { concurrencyLimitFetch } = require('../../lib/adapters/fetch');
const { fetchText, inTurn, useFastify } = require('../middleware/apps');
const { errorOf, waitUntil } = require('../support/outcome');
const { catchError } = require('../support/set-up');
const { filesOf, hasShared, newName } = require('../support/shared-regions');

const stops = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** An app whose requests wait until `finish()`, behind a middleware. */
async function serve(...middlewares) {
  const responses = [];
  const app = express();
  app.use(...middlewares);
  app.use((_req, res) => responses.push(res));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}/`;
  const running = async (count) => {
    await waitUntil(`${count} run`, () => responses.length === count);
  };
  const finish = () => responses.shift().end('done');
  return { ask: (headers) => fetch(url, { headers }), running, finish };
}

const byName = (req) => req.get('x-name') ?? 'ada';
const OPTIONS = { keyGenerator: byName, validate: false };

describe('concurrencyLimit', () => {
  // Kills: a refusal with Retry-After; a slot that is released when the handler is done.
  test('refuses what is above the maximum, until a response has closed', async () => {
    const limit = concurrencyLimit({ max: 1, standardHeaders: 'draft-10', ...OPTIONS });
    const app = await serve(limit);
    const first = app.ask();
    await app.running(1);
    const refused = await app.ask();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, null]);
    const policy = '"1-at-once";q=1;qu="concurrent-requests"';
    expect(refused.headers.get('ratelimit-policy')).toBe(policy);
    const other = app.ask({ 'x-name': 'bob' });
    await app.running(2);
    app.finish();
    app.finish();
    expect((await Promise.all([first, other])).map(({ status }) => status)).toEqual([200, 200]);
    await waitUntil('nothing is held', () => limit.limiter.stats().held === 0);
    expect(limit.limiter.usage('ada').max).toBe(1);
  });

  // Kills: a middleware that waits for itself.
  test('holds one slot for a request, however often it is mounted, and several middlewares one each', async () => {
    const limiter = ConcurrencyLimiter({ max: 2 });
    const limit = concurrencyLimit({ max: 2, limiter, ...OPTIONS });
    const app = await serve(limit, limit, concurrencyLimit({ max: 2, limiter, ...OPTIONS }));
    const asked = app.ask();
    await app.running(1);
    expect(limiter.stats().held).toBe(2);
    app.finish();
    await asked;
    await waitUntil('nothing is held', () => limiter.stats().held === 0);
  });

  test('takes the maximum of a function: 0 refuses, and Infinity passes uncounted', async () => {
    const maxima = { none: 0, all: Number.POSITIVE_INFINITY };
    const limit = concurrencyLimit({ max: async (req) => maxima[byName(req)], ...OPTIONS });
    const app = await serve(limit);
    expect((await app.ask({ 'x-name': 'none' })).status).toBe(429);
    const passing = app.ask({ 'x-name': 'all' });
    await app.running(1);
    expect(limit.limiter.stats().held).toBe(0);
    app.finish();
    await passing;
    expect((await app.ask({ 'x-name': 'neither' })).status).toBe(500);
  });

  // Kills: a request that waited and counts as refused; a maximum that setMax does not change.
  test('keeps as many in line as may be, counts them as allowed, and follows setMax', async () => {
    const limiter = ConcurrencyLimiter({ max: 1 });
    const options = { limiter, maxWait: 30_000, maxQueue: 1, ...OPTIONS };
    const app = await serve(concurrencyLimit(options));
    const first = app.ask();
    await app.running(1);
    const asked = [app.ask(), app.ask()];
    expect((await Promise.race(asked)).status).toBe(429);
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 1, waiting: 1 });
    limiter.setMax(2);
    await app.running(2);
    expect(limiter.stats()).toMatchObject({ allowed: 2, blocked: 1, waiting: 0 });
    app.finish();
    app.finish();
    await first;
    expect((await Promise.all(asked)).map(({ status }) => status).sort()).toEqual([200, 429]);
  });

  test.each([
    [{}, 'max'],
    [{ max: -1 }, 'max'],
    [{ max: 65_536 }, 'max'],
    [{ max: 1, maxWait: -1 }, 'maxWait'],
    [{ max: 1, maxQueue: 0 }, 'maxQueue'],
    [{ max: 1, standardHeaders: true }, 'standardHeaders'],
    [{ max: 1, limiter: {} }, 'limiter'],
    [{ max: 1, limiter: ConcurrencyLimiter({ max: 1 }), maxAge: 5 }, 'maxAge'],
    [{ max: 1, limit: 5 }, 'limit'],
  ])('refuses %j', (options, name) => {
    const { code, message } = catchError(() => concurrencyLimit(options));
    expect([code, message]).toEqual([
      'ERR_ROLLGATE_OPTION',
      expect.stringMatching(`^concurrencyLimit: .*['"]${name}['"]`),
    ]);
  });
});

describe('Fastify', () => {
  const { newApp, rollgate, serve: serveFastify } = useFastify();

  test('limits a scope, and a route by its own options', async () => {
    const app = newApp();
    const waiting = [];
    await app.register(rollgate, { concurrency: { max: 2 } });
    const handler = (request) =>
      new Promise((resolve) => waiting.push(() => resolve(request.concurrency.used)));
    app.get('/', handler);
    app.get('/one', { config: { concurrency: { max: 1 } } }, handler);
    app.get('/free', { config: { concurrency: false } }, () => 'free');
    const base = await serveFastify(app);
    const ask = (path) => fetchText(base + path);
    const asked = [ask('/'), ask('/'), ask('/one')];
    await waitUntil('three run', () => waiting.length === 3);
    const others = await Promise.all([ask('/'), ask('/one'), ask('/free')]);
    expect(others.map(({ status }) => status)).toEqual([429, 429, 200]);
    for (const finish of waiting) finish();
    const used = (await Promise.all(asked)).map(({ text }) => text);
    expect(used.sort()).toEqual(['1', '1', '2']);
    const again = ask('/one');
    await waitUntil('it runs', () => waiting.length === 4);
    waiting[3]();
    expect((await again).status).toBe(200);
  });

  // Kills: a plugin that hides the options of an outer scope for what it does not limit itself.
  test('limits a route by its own options, whatever the plugin limits and whenever it is loaded', async () => {
    const app = newApp();
    app.register(rollgate, { windowMs: 60_000, limit: 5, statusCode: 503 });
    app.get('/slots', { config: { concurrency: { max: 0 } } }, () => 'no');
    app.register(async (scope) => {
      await scope.register(rollgate, { concurrency: { max: 1 } });
      scope.get('/rate', { config: { rateLimit: { limit: 1 } } }, () => 'once');
    });
    const base = await serveFastify(app);
    const ask = async (path) => (await fetchText(base + path)).status;
    const statuses = await inTurn(['/slots', '/rate', '/rate'], ask);
    expect(statuses).toEqual([429, 200, 503]);
  });

  // Kills: a route that counts with the scope; one whose own limiter conflicts with the scope's store.
  (hasShared ? test : test.skip)('counts each route by itself in shared memory', async () => {
    const app = newApp();
    const name = newName();
    const limiter = ConcurrencyLimiter({ max: 1 });
    await app.register(rollgate, { concurrency: { max: 1, maxKeys: 100, shared: name } });
    let base;
    const nested = async (request) => {
      const { path } = request.query;
      return path ? String((await fetch(base + path)).status) : 'done';
    };
    app.get('/', nested);
    app.get('/one', { config: { concurrency: { max: 1 } } }, nested);
    app.get('/two', { config: { concurrency: { max: 2 } } }, nested);
    app.get('/own', { config: { concurrency: { limiter } } }, nested);
    base = await serveFastify(app);
    const askWithin = async (outer, inner) =>
      Number(await (await fetch(`${base}${outer}?path=${inner}`)).text());
    expect(await askWithin('/', '/')).toBe(429);
    expect(await askWithin('/', '/one')).toBe(200);
    expect(await askWithin('/one', '/one')).toBe(429);
    expect(await askWithin('/two', '/two')).toBe(200);
    expect(await askWithin('/own', '/own')).toBe(429);
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 1, held: 0 });
    expect(filesOf(name)).toHaveLength(3);
  });

  test.each([[null], [true], [false], [5], [{ max: 0.5 }]])('refuses %j', async (concurrency) => {
    const app = newApp();
    app.register(rollgate, { concurrency });
    expect((await errorOf(app.ready())).code).toBe('ERR_ROLLGATE_OPTION');
  });
});

describe('concurrencyLimitFetch', () => {
  const limitWith = (options) => concurrencyLimitFetch({ keyGenerator: () => 'ada', ...options });
  const requestWith = (init) => new Request('http://host.test/', init);

  test('gives a slot that is released by hand', async () => {
    const limit = limitWith({ max: 1 });
    const first = await limit(requestWith());
    expect(first).toMatchObject({ allowed: true, slot: { used: 1 }, response: undefined });
    const refused = await limit(requestWith());
    expect([refused.allowed, refused.response.status, refused.release()]).toEqual([
      false,
      429,
      false,
    ]);
    const { release } = first;
    expect([release(), release()]).toEqual([true, false]);
    expect((await limit(requestWith())).allowed).toBe(true);
  });

  // Kills: a slot that is taken before its policy has a name.
  test('holds nothing if the function identifier fails', async () => {
    const identifier = jest.fn(async () => {
      throw new Error('no name');
    });
    const limit = limitWith({ max: 1, standardHeaders: 'draft-8', identifier });
    expect((await errorOf(limit(requestWith()))).message).toBe('no name');
    expect(limit.limiter.stats()).toMatchObject({ held: 0, allowed: 1 });
  });

  // Kills: a request that leaves the line and is never answered; a slot for one that has left before.
  test('rejects with the reason of the signal if the client leaves in line, or has left', async () => {
    const limit = limitWith({ max: 1, maxWait: 60_000 });
    const { release } = await limit(requestWith());
    const client = new AbortController();
    const asked = limit(requestWith({ signal: client.signal }));
    await waitUntil('it waits', () => limit.limiter.stats().waiting === 1);
    client.abort(new Error('has left'));
    expect((await errorOf(asked)).message).toBe('has left');
    release();
    const late = limit(requestWith({ signal: AbortSignal.abort(new Error('left before')) }));
    expect((await errorOf(late)).message).toBe('left before');
    expect(limit.limiter.stats()).toMatchObject({ held: 0, waiting: 0 });
  });
});
