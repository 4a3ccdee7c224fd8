// The Fastify plugin: functions get request and reply, and may answer or fail as Fastify's own may; the option hook.
'use strict';

const { waitUntil } = require('../support/outcome');
const apps = require('./apps');

const { FAILING, HOUR_MS, fetchStatuses: statusesOf, fetchText: get, inTurn, newLogger } = apps;
const { useFastify, withCode } = apps;
const { newApp, ready, rollgate, serve, start } = useFastify();
const LIMITS = { windowMs: HOUR_MS, limit: 2, clock: () => 5 * HOUR_MS }; // it stands still
const as = (id) => ({ headers: { 'x-id': id } });
const from = (address) => ({ headers: { 'x-forwarded-for': address } });
const [, authenticate] = FAILING(new Error('who?'))[0];

describe('functions', () => {
  test("get Fastify's request and reply", async () => {
    const seen = {};
    const see = (name, value) => (request, reply) => {
      seen[name] = [request.routeOptions.url, typeof reply.code, reply.request === request];
      return value;
    };
    const successful = { skipSuccessfulRequests: true, countBlocked: true };
    const ofRequest = { skip: false, keyGenerator: 'k', identifier: 'n', cost: 1 };
    const values = { ...ofRequest, requestWasSuccessful: true };
    const options = { ...successful, limit: see('limit', 1), standardHeaders: 'draft-8' };
    for (const [name, value] of Object.entries(values)) options[name] = see(name, value);
    await get(await start(options));
    await waitUntil('it is asked how the request ended', () => seen.requestWasSuccessful);
    expect(Object.keys(seen).sort()).toEqual([...Object.keys(values), 'limit'].sort());
    for (const args of Object.values(seen)) expect(args).toEqual(['/', 'function', true]);
    const app = newApp({ trustProxy: true });
    const ipv6Subnet = see('ipv6Subnet', 48);
    app.register(rollgate, { ...LIMITS, ipv6Subnet, requestPropertyName: 'quota' });
    app.get('/', (request) => request.quota.key);
    const url = await serve(app);
    expect((await get(url, from('2001:db8:0:142::1'))).text).toBe('2001:db8::/48');
    expect(seen.ipv6Subnet).toEqual(['/', 'function', true]);
    expect((await get(url, from('::ffff:192.0.2.1'))).text).toBe('192.0.2.1');
  });

  test.each(['limit', 'max', 'maxInInterval'])(
    '%s and cost are those of each request, also in rules',
    async (name) => {
      const byHeader = async (request, reply) =>
        reply.request === request && Number(request.headers['x-id']);
      const cost = (request, reply) => (reply.request === request ? 2 : undefined);
      const one = { [name]: byHeader, cost };
      for (const options of [one, { rules: [{ path: '/', ...one }] }]) {
        const url = await start(options);
        expect(await statusesOf(url, 2, as('2'))).toEqual([200, 429]);
        expect(await statusesOf(url, 2, as('4'))).toEqual([200, 429]);
      }
      const rulesOf = (...limits) =>
        limits.map((limit, i) => ({ path: `/${i}`, zone: 'z', [name]: limit }));
      await ready({ rules: rulesOf(byHeader, byHeader) });
      const different = ready({ rules: rulesOf(byHeader, (...args) => byHeader(...args)) });
      await expect(different).rejects.toThrow("'rules[1].zone'");
    },
  );

  test.each([
    ['an async function', async (request) => `not ${request.method}`, 'not GET'],
    ['a function that answers', (_request, reply) => void reply.code(429).send('own'), 'own'],
  ])('message may be %s', async (_what, message, text) => {
    expect(await get(await start({ limit: 0, message }))).toMatchObject({ status: 429, text });
  });

  const BODY = '{"own":true}';
  test.each([
    ['sends', (reply) => void reply.send({ own: true }), 418],
    ['returns what it sends', (reply) => reply.send({ own: true }), 418],
    ['returns it later', async () => ({ own: true }), 418],
    ['lets pass', (_reply, next) => next(), 0],
    ['lets pass and returns it later', async (_reply, next) => next() ?? 'body', 0],
  ])('handler and onAuthError answer if one %s', async (_what, end, code) => {
    const handler = (_request, reply, next) => end(code ? reply.code(code) : reply, next);
    const onAuthError = (_error, ...args) => handler(...args);
    const expected = code ? { status: code, text: BODY } : { status: 200, text: 'passed' };
    for (const options of [
      { limit: 0, handler },
      { authenticate, onAuthError, rules: [{ path: '/', limit: 1 }] },
    ]) {
      expect(await get(await start(options))).toMatchObject(expected);
    }
  });

  const UNAUTHORIZED = Object.assign(new Error('boom'), { statusCode: 401 });
  test.each([
    ...FAILING(new Error('boom')).flatMap(([, fails]) =>
      [
        { keyGenerator: fails },
        { limit: 0, message: fails },
        { limit: 0, handler: fails },
        { authenticate, onAuthError: fails },
      ].map((options) => [options, 503]),
    ),
    [{ authenticate, onAuthError: (...args) => args[3](new Error('boom')) }, 503],
    ...FAILING(UNAUTHORIZED).map(([, fails]) => [{ authenticate: fails }, 401]),
  ])("an error in %p reaches Fastify's error handler once", async (options, expected) => {
    const { status, text } = await get(await start(options));
    expect([status, JSON.parse(text)]).toEqual([expected, { handled: 'boom' }]);
  });
});

describe('the option hook', () => {
  const byAccount = { limit: 1, keyGenerator: ({ body }) => body?.name };
  const logIn = (url, name) =>
    get(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    });
  const statusesFor = (url, ...names) =>
    inTurn(names, async (name) => (await logIn(url, name)).status);

  test.each(['preValidation', 'preHandler'])('%s sees the body', async (hook) => {
    const url = await start({ ...byAccount, hook }, { '/': undefined, '/own': { limit: 2 } });
    expect(await statusesFor(`${url}/`, 'ada', 'ada', 'bob')).toEqual([200, 429, 200]);
    const names = ['ada', 'ada', 'ada', 'bob'];
    expect(await statusesFor(`${url}/own`, ...names)).toEqual([200, 200, 429, 200]);
  });

  test('is onRequest by default, before the body', async () => {
    const logger = newLogger();
    const url = await start({ ...byAccount, hook: undefined, logger });
    expect(await statusesFor(`${url}/`, 'ada', 'bob')).toEqual([200, 429]);
  });

  test.each(['onSend', 5])('%p is refused, and every one in a route', async (hook) => {
    const message = /^Fastify plugin: option 'hook': expected one of/;
    await expect(ready({ hook })).rejects.toThrow(message);
    await expect(ready({}, { hook: 'preHandler' })).rejects.toThrow(/unknown option "hook"/);
  });
});

test('a keyGenerator with a bare request.ip is a warning', async () => {
  const logger = newLogger();
  await start({ keyGenerator: (request) => request.ip, logger });
  expect(logger.warn.mock.calls).toEqual([[withCode('ROLLGATE_BARE_IP_KEY')]]);
});
