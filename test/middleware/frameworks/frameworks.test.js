// The middleware in each framework it is for: real servers, real requests.
'use strict';

const { EventEmitter, once } = require('node:events');
const http = require('node:http');
const { rateLimit } = require('../../..');
const { waitUntil } = require('../../support/wait-until');
const { FRAMEWORKS, serve } = require('./apps');

const HOUR_MS = 3_600_000;
// Long ago, for resets that are the same whenever the test runs; and it stands still.
const clock = () => 5 * HOUR_MS;

const open = [];
afterEach(() => Promise.all(open.splice(0).map((server) => server.close())));

describe.each(Object.keys(FRAMEWORKS))('%s', (framework) => {
  async function start(options, arrivals = new EventEmitter()) {
    const limits = options.limiter ? {} : { windowMs: HOUR_MS, limit: 2, clock };
    const middleware = rateLimit({ ...limits, ...options });
    const server = await serve(framework, middleware, arrivals);
    open.push(server);
    return { middleware, url: server.url };
  }

  async function get(url) {
    const response = await fetch(url);
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  const usedBy = async (middleware, key) => (await middleware.getKey(key))?.totalHits ?? 0;

  test('requests pass with headers until the limit, and are told what is left', async () => {
    const { url } = await start({ standardHeaders: 'draft-7' });
    const { status, headers, text } = await get(url);
    expect(status).toBe(200);
    expect(headers.get('x-ratelimit-limit')).toBe('2');
    expect(headers.get('x-ratelimit-remaining')).toBe('1');
    expect(headers.get('ratelimit')).toBe('limit=2, remaining=1, reset=3600');
    expect(headers.get('ratelimit-policy')).toBe('2;w=3600');
    expect(headers.get('retry-after')).toBeNull();
    expect(JSON.parse(text).seen).toEqual({
      limit: 2,
      used: 1,
      remaining: 1,
      resetTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      key: '127.0.0.1',
    });
  });

  test('the request above the limit is answered 429 and never reaches the application', async () => {
    const { url } = await start({ standardHeaders: 'draft-8' });
    const answers = [await get(url), await get(url), await get(url)];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    const { headers, text } = answers[2];
    expect(text).toBe('Too many requests, please try again later.');
    expect(headers.get('content-type')).toMatch(/^text\/(html|plain); charset=utf-8$/);
    expect(headers.get('retry-after')).toBe('3600');
    expect(headers.get('ratelimit')).toBe('"2-in-1hr"; r=0; t=3600');
    expect(headers.get('x-ratelimit-remaining')).toBe('0');
  });

  test('a message that is an object is answered as JSON, problem details as such', async () => {
    const { url } = await start({ limit: 0, message: { error: 'slow down' } });
    const json = await get(url);
    expect([json.status, JSON.parse(json.text)]).toEqual([429, { error: 'slow down' }]);
    expect(json.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const problem = await get((await start({ limit: 0, problemDetails: true })).url);
    expect(problem.headers.get('content-type')).toBe('application/problem+json');
    expect(JSON.parse(problem.text)['violated-policies']).toEqual(['0-in-1hr']);
  });

  test.each([
    ['throws', () => fail('the store is down')],
    ['rejects', async () => fail('the store is down')],
  ])('a store that %s reaches the error handling of the framework', async (_what, attempt) => {
    const { url } = await start({ limiter: { attempt } });
    const { status, text } = await get(url);
    expect([status, JSON.parse(text)]).toEqual([503, { handled: 'the store is down' }]);
  });

  test('asynchronous functions of the user are awaited', async () => {
    const { url } = await start({
      limit: 1,
      keyGenerator: async (req) => req.headers['x-user'],
      skip: async (req) => req.headers['x-user'] === 'admin',
    });
    const ask = async (user) => (await fetch(url, { headers: { 'x-user': user } })).status;
    expect([await ask('ada'), await ask('ada'), await ask('bob')]).toEqual([200, 429, 200]);
    expect([await ask('admin'), await ask('admin')]).toEqual([200, 200]);
  });

  test('failed requests and clients that hang up are taken back with skipFailedRequests', async () => {
    const arrivals = new EventEmitter();
    const { middleware, url } = await start({ skipFailedRequests: true }, arrivals);
    expect((await get(`${url}/missing`)).status).toBe(404);
    await waitUntil('the failed request is taken back', async () => {
      return (await usedBy(middleware, '127.0.0.1')) === 0;
    });

    const arrived = once(arrivals, 'arrived');
    const client = http.get(`${url}/never`);
    client.on('error', () => {});
    await arrived;
    expect(await usedBy(middleware, '127.0.0.1')).toBe(1);
    client.destroy();
    await waitUntil('the abandoned request is taken back', async () => {
      return (await usedBy(middleware, '127.0.0.1')) === 0;
    });
    expect((await get(url)).status).toBe(200);
    expect(await usedBy(middleware, '127.0.0.1')).toBe(1);
  });
});

function fail(message) {
  throw new Error(message);
}
