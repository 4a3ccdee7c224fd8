// Rules and spellings of a URL: whatever a router or file server makes of a path, its rule has seen the request.
'use strict';

const { EventEmitter } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const connect = require('connect');
const express = require('express');
const express4 = require('express-4');
const fc = require('fast-check');
const polka = require('polka');
const { rateLimit } = require('../..');
const {
  formsOf,
  normalForm,
  pathOf,
  unescapePath,
} = require('../../lib/adapters/middleware/rules/paths');
const { sendTarget } = require('../support/tcp-peers');
const { casesOf, slow } = require('../support/tiers');
const { callDirectly, inTurn, listen, newLogger, useFastify } = require('./apps');

const RULES = [{ path: '/api/items', limit: 100_000 }];
/** Spellings of /api/items, each of which some router may know; /free is what an exception lets pass. */
const SPELLINGS = `/api/items /api/items/ /API/Items /api/items?x=/other /api/items#x /api/items#?x
  /api/items?x#y /api/items#/free /api\\items# /api\\items?# \\api/items# //a@b/api/items#
  //a@b/api/items /api//a@b/items# /api//a@b//c@d/items# //a@b/api//c@d/items#x //free@x/api/items
  /a%70i/items /%61%70%69/items /%61%70%69/%69tems?x /%41pi/items /api%2fitems /api%3Bx/items
  /api//items //api/items //api//items// /./api/items /x/../api/items /free/../api/items
  /api/%2e/items /api;x/items /api/items;x /api/items;/free /api/items;x=/y?z /api/items/;x
  /api/items%20 /api/items%00 /api/items% /api/items%ff /api/items%2541 /%/api/items * *api/items
  http://host/api/items HTTP://user@host:80/api/items?x http://host/api//a@b/items#
  http://free/api/items http://host/free/../api/items http://host#/api/items
  http://host?/api/items http://host?x=/free http://host;/api/items http://host//api/items
  https://host/api/items ftp://host/api/items http:///api/items`.split(/\s+/);
const PIECES = '/ \\ // api API items a@b # ? ; %61 %2f : .'.split(' ');

/** Shows what a handler saw of the limit of its request. */
const answer = (req, res) => res.end(req.rateLimit === undefined ? 'UNLIMITED' : 'limited');

const app = (create) => (rules) => create().use(rateLimit({ rules })).get('/api/items', answer);
const withRouter = (create) => (rules) => {
  const router = create.Router().get('/items', answer);
  return create().use(rateLimit({ rules })).use('/api', router);
};
/** The middleware is within the router, where req.url has lost its beginning. */
const withinRouter = (create) => (rules) => {
  const router = create.Router().use(rateLimit({ rules })).get('/items', answer);
  return create().use('/api', router);
};

const { newApp, rollgate, serve } = useFastify();

async function listenFastify(options, rules, ...paths) {
  const app = newApp(options);
  app.register(rollgate, { rules });
  const tell = (request) => (request.rateLimit === null ? 'UNLIMITED' : 'limited');
  for (const route of paths) app.get(route, tell);
  app.options('/', tell);
  return Number(new URL(await serve(app)).port);
}

const withFastify = (routerOptions) => (rules) => {
  return listenFastify({ routerOptions }, rules, '/api/items', '/api/items/:id', '/free');
};
const served = (create) => (rules) => listen(create(rules));
const SLASHES = { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true };
const STARTS = {
  'Express 5': served(app(express)),
  'Express 5 with a router': served(withRouter(express)),
  'Express 5 within a router': served(withinRouter(express)),
  'Express 4': served(app(express4)),
  'Express 4 with a router': served(withRouter(express4)),
  'Express 4 within a router': served(withinRouter(express4)),
  Connect: served((rules) => connect().use(rateLimit({ rules })).use('/api/items', answer)),
  Polka: served((rules) => app(polka)(rules).handler),
  Fastify: withFastify({}),
  'Fastify, not case-sensitive': withFastify({ caseSensitive: false }),
  'Fastify, ignoring slashes': withFastify(SLASHES),
  'Fastify with semicolons': withFastify({ useSemicolonDelimiter: true }),
};

const bodyOf = async (port, target) => (await sendTarget(port, target)).body;

async function targetsWith(body, port) {
  const bodies = await inTurn(SPELLINGS, (target) => bodyOf(port, target));
  return SPELLINGS.filter((_target, i) => bodies[i] === body);
}

describe.each(Object.entries(STARTS))('%s', (_name, start) => {
  test('no spelling leads to a handler past its rule, nor into an exception', async () => {
    const port = await start(RULES);
    expect(await targetsWith('UNLIMITED', port)).toEqual([]);
    expect(await targetsWith('limited', port)).toContain('/api/items');
    const excepting = await start([{ path: '/free' }, { path: '/', limit: 100_000 }]);
    expect(await targetsWith('UNLIMITED', excepting)).toEqual([]);
  });

  slow.test('no random target does', async () => {
    const port = await start(RULES);
    const heads = ['/', '/', '/api/', '//', 'http://h/', 'http://h?', 'http://a@b/'];
    const pieces = fc.constantFrom(...PIECES, '/api/items', 'api/items', '/api/');
    const target = fc.tuple(fc.constantFrom(...heads), fc.array(pieces, { maxLength: 6 }));
    const property = fc.asyncProperty(target, async ([head, parts]) => {
      expect(await bodyOf(port, head + parts.join(''))).not.toBe('UNLIMITED');
    });
    await fc.assert(property, { numRuns: 400, seed: 7 });
  });
});

test('a target that is no URL matches no rule, and is no error', async () => {
  const middleware = rateLimit({ rules: RULES });
  const port = await listen((req, res) => middleware(req, res, () => answer(req, res)));
  expect(await sendTarget(port, 'http://[/api/items')).toEqual({ status: 200, body: 'UNLIMITED' });
});

describe('with Fastify', () => {
  test('rules apply to the URL after rewriteUrl', async () => {
    const rewriteUrl = ({ url }) => url.replace(/^\/v1(?=\/)/, '');
    const rules = [{ path: '/free' }, { path: '/', limit: 9 }];
    const port = await listenFastify({ rewriteUrl }, rules, '/free', '/api/items');
    expect(await bodyOf(port, '/v1/api/items')).toBe('limited');
    expect(await bodyOf(port, '/v1/free')).toBe('UNLIMITED');
  });

  test.each([
    [{ routerOptions: { useSemicolonDelimiter: true } }, 'limited'],
    [{ useSemicolonDelimiter: true }, 'limited'],
    [{}, 'UNLIMITED'],
  ])('%j counts wherever it is set: /api/items;x is %s', async (options, expected) => {
    expect(await bodyOf(await listenFastify(options, RULES, '/*'), '/api/items;x')).toBe(expected);
  });

  test('a target whose path is uncertain is a bad request, but not OPTIONS *', async () => {
    const port = await listenFastify({}, [{ path: '/', limit: 9 }], '/');
    const uncertain = ['http://host?x=/y', '*api/items', '*', 'ftp://h/api', 'xhttp://h/api'];
    for (const target of uncertain) {
      const { status, body } = await sendTarget(port, target);
      expect([status, JSON.parse(body).code]).toEqual([400, 'ERR_ROLLGATE_URL']);
    }
    expect((await sendTarget(port, 'http://host?x')).status).toBe(200);
    const options = await sendTarget(port, '*', 'OPTIONS');
    expect(options).toEqual({ status: 200, body: 'limited' });
  });

  test('a RegExp is tested on the path as it came', async () => {
    const port = await listenFastify({}, [{ path: /^\/A%70i$/, limit: 1 }], '/*');
    expect(await bodyOf(port, '/A%70i?x')).toBe('limited');
    expect((await sendTarget(port, 'http://h/A%70i?x')).status).toBe(429);
    expect(await bodyOf(port, '/Api')).toBe('UNLIMITED');
  });
});

describe.each([
  ['Express 5', express],
  ['Express 4', express4],
])('express.static of %s', (_name, create) => {
  let folder;
  beforeAll(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-static-'));
    for (const name of ['secret', 'public']) {
      fs.mkdirSync(path.join(folder, name));
      fs.writeFileSync(path.join(folder, name, 'f.txt'), name);
    }
  });
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  const listenStatic = (rules) =>
    listen(create().use(rateLimit({ rules })).use(create.static(folder)));
  const SECRET = `/secret/f.txt /./secret/f.txt /%2e/secret/f.txt /x/../secret/f.txt
    /x/%2E./secret/f.txt /secret%2Ff.txt /%2Fsecret/f.txt /.%2Fsecret/f.txt
    /x%2F..%2Fsecret%2ff.txt /x%2Fy/../../secret/f.txt /x\\y/../secret/f.txt
    /x//../secret/f.txt /public/../secret/f.txt /public/%2e%2e%2fsecret/f.txt`.split(/\s+/);
  const secret = { path: '/secret', limit: 0 };

  test.each([
    [[]],
    [[{ path: '/public' }]],
    [['/public', '/x'].map((prefix) => ({ path: prefix, limit: 1000 }))],
  ])('serves nothing past the rule behind %j', async (before) => {
    const port = await listenStatic([...before, secret]);
    for (const target of SECRET) expect((await sendTarget(port, target)).status).toBe(429);
    expect(await sendTarget(port, '/public/f.txt')).toEqual({ status: 200, body: 'public' });
  });

  test('serves these spellings without the rule, and with perPath as one count', async () => {
    const servedBy = async (rule) => {
      const port = await listenStatic([rule]);
      const bodies = await inTurn(SECRET, (target) => bodyOf(port, target));
      return SECRET.filter((_target, i) => bodies[i] === 'secret');
    };
    expect((await servedBy({ path: '/other', limit: 0 })).length).toBeGreaterThan(10);
    // Whether a backslash is a slash depends on the system: on Windows this is another file.
    const apart = ['/secret/f.txt', '/x\\y/../secret/f.txt'];
    expect(await servedBy({ path: '/', limit: 1, perPath: true })).toEqual(apart);
  });

  test('serves no random path past the rule', async () => {
    const port = await listenStatic([{ path: '/public' }, secret]);
    const pieces = '/ \\ // . .. /../ %2e %2f %5C x public secret'.split(' ');
    const parts = fc.array(fc.constantFrom(...pieces), { maxLength: 6 });
    const property = fc.asyncProperty(parts, async (some) => {
      expect(await bodyOf(port, `/${some.join('')}/f.txt`)).not.toBe('secret');
    });
    await fc.assert(property, { numRuns: casesOf(500), seed: 7 });
  });
});

describe('a path that may resolve to several', () => {
  function askerOf(rules, options) {
    const middleware = rateLimit({ rules, clock: () => 5000, ...options });
    return (url) => {
      const req = { method: 'GET', url, headers: {}, ip: '192.0.2.1' };
      const { calls } = callDirectly(middleware, req);
      const { limit, used, shadow } = req.rateLimit ?? {};
      return { passed: calls.length > 0, limit, used, shadow };
    };
  }
  const TWO = [
    { path: '/a', limit: 5 },
    { path: '/b', limit: 2 },
  ];

  test('is limited if one of them is: an exception is no way around', () => {
    const ask = askerOf([{ path: '/secret/free' }, { path: '/secret', limit: 0 }]);
    const others = ['/secret/../x', '/x/../secret'];
    const limited = ['/secret/free/../paid', '/secret/paid/../free', ...others];
    for (const url of limited) expect(ask(url).passed).toBe(false);
    for (const url of ['/secret/free/x', '/x/../y']) expect(ask(url).passed).toBe(true);
  });

  test('is counted by the rules of all, and passes if each allows it', () => {
    const ask = askerOf(TWO);
    expect(ask('/a/../b')).toEqual({ passed: true, limit: 5, used: 1 });
    expect(ask('/b')).toEqual({ passed: true, limit: 2, used: 2 });
    expect(ask('/a/../b').passed).toBe(false);
    expect(ask('/a')).toEqual({ passed: true, limit: 5, used: 2 }); // /b refused before it
  });

  test('is counted once in a zone, and once by its shadow rules', () => {
    const logger = newLogger();
    const zone = { zone: 'z', limit: 2 };
    for (const url of ['/a/../b', '/b/../a']) {
      const rules = [true, false].flatMap((shadow) =>
        ['/a', '/b'].map((path) => ({ path, ...zone, shadow })),
      );
      const ask = askerOf(rules, { logger });
      const asked = [ask(url), ask(url), ask(url)];
      const expected = [
        [1, true],
        [2, true],
        [2, false],
      ];
      expect(asked.map(({ used, passed }) => [used, passed])).toEqual(expected);
      const shadow = asked.flatMap((one) => one.shadow.map(({ used, allowed }) => [used, allowed]));
      expect(shadow).toEqual(expected);
    }
    expect(logger.warn).not.toHaveBeenCalled();
  });

  test('is taken back in each zone with skipFailedRequests', () => {
    const middleware = rateLimit({ rules: TWO, skipFailedRequests: true, clock: () => 5000 });
    const usedAfter = (url, statusCode) => {
      const req = { method: 'GET', url, headers: {}, ip: '192.0.2.1' };
      const res = Object.assign(new EventEmitter(), { headersSent: true, statusCode });
      middleware(req, res, () => {});
      res.writableEnded = true;
      res.emit('finish');
      return req.rateLimit.used;
    };
    const used = [usedAfter('/a/../b', 500), usedAfter('/a', 200), usedAfter('/b', 200)];
    expect(used).toEqual([1, 1, 1]);
  });
});

test.each([
  ['/a/b', ['/a/b']],
  ['/', ['']],
  ['//a///b//', ['/a/b']],
  ['/%2541', ['/%2541']],
  ['/%41%C3%84', ['/aä']],
  ['/%ff%41', ['/%ffa']],
  ['/100%', ['/100%']],
  ['/.well-known/x..y/...', ['/.well-known/x..y/...']],
  ['/A%2FB', ['/a/b', '/a%2fb']],
  ['/a%2F/b', ['/a/b', '/a%2f/b']],
  ['/a/../b/.', ['/b', '/a/../b/.']],
  ['/a%2Fb/../c', ['/a/c', '/c', '/a%2fb/../c']],
  ['/a\\b/../c', ['/a/c', '/c', '/a\\b/../c']],
  ['/a%5cb/../c', ['/a/c', '/c', '/a\\b/../c']],
  ['/a//../b', ['/b', '/a/b', '/a/../b']],
  ['/../../a', ['/a', '/../../a']],
  ['/a/%2E%2e', ['', '/a/..']],
  ['/./%2541%252f', ['/%2541%252f', '/./%2541%252f']],
])('the forms of %j are %j, of which the last is its normal form', (target, forms) => {
  expect(formsOf(target)).toEqual(forms);
  expect(normalForm(target)).toBe(forms.at(-1));
});

test('escapes of every UTF-8 character are unescaped, and nothing else is', () => {
  const invalid = ['%80', '%c0%80', '%e0%80%80', '%ed%a0%80', '%f4%90%80%80', '%ff', '%c3', '%'];
  const char = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).map(encodeURIComponent),
    fc.constantFrom(...invalid, '%2F', '%25', 'a', '/'),
  );
  const isLeft = (escaped) => invalid.includes(escaped) || /^%(?:2f|25)$/i.test(escaped);
  const expected = (escaped) => (isLeft(escaped) ? escaped : decodeURIComponent(escaped));
  const property = fc.property(fc.array(char), (chars) => {
    const joined = (parts) => parts.map((part) => `${part}-`).join('');
    expect(unescapePath(joined(chars))).toBe(joined(chars.map(expected)));
  });
  fc.assert(property, { numRuns: casesOf(1000), seed: 7 });
});

// Work that grows with the square of the length would run into Jest's time limit.
slow.test('the work for a hostile path grows with its length', () => {
  const parts = '/%ff %ff %61 /%2e /.. /a/.. \\ %5c %2f // % /%2e%2F\\a%ff //a@b //a /'.split(' ');
  for (const part of parts) {
    const long = `/x${part.repeat(400_000 / part.length)}`;
    for (const form of formsOf(long)) expect(form.length).toBeLessThanOrEqual(long.length);
    expect(normalForm(pathOf({ url: `${long}#` })).length).toBeLessThanOrEqual(long.length + 1);
  }
});
