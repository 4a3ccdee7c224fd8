// rollgate/fetch: decisions about a Request, the headers for its Response, and the responses of refusals.
'use strict';

const RateLimiter = require('../..');
const { rateLimitFetch } = require('../../lib/adapters/fetch');
const { FAILING, inTurn, newLogger, useHandMovedClock } = require('./apps');

const time = useHandMovedClock();
const URL = 'http://host.test/api/things?page=2';
const FROM = { ip: '192.0.2.1' };

const limitWith = (options) => rateLimitFetch({ limit: 2, clock: time.clock, ...options });
const requestWith = (headers, init) => new Request(URL, { headers, ...init });
const ask = (limit, headers, info = FROM) => limit(requestWith(headers), info);
const allowedOf = async (...asked) => (await Promise.all(asked)).map(({ allowed }) => allowed);

describe('the result', () => {
  test('of an allowed request has decision and headers, and no response', async () => {
    const { headers, decision, ...others } = await ask(limitWith({ standardHeaders: 'draft-7' }));
    expect(decision).toMatchObject({ allowed: true, actionsLeft: 1, resetIn: 60_000 });
    expect(Object.fromEntries(headers)).toMatchObject({
      'ratelimit-policy': '2;w=60',
      ratelimit: 'limit=2, remaining=1, reset=60',
      'x-ratelimit-remaining': '1',
    });
    expect(others).toMatchObject({ allowed: true, response: undefined, shadow: undefined });
  });

  test.each([
    [{}, 'text/plain; charset=utf-8', 'Too many requests, please try again later.'],
    [{ message: { error: 1 } }, 'application/json; charset=utf-8', '{"error":1}'],
    [
      { message: async (request, { ip }) => `${request.method} ${ip}` },
      'text/plain; charset=utf-8',
      'GET 192.0.2.1',
    ],
    [{ message: Uint8Array.of(65, 66) }, 'application/octet-stream', 'AB'],
    [{ problemDetails: true }, 'application/problem+json', expect.stringMatching(/2-in-1min/)],
  ])('of a refusal has the response, by %p', async (options, type, body) => {
    const limit = limitWith({ ...options, statusCode: 420 });
    const [, , { allowed, headers, response }] = await inTurn([1, 2, 3], () => ask(limit));
    expect([allowed, response.status]).toEqual([false, 420]);
    expect(response.headers.get('content-type')).toBe(type);
    expect(response.headers.get('retry-after')).toBe('60');
    expect(await response.text()).toEqual(body);
    const names = ['x-ratelimit-remaining', 'content-type', 'content-length'];
    expect(names.map((name) => headers.get(name))).toEqual(['0', null, null]);
  });

  test('settles what the request cost', async () => {
    const limit = limitWith({ limit: 100, cost: 60 });
    const { settle } = await ask(limit);
    expect((await ask(limit)).allowed).toBe(false);
    expect([settle(40), settle(40)]).toEqual([true, false]);
    expect((await ask(limit)).decision.limits[0].used).toBe(100);
  });

  test('of a request that was not asked about has no decision', async () => {
    const skipped = await ask(limitWith({ skip: () => true }));
    const unmatched = await ask(rateLimitFetch({ rules: [{ path: '/other', limit: 1 }] }));
    for (const result of [skipped, unmatched]) {
      expect(result).toMatchObject({ allowed: true, decision: null, response: undefined });
      expect(result.settle(5)).toBe(false);
    }
  });
});

describe('functions', () => {
  test('get the request and the info of the call', async () => {
    const seen = {};
    const see = (name, value) => (request, info) => {
      seen[name] = [request.url, info.ip, info.user];
      return value;
    };
    const values = {
      keyGenerator: 'k',
      skip: false,
      cost: 1,
      limit: 0,
      identifier: 'i',
      message: 'm',
    };
    const options = { standardHeaders: 'draft-8' };
    for (const [name, value] of Object.entries(values)) options[name] = see(name, value);
    await ask(rateLimitFetch(options), {}, { ...FROM, user: 'ada' });
    expect(Object.keys(seen).sort()).toEqual(Object.keys(values).sort());
    for (const args of Object.values(seen)) expect(args).toEqual([URL, FROM.ip, 'ada']);
  });

  test('authenticate names the caller, and rules decide by path and group', async () => {
    const limit = rateLimitFetch({
      authenticate: (request) => ({ id: request.headers.get('x-id'), group: 'staff' }),
      rules: [{ path: '/api', method: 'GET', group: 'staff', limit: 1 }],
    });
    const asked = ['ada', 'ada', 'bob'].map((id) => ask(limit, { 'x-id': id }));
    const post = limit(requestWith({ 'x-id': 'ada' }, { method: 'POST' }), FROM);
    expect(await allowedOf(...asked, post)).toEqual([true, false, true, true]);
  });

  test('handler gives the response of a refusal', async () => {
    const handler = jest.fn(async (request, info, { timeLeft }) => {
      return new Response(`${request.method} ${info.ip} ${timeLeft}`, { status: 503 });
    });
    const { allowed, response } = await ask(limitWith({ limit: 0, handler }));
    expect(handler.mock.calls[0][3].get('retry-after')).toBe('60');
    const text = await response.text();
    expect([allowed, response.status, text]).toEqual([false, 503, 'GET 192.0.2.1 60000']);
  });

  test('onAuthError gives a response', async () => {
    const authenticate = () => Promise.reject(new Error('no token'));
    const onAuthError = (error) => new Response(error.message, { status: 401 });
    const { allowed, response } = await ask(limitWith({ authenticate, onAuthError }));
    expect([allowed, response.status, await response.text()]).toEqual([false, 401, 'no token']);
    await expect(ask(limitWith({ authenticate }))).rejects.toThrow('no token');
  });

  // A refused request would pass.
  test.each([undefined, {}, new Request(URL)])(
    'a handler that gives %p is an error',
    async (given) => {
      const answered = ask(limitWith({ limit: 0, handler: () => given }));
      await expect(answered).rejects.toMatchObject({
        code: 'ERR_ROLLGATE_OPTION',
        message: expect.stringMatching(
          /^option 'handler': expected the function to give a Response/,
        ),
      });
    },
  );

  test.each(FAILING(new Error('boom')))('that %s make the call reject', async (_what, fails) => {
    for (const options of [{ keyGenerator: fails }, { limit: 0, handler: fails }]) {
      await expect(ask(limitWith(options))).rejects.toThrow('boom');
    }
  });
});

const CHAIN = { 'x-forwarded-for': '192.0.2.66, 198.51.100.7' };
const CLIENT_KEY = (_request, _info, clientKey) => clientKey();
test.each([
  [{}, CHAIN, FROM, '192.0.2.1', ['ROLLGATE_X_FORWARDED_FOR']],
  [{}, { forwarded: 'for=192.0.2.66' }, FROM, '192.0.2.1', ['ROLLGATE_FORWARDED']],
  [{ trustProxy: 1, keyGenerator: CLIENT_KEY }, CHAIN, FROM, '198.51.100.7', []],
  [{}, {}, {}, undefined, ['ROLLGATE_NO_CLIENT_IP']],
  [{}, {}, { ip: '2001:db8::1' }, '2001:db8::/56', []],
])('with %j and the headers %j from %j is the key %s, with %j', async (options, ...row) => {
  const [headers, info, key, codes] = row;
  const logger = newLogger();
  const limiter = RateLimiter({ interval: 1000, maxInInterval: 5 });
  const attempt = jest.fn((id) => limiter.attempt(id));
  await ask(rateLimitFetch({ logger, ...options, limiter: { attempt } }), headers, info);
  expect(attempt.mock.calls).toEqual([[key]]);
  expect(logger.warn.mock.calls.map(([{ code }]) => code)).toEqual(codes);
});

test('a request whose body was read is limited like any other, and no body is read', async () => {
  const limit = limitWith({ limit: 1 });
  const read = new Request(URL, { method: 'POST', body: 'x' });
  await read.text();
  const fresh = new Request(URL, { method: 'POST', body: 'x' });
  expect(await allowedOf(limit(read, FROM), limit(fresh, FROM))).toEqual([true, false]);
  expect(fresh.bodyUsed).toBe(false);
});

test('getKey and resetKey know the counts', async () => {
  const limit = limitWith();
  await ask(limit);
  expect(await limit.getKey(FROM.ip)).toMatchObject({ totalHits: 1 });
  await limit.resetKey(FROM.ip);
  expect(await limit.getKey(FROM.ip)).toBeUndefined();
});

test.each([
  [{ skipFailedRequests: true }, /'skipFailedRequests': not possible .* call settle\(0\)/],
  [{ requestWasSuccessful: () => true }, /'requestWasSuccessful'/],
  [{ requestPropertyName: 'x' }, /'requestPropertyName'/],
  [{ statusCode: 204 }, /'statusCode'/],
  [{ statusCode: 600 }, /'statusCode'/],
  [null, /'options'/],
])('%p are refused', (options, message) => {
  const error = { code: 'ERR_ROLLGATE_OPTION', message: expect.stringMatching(message) };
  expect(() => rateLimitFetch(options)).toThrow(expect.objectContaining(error));
});

test.each([
  [undefined, FROM, 'expected a Request, got undefined'],
  [{ url: URL }, FROM, 'expected a Request, got an object'],
  [new Request(URL), '192.0.2.1', 'expected an object such as { ip }, got "192.0.2.1" (string)'],
  [new Request(URL), null, 'expected an object such as { ip }, got null'],
])('a call with %p and %p is an error', async (request, info, message) => {
  await expect(limitWith()(request, info)).rejects.toMatchObject({
    code: 'ERR_ROLLGATE_OPTION',
    message: `rateLimitFetch: ${message}`,
  });
});
