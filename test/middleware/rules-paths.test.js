// However a client spells a URL: what reaches a handler was seen by the rule for its path.
'use strict';

const fc = require('fast-check');
const http = require('node:http');
const connect = require('connect');
const express = require('express');
const express4 = require('express-4');
const polka = require('polka');
const { rateLimit } = require('../..');
const { normalForm, pathOf } = require('../../lib/middleware/rules/paths');
const { sendTarget: send } = require('../support/send-target');

/** Odd spellings of /api/items, some of which some routers know. */
const SPELLINGS = [
  '/api/items',
  '/api/items/',
  '/API/Items',
  '/api/items?x=/other',
  '/api/items#x',
  '/api/items#?x',
  '/api/items?x#y',
  '/api\\items#',
  '/api\\items?#',
  '\\api/items#',
  '//a@b/api/items#',
  '//a@b/api/items',
  '/api//a@b/items#',
  '/api//a@b//c@d/items#',
  '//a@b/api//c@d/items#x',
  'http://host/api/items',
  'HTTP://user@host:80/api/items?x',
  'http://host/api//a@b/items#',
  '/a%70i/items',
  '/%61%70%69/items',
  '/api%2fitems',
  '/api//items',
  '//api/items',
  '/./api/items',
  '/x/../api/items',
  '/api/%2e/items',
  '/api;x/items',
  '/api/items;x',
  '/api/items%20',
  '/api/items%00',
  '/api/items%',
  '/api/items%ff',
  '/%/api/items',
  '*',
];

const servers = [];
afterAll(() => {
  for (const server of servers) server.close();
});

async function listen(handler) {
  const server = http.createServer(handler).listen(0, '127.0.0.1');
  servers.push(server);
  await new Promise((resolve) => server.once('listening', resolve));
  return server.address().port;
}

const rules = [{ path: '/api/items', limit: 1000 }];
/** What a handler saw of the limit that its request met. */
const answer = (req, res) => res.end(req.rateLimit === undefined ? 'UNLIMITED' : 'limited');

function withExpress(createApp, isMounted) {
  const app = createApp();
  app.use(rateLimit({ rules }));
  if (isMounted) {
    const router = createApp.Router();
    router.get('/items', answer);
    app.use('/api', router);
  } else {
    app.get('/api/items', answer);
  }
  return app;
}

/** The limiter stands within the router, where req.url has lost its beginning. */
function withinRouter(createApp) {
  const app = createApp();
  const router = createApp.Router();
  router.use(rateLimit({ rules }));
  router.get('/items', answer);
  return app.use('/api', router);
}

const APPS = [
  ['Express 5', () => withExpress(express, false)],
  ['Express 5 with a router', () => withExpress(express, true)],
  ['Express 5 within a router', () => withinRouter(express)],
  ['Express 4', () => withExpress(express4, false)],
  ['Express 4 with a router', () => withExpress(express4, true)],
  ['Express 4 within a router', () => withinRouter(express4)],
  ['Connect', () => connect().use(rateLimit({ rules })).use('/api/items', answer)],
  ['Polka', () => polka().use(rateLimit({ rules })).get('/api/items', answer).handler],
];

describe.each(APPS)('%s', (_name, createHandler) => {
  test('no spelling of a path leads to its handler past its rule', async () => {
    const port = await listen(createHandler());
    const bodies = [];
    for (const target of SPELLINGS) bodies.push([target, (await send(port, target)).body]);
    expect(bodies.filter(([, body]) => body === 'UNLIMITED')).toEqual([]);
    const reached = bodies.filter(([, body]) => body === 'limited').map(([target]) => target);
    expect(reached).toContain('/api/items');
  });
});

test('what is no URL at all meets no rule, and fails nothing', async () => {
  const middleware = rateLimit({ rules });
  const port = await listen((req, res) => middleware(req, res, () => answer(req, res)));
  expect(await send(port, 'http://[/api/items')).toEqual({ status: 200, body: 'UNLIMITED' });
});

test('the odd spellings are no idle list: Express knows many of them', async () => {
  const reached = new Set();
  for (const app of [
    withExpress(express4, false),
    withExpress(express4, true),
    withExpress(express, true),
  ]) {
    const port = await listen(app);
    for (const target of SPELLINGS) {
      if ((await send(port, target)).body === 'limited') reached.add(target);
    }
  }
  for (const target of [
    '/API/Items',
    '/api/items/',
    '/api/items#x',
    '/api\\items#',
    '//a@b/api/items#',
    '/api//a@b/items#',
    '/api//items',
    'http://host/api/items',
  ]) {
    expect(reached).toContain(target);
  }
});

test.each([
  ['Express 5', express],
  ['Express 4', express4],
])('nor do any with %s that are made up', async (_name, createApp) => {
  const pieces = ['/', '\\', '//', 'api', 'API', 'items', 'a@b', '#', '?', '%61', '%2f', ':', '.'];
  const port = await listen(withExpress(createApp, true));
  const target = fc
    .array(fc.constantFrom(...pieces, '/api/items', '/api/'), { maxLength: 6 })
    .map((parts) => `/${parts.join('')}`);
  await fc.assert(
    fc.asyncProperty(target, async (text) => {
      const { body } = await send(port, text);
      expect(body).not.toBe('UNLIMITED');
    }),
    { numRuns: 400, seed: 7 },
  );
});

test.each([
  ['/Api/Items/', '/api/items'],
  ['/', ''],
  ['//a///b//', '/a/b'],
  ['/a%2F/b', '/a%2f/b'],
  ['/a%2Fb%2fc', '/a%2fb%2fc'],
  ['/%2541', '/%2541'],
  ['/%41%C3%84', '/aä'],
  ['/%ff%41', '/%ffa'],
  ['/a/../b/.', '/a/../b/.'],
  ['/100%', '/100%'],
])('the normal form of %j is %j', (path, normal) => {
  expect(normalForm(path)).toBe(normal);
});

// Work that grows with the square of the length would run into Jest's time limit.
test('the work for a long path grows with its length alone', () => {
  for (const part of ['%61', '%ff', '//a@b', '//a', '%', '/']) {
    const target = `/${part.repeat(200_000)}#`;
    expect(normalForm(pathOf({ url: target })).length).toBeLessThanOrEqual(target.length);
  }
});

test('a RegExp gets the path as it came', async () => {
  const port = await listen(
    express()
      .use(rateLimit({ rules: [{ path: /^\/A%70i$/, limit: 1 }] }))
      .use(answer),
  );
  expect((await send(port, '/A%70i?x')).body).toBe('limited');
  expect((await send(port, '/Api')).body).toBe('UNLIMITED');
  expect((await send(port, '/a%70i')).body).toBe('UNLIMITED');
});
