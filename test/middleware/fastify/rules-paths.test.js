// However a client spells a URL: the rule that decides is the one for the path that Fastify routes by.
'use strict';

const fc = require('fast-check');
const { sendTarget } = require('../../support/send-target');
const { closeAll, listen, newApp, rollgate } = require('./apps');

const TEXT_RULES = [{ path: '/api/items', limit: 100_000 }];

/** As an attacker would like it: what no rule is for, and what a rule excepts. */
const EXCEPTING_RULES = [{ path: '/free' }, { path: '/', limit: 100_000 }];

const routers = {
  'as it is': {},
  'not case-sensitive': { caseSensitive: false },
  'ignoring slashes': { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
  'with semicolons': { useSemicolonDelimiter: true },
};

const SPELLINGS = [
  '/api/items',
  '/api/items/',
  '/API/Items',
  '/api/items?x=/free',
  '/api/items#x',
  '/api/items#/free',
  '/api/items?x#y',
  '/api/items;x',
  '/api/items;/free',
  '/api/items;x=/y?z',
  '/api/items/;x',
  '/api%2Fitems',
  '/api%3Bx/items',
  '/a%70i/items',
  '/%61%70%69/%69tems?x',
  '/%41pi/items',
  '/api//items',
  '//api/items',
  '//api//items//',
  '/api\\items#',
  '//a@b/api/items#',
  '//free@x/api/items',
  '/./api/items',
  '/free/../api/items',
  '/api/items%20',
  '/api/items%00',
  '/api/items%',
  '/api/items%ff',
  '/api/items%2541',
  'http://host/api/items',
  'HTTP://user@host:80/api/items?x',
  'http://free/api/items',
  'http://host/free/../api/items',
  'http://host#/api/items',
  'http://host?/api/items',
  'http://host?x=/free',
  'http://host;/api/items',
  'http://host//api/items',
  'https://host/api/items',
  'ftp://host/api/items',
  'http:///api/items',
  '*',
  '*api/items',
];

afterEach(closeAll);

function answer(request) {
  return request.rateLimit === null ? 'UNLIMITED' : 'limited';
}

async function start(routerOptions, rules, routes, options = {}) {
  const app = newApp({ routerOptions, ...options });
  app.register(rollgate, { rules });
  for (const path of routes) app.get(path, answer);
  return new URL(await listen(app)).port;
}

async function bodiesOf(port, targets) {
  const bodies = [];
  for (const target of targets) bodies.push([target, (await sendTarget(port, target)).body]);
  return bodies;
}

const withBody = (bodies, sought) => bodies.filter(([, body]) => body === sought);

describe.each(Object.entries(routers))('a router %s', (_what, routerOptions) => {
  test('no spelling of a path leads to its handler past its rule', async () => {
    const port = await start(routerOptions, TEXT_RULES, ['/api/items']);
    const bodies = await bodiesOf(port, SPELLINGS);
    expect(withBody(bodies, 'UNLIMITED')).toEqual([]);
    expect(withBody(bodies, 'limited').map(([target]) => target)).toEqual(
      expect.arrayContaining(['/api/items', '/%61%70%69/%69tems?x', 'http://host/api/items']),
    );
  });

  test('nor into an exception, wherever else it leads', async () => {
    const port = await start(routerOptions, EXCEPTING_RULES, ['/', '/api/items']);
    expect(withBody(await bodiesOf(port, SPELLINGS), 'UNLIMITED')).toEqual([]);
    expect((await sendTarget(port, '/')).body).toBe('limited');
  });

  test('nor does any that is made up', async () => {
    const port = await start(routerOptions, TEXT_RULES, ['/api/items', '/api/items/:id']);
    const pieces = [
      '/',
      '\\',
      '//',
      'api',
      'API',
      'items',
      'a@b',
      '#',
      '?',
      ';',
      '%61',
      '%2f',
      '.',
    ];
    const target = fc
      .tuple(
        fc.constantFrom('/', '/api/', '//', 'http://h/', 'http://h?', 'http://a@b/'),
        fc.array(fc.constantFrom(...pieces, '/api/items', 'api/items'), { maxLength: 6 }),
      )
      .map(([head, parts]) => head + parts.join(''));
    await fc.assert(
      fc.asyncProperty(target, async (text) => {
        expect((await sendTarget(port, text)).body).not.toBe('UNLIMITED');
      }),
      { numRuns: 300, seed: 7 },
    );
  });
});

test('the odd spellings are no idle list: routers know many of them', async () => {
  const reached = new Set();
  for (const routerOptions of Object.values(routers)) {
    const port = await start(routerOptions, TEXT_RULES, ['/api/items']);
    const bodies = await bodiesOf(port, SPELLINGS);
    for (const [target] of withBody(bodies, 'limited')) reached.add(target);
  }
  for (const target of [
    '/API/Items',
    '/api/items/',
    '/api/items;/free',
    '/api/items#/free',
    '//api//items//',
    '/%41pi/items',
    'HTTP://user@host:80/api/items?x',
  ]) {
    expect(reached).toContain(target);
  }
});

test('useSemicolonDelimiter counts wherever it is said', async () => {
  for (const [routerOptions, options] of [
    [{ useSemicolonDelimiter: true }, {}],
    [undefined, { useSemicolonDelimiter: true }],
    [{}, { useSemicolonDelimiter: true }],
  ]) {
    const port = await start(routerOptions, TEXT_RULES, ['/*'], options);
    expect((await sendTarget(port, '/api/items;x')).body).toBe('limited');
  }
  const port = await start({}, TEXT_RULES, ['/*']);
  expect((await sendTarget(port, '/api/items;x')).body).toBe('UNLIMITED');
});

test('rules go by what rewriteUrl makes of a URL', async () => {
  const rewriteUrl = ({ url }) => url.replace(/^\/v1(?=\/)/, '');
  const port = await start({}, EXCEPTING_RULES, ['/free', '/api/items'], { rewriteUrl });
  expect((await sendTarget(port, '/v1/api/items')).body).toBe('limited');
  expect((await sendTarget(port, '/v1/free')).body).toBe('UNLIMITED');
});

test('a URL with a host whose path is uncertain is refused as a bad request', async () => {
  const port = await start({}, TEXT_RULES, ['/']);
  const { status, body } = await sendTarget(port, 'http://host?x=/y');
  expect([status, JSON.parse(body).code]).toEqual([400, 'ERR_ROLLGATE_URL']);
  expect((await sendTarget(port, 'http://host?x')).status).toBe(200);
});

test('a target that begins with neither a slash nor a host is refused as a bad request', async () => {
  const port = await start({}, TEXT_RULES, ['/api/items']);
  for (const target of ['*api/items', '*', 'ftp://h/api/items', 'xhttp://h/api/items']) {
    const { status, body } = await sendTarget(port, target);
    expect([target, status, JSON.parse(body).code]).toEqual([target, 400, 'ERR_ROLLGATE_URL']);
  }
});

test('but OPTIONS * is a request like any other', async () => {
  const app = newApp();
  app.register(rollgate, { rules: [{ path: '/', limit: 100 }] });
  app.options('/', answer);
  const { port } = new URL(await listen(app));
  expect(await sendTarget(port, '*', 'OPTIONS')).toEqual({ status: 200, body: 'limited' });
});

test('a RegExp gets the path as it came', async () => {
  const port = await start({}, [{ path: /^\/A%70i$/, limit: 1 }], ['/*']);
  expect((await sendTarget(port, '/A%70i?x')).body).toBe('limited');
  expect((await sendTarget(port, 'http://h/A%70i#x')).status).toBe(400);
  expect((await sendTarget(port, 'http://h/A%70i?x')).body).not.toBe('UNLIMITED');
  expect((await sendTarget(port, '/Api')).body).toBe('UNLIMITED');
});

test('a HEAD request is one of GET, by the same rule', async () => {
  const app = newApp();
  app.register(rollgate, { rules: [{ path: '/', method: 'GET', limit: 1 }] });
  app.get('/', answer);
  const url = await listen(app);
  expect((await fetch(url)).status).toBe(200);
  expect((await fetch(url, { method: 'HEAD' })).status).toBe(429);
});
