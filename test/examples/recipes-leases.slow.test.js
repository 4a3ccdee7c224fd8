// The recipes for leases do what docs/recipes.md promises: limits are exact over processes, permits come back.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const RateLimiter = require('../..');
const { fetchText } = require('../middleware/apps');
const { blocksByHeading, blocksOf, load } = require('../support/page-programs');
const { startRedis } = require('../support/redis-server');
const { runProgram, serve, stop } = require('../support/run-program');

const PAGE = 'docs/recipes.md';
const RECIPES = blocksByHeading(PAGE);
const codeOf = (name) => RECIPES.get(name)[0];
const times = (count, item) => Array(count).fill(item);

let redis;
beforeEach(async () => {
  redis = await startRedis();
});

/** The same program with this for that, which it must have. */
function exchange(code, that, replacement) {
  expect(code).toContain(that);
  return code.replace(that, replacement);
}

/** What Redis counts for an id now, permits that are out included. */
async function usedOf(namespace, id, { interval, maxInInterval }) {
  const options = { interval, maxInInterval, countBlocked: false };
  const limiter = RateLimiter({ redis: redis.url, namespace, ...options });
  const { used } = await limiter.usage(id);
  await limiter.close();
  return used;
}

describe('a hot tenant', () => {
  const PRINTED = /^(\d+) stored, (\d+) deferred, (\d+) % decided here\n$/;
  /** In an interval in which both workers have ended: all that is stored has to fit into one limit. */
  const inAMinute = (code) => exchange(code, 'interval: 10_000', 'interval: 60_000');

  async function work(code) {
    const ended = await runProgram(code, { env: { REDIS_URL: redis.url } });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const [, stored, deferred, share] = PRINTED.exec(ended.stdout);
    return { stored: Number(stored), deferred: Number(deferred), share: Number(share) };
  }

  test('stores all of one worker, and decides most of it there', async () => {
    const found = await work(inAMinute(codeOf('A hot tenant')));
    expect(found).toEqual({ stored: 4000, deferred: 0, share: expect.any(Number) });
    expect(found.share).toBeGreaterThan(50);
    const [example] = blocksOf(PAGE, 'text').filter((text) => text.includes('decided here'));
    expect(example).toMatch(PRINTED);
    const limit = { interval: 60_000, maxInInterval: 6000 };
    expect(await usedOf('events', 'acme', limit)).toBe(3600);
    expect(await usedOf('events', 'tenant-10', limit)).toBe(20);
  });

  test('two workers together store what one limit allows, and no more', async () => {
    const code = inAMinute(codeOf('A hot tenant'));
    const workers = await Promise.all([work(code), work(code)]);
    const stored = workers.reduce((sum, each) => sum + each.stored, 0);
    const ofOthers = 2 * 400;
    expect(stored).toBeLessThanOrEqual(6000 + ofOthers);
    expect(stored).toBeGreaterThan(5900 + ofOthers);
    const limit = { interval: 60_000, maxInInterval: 6000 };
    expect(await usedOf('events', 'acme', limit)).toBe(stored - ofOthers);
  });
});

describe('an API gateway', () => {
  const closers = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function listen(server) {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    closers.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    return `http://127.0.0.1:${server.address().port}`;
  }

  /** An upstream that counts, and says what it got. */
  async function startUpstream() {
    const seen = { count: 0 };
    const server = http.createServer(async (req, res) => {
      seen.count += 1;
      const body = Buffer.concat(await req.toArray());
      res.writeHead(201, { 'x-from': 'upstream' }).end(`${req.method} ${req.url} ${body}`);
    });
    seen.url = await listen(server);
    seen.stop = () => server.close();
    return seen;
  }

  /** In a minute, so that all requests of a test are in one interval. */
  function codeFor(upstream) {
    const inAMinute = exchange(codeOf('An API gateway'), 'interval: 1000', 'interval: 60_000');
    return exchange(inAMinute, 'http://127.0.0.1:8080', upstream.url);
  }

  async function startGateway(upstream) {
    const process = { env: { REDIS_URL: redis.url }, once() {} };
    const gateway = load(codeFor(upstream), 'server, customers, upstream', { process });
    closers.push(() => Promise.all([gateway.customers.close(), gateway.upstream.close()]));
    return { ...gateway, url: await listen(gateway.server) };
  }

  const ask = (gateway, key, init) =>
    fetchText(`${gateway.url}/orders?x=1`, { ...init, headers: { 'x-api-key': key } });

  test('passes requests and answers on, whole', async () => {
    const gateway = await startGateway(await startUpstream());
    const posted = await ask(gateway, 'key-of-ada', { method: 'POST', body: 'a body' });
    expect(posted).toMatchObject({ status: 201, text: 'POST /orders?x=1 a body' });
    expect(posted.headers.get('x-from')).toBe('upstream');
    expect((await ask(gateway, 'made up')).status).toBe(401);
  });

  test('an upstream that is gone is 502', async () => {
    const upstream = await startUpstream();
    upstream.stop();
    expect((await ask(await startGateway(upstream), 'key-of-ada')).status).toBe(502);
  });

  test('two gateways together let a customer have the limit, and no more', async () => {
    const upstream = await startUpstream();
    const gateways = [await startGateway(upstream), await startGateway(upstream)];
    const statuses = [];
    for (let i = 0; i < 40; i++) {
      const gateway = gateways[i % 2];
      const answers = await Promise.all(times(20, 'key-of-ada').map((key) => ask(gateway, key)));
      for (const { status, headers } of answers) {
        statuses.push(status);
        if (status === 429) expect(headers.get('retry-after')).toMatch(/^\d+$/);
      }
    }
    expect(statuses.filter((status) => status !== 201 && status !== 429)).toEqual([]);
    expect(upstream.count).toBeLessThanOrEqual(500);
    expect(upstream.count).toBeGreaterThan(480);
    expect((await ask(gateways[0], 'key-of-bob')).status).toBe(201);
  });

  test('on SIGTERM it finishes, gives its permits back and ends', async () => {
    const upstream = await startUpstream();
    const listening = "server.listen(0, '127.0.0.1', () => console.log(server.address().port));";
    const code = exchange(codeFor(upstream), "server.listen(3000, '127.0.0.1');", listening);
    const gateway = await serve(['--eval', code], { REDIS_URL: redis.url }, /^\d+$/m);
    const url = `http://127.0.0.1:${gateway.found}`;
    for (let i = 0; i < 30; i++) {
      const answers = await Promise.all(times(10, 'key-of-ada').map((key) => ask({ url }, key)));
      expect(answers.map(({ status }) => status)).toEqual(times(10, 201));
    }
    expect(await stop(gateway)).toEqual({ code: 0, signal: null });
    const interval = 60_000;
    expect(await usedOf('gateway-customers', 'ada', { interval, maxInInterval: 500 })).toBe(300);
    expect(await usedOf('gateway-upstream', '', { interval, maxInInterval: 2000 })).toBe(300);
  });
});
