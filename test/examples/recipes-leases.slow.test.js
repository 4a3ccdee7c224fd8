// The recipes for leases do what docs/recipes.md promises: limits are exact over processes, permits come back.
'use strict';

const http = require('node:http');
const { text } = require('node:stream/consumers');
const RateLimiter = require('../..');
const { load } = require('../support/page-programs');
const { startRedis } = require('../support/redis-server');
const { runProgram, serve, stop } = require('../support/run-program');
const { askAt, converse, having } = require('./conversation');
const { codeOf, listen, printed, times } = require('./recipes');

let redis;
beforeEach(async () => {
  redis = await startRedis();
});

/** What Redis counts for an id now, permits that are out included. */
async function usedOf(namespace, id, maxInInterval) {
  const options = { interval: 60_000, maxInInterval, countBlocked: false };
  const limiter = RateLimiter({ redis: redis.url, namespace, ...options });
  const { used } = await limiter.usage(id);
  await limiter.close();
  return used;
}

describe('a hot tenant', () => {
  const PRINTED = /^(\d+) stored, (\d+) deferred, (\d+) % decided here\n$/;
  const OF_OTHERS = 400;

  async function work() {
    // In an interval in which both workers have ended: all that is stored has to fit into one limit.
    const code = codeOf('A hot tenant', ['interval: 10_000', 'interval: 60_000']);
    const ended = await runProgram(code, { env: { REDIS_URL: redis.url } });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    return PRINTED.exec(ended.stdout).slice(1).map(Number);
  }

  test('stores all of one worker, and decides most of it there', async () => {
    const [stored, deferred, share] = await work();
    expect([stored, deferred]).toEqual([4000, 0]);
    expect(share).toBeGreaterThan(50);
    expect(printed('decided here')).toMatch(PRINTED);
    expect(await usedOf('events', 'acme', 6000)).toBe(4000 - OF_OTHERS);
    expect(await usedOf('events', 'tenant-10', 6000)).toBe(20);
  });

  test('two workers together store what one limit allows, and no more', async () => {
    const [[one], [other]] = await Promise.all([work(), work()]);
    const stored = one + other - 2 * OF_OTHERS;
    expect(stored).toBeLessThanOrEqual(6000);
    expect(stored).toBeGreaterThan(5900);
    expect(await usedOf('events', 'acme', 6000)).toBe(stored);
  });
});

describe('an API gateway', () => {
  const gateways = [];
  afterEach(() =>
    Promise.all(
      gateways
        .splice(0)
        .flatMap(({ customers, upstream }) => [customers.close(), upstream.close()]),
    ),
  );

  /** An upstream that counts, and says what it got. */
  async function startUpstream() {
    const seen = { count: 0 };
    seen.server = http.createServer(async (req, res) => {
      seen.count += 1;
      res
        .writeHead(201, { 'x-from': 'upstream' })
        .end(`${req.method} ${req.url} ${await text(req)}`);
    });
    seen.url = await listen(seen.server);
    return seen;
  }

  /** In a minute, so that all requests of a test are in one interval. */
  const codeFor = (upstream, ...exchanges) =>
    codeOf(
      'An API gateway',
      ['interval: 1000', 'interval: 60_000'],
      ['http://127.0.0.1:8080', upstream.url],
      ...exchanges,
    );

  async function startGateway(upstream) {
    const process = { env: { REDIS_URL: redis.url }, once() {} };
    const gateway = load(codeFor(upstream), 'server, customers, upstream', { process });
    gateways.push(gateway);
    return askAt(await listen(gateway.server));
  }

  const ADA = having({ 'x-api-key': 'key-of-ada' }, 'orders?x=1');
  const BOB = having({ 'x-api-key': 'key-of-bob' }, 'orders?x=1');
  const atOnce = (ask, count) => Promise.all(times(count, ADA).map((request) => ask(...request)));

  test('passes requests and answers on, whole; an upstream that is gone is 502', async () => {
    const upstream = await startUpstream();
    const ask = await startGateway(upstream);
    const posted = [ADA[0], { ...ADA[1], method: 'POST', body: 'a body' }];
    await converse(ask, [
      [1, posted, 201, { text: 'POST /orders?x=1 a body', 'x-from': 'upstream' }],
      [1, having({ 'x-api-key': 'made up' }, 'orders'), 401],
      () => {
        upstream.server.close();
        upstream.server.closeAllConnections();
      },
      [1, ADA, 502],
    ]);
  });

  test('two gateways together let a customer have the limit, and no more', async () => {
    const upstream = await startUpstream();
    const asks = [await startGateway(upstream), await startGateway(upstream)];
    const refused = [];
    for (let i = 0; i < 40; i++) {
      const answers = await atOnce(asks[i % 2], 20);
      refused.push(...answers.filter(({ status }) => status !== 201));
    }
    expect(refused.filter(({ status }) => status !== 429)).toEqual([]);
    expect(refused.filter(({ headers }) => !/^\d+$/.test(headers.get('retry-after')))).toEqual([]);
    expect(upstream.count).toBe(800 - refused.length);
    expect(upstream.count).toBeLessThanOrEqual(500);
    expect(upstream.count).toBeGreaterThan(480);
    await converse(asks[0], [[1, BOB, 201]]);
  });

  test('on SIGTERM it finishes, gives its permits back and ends', async () => {
    const listening = "server.listen(0, '127.0.0.1', () => console.log(server.address().port));";
    const code = codeFor(await startUpstream(), ["server.listen(3000, '127.0.0.1');", listening]);
    const gateway = await serve(['--eval', code], { REDIS_URL: redis.url }, /^\d+$/m);
    const ask = askAt(`http://127.0.0.1:${gateway.found}`);
    for (let i = 0; i < 30; i++) {
      const answers = await atOnce(ask, 10);
      expect(answers.map(({ status }) => status)).toEqual(times(10, 201));
    }
    expect(await stop(gateway)).toEqual({ code: 0, signal: null });
    expect(await usedOf('gateway-customers', 'ada', 500)).toBe(300);
    expect(await usedOf('gateway-upstream', '', 2000)).toBe(300);
  });
});
