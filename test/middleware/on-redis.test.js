// The middleware over a real Redis server: the same answers, taken back there, and what happens without it.
'use strict';

const { EventEmitter } = require('node:events');
const express = require('express');
const RateLimiter = require('../..');
const { startRedis } = require('../support/redis-server');
const { waitUntil } = require('../support/wait-until');
const { appWith, get, getTimes } = require('./apps');

const { rateLimit } = RateLimiter;

// Far from any boundary: what is told in whole seconds is the same however slow the machine is.
const HOUR_MS = 3_600_000;

describe('over Redis', () => {
  let server;
  const limiters = [];

  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => Promise.all(limiters.map((limiter) => limiter.close())));

  function onRedis(options) {
    const limiter = RateLimiter({
      redis: server.url,
      interval: HOUR_MS,
      maxInInterval: 2,
      clock: () => 5 * HOUR_MS,
      ...options,
    });
    limiters.push(limiter);
    return limiter;
  }

  test.each([true, 'draft-7', 'draft-8', 'draft-10'])(
    'headers with standardHeaders %p are those of a limiter in memory',
    async (standardHeaders) => {
      const play = async (limiter) => {
        const settings = { limiter, standardHeaders, legacyHeaders: false, problemDetails: true };
        const answers = await getTimes(appWith(rateLimit(settings)), 3);
        return answers.map(({ status, text, headers: { date, ...headers } }) => {
          return { status, text, headers };
        });
      };
      const inMemory = RateLimiter({
        interval: HOUR_MS,
        maxInInterval: 2,
        clock: () => 5 * HOUR_MS,
      });
      expect(await play(onRedis())).toEqual(await play(inMemory));
    },
  );

  test('failed requests are taken back, and refusals not counted, where a limiter says so', async () => {
    const limiter = onRedis({ countBlocked: false });
    const app = appWith(rateLimit({ limiter, skipFailedRequests: true }));
    const used = async () => (await limiter.peek('127.0.0.1')).limits[0].used;
    await get(app);
    expect((await get(app, '/missing')).status).toBe(404);
    // One of the two is the peek itself.
    await waitUntil('the failed request is taken back', async () => (await used()) === 2);
    expect((await getTimes(app, 2)).map(({ status }) => status)).toEqual([200, 429]);
  });

  test('a client that leaves while Redis is asked is taken back', async () => {
    const limiter = onRedis({ countBlocked: false });
    const res = Object.assign(new EventEmitter(), { headersSent: true, writableEnded: false });
    const done = rateLimit({ limiter, skipFailedRequests: true })(
      { ip: '192.0.2.1' },
      res,
      () => {},
    );
    res.emit('close');
    await done;
    await waitUntil(
      'the request is taken back',
      async () => (await limiter.peek('192.0.2.1')).limits[0].used === 1,
    );
  });

  test('two middleware of one namespace count a request twice, which is told', async () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const options = { redis: server.url, namespace: 'twice', logger };
    const app = appWith(rateLimit(options));
    const outer = express();
    outer.use(rateLimit(options), app);
    await get(outer);
    expect(logger.warn.mock.calls).toEqual([
      [expect.objectContaining({ code: 'ROLLGATE_DOUBLE_COUNT' })],
    ]);
  });

  test('one namespace on two servers is two places', async () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const options = { redis: server.url, namespace: 'apart', logger };
    const outer = express();
    const { url } = await startRedis();
    outer.use(rateLimit(options), appWith(rateLimit({ ...options, redis: url })));
    expect((await get(outer)).status).toBe(200);
    expect(logger.warn).not.toHaveBeenCalled();
    expect(logger.error).not.toHaveBeenCalled();
  });

  test('without the server requests fail, or pass with passOnStoreError', async () => {
    const gone = await startRedis();
    const limiter = onRedis({ redis: gone.url });
    await gone.stop();
    const { status, body } = await get(appWith(rateLimit({ limiter })));
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_REDIS_UNREACHABLE']);
    const logger = { warn: jest.fn(), error: jest.fn() };
    const app = appWith(rateLimit({ limiter, passOnStoreError: true, logger }));
    expect((await get(app)).status).toBe(200);
    expect(logger.error).toHaveBeenCalledTimes(1);
  });
});
