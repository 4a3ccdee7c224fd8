// Middleware over a limiter with leases: requests that are decided here count, and are taken back, as any others.
'use strict';

const http = require('node:http');
const { once } = require('node:events');
const express = require('express');
const RateLimiter = require('../..');
const { redisAt } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { fetchText } = require('./apps');

const LIMIT = { interval: 60_000, maxInInterval: 5000, countBlocked: false };

test('failed requests are taken back, whoever has decided on them', async () => {
  const redis = await startRedis();
  const options = { ...LIMIT, redis: redisAt(redis.url), namespace: 'web' };
  const limiter = RateLimiter({ ...options, lease: 300 });
  const app = express();
  const keyGenerator = () => 'ada';
  app.use(
    RateLimiter.rateLimit({
      limiter,
      keyGenerator,
      skipFailedRequests: true,
      standardHeaders: true,
    }),
  );
  let asked = 0;
  app.get('/', (_req, res) => res.sendStatus(++asked % 5 === 0 ? 500 : 200));
  const server = http.createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}/`;

  const statuses = [];
  while (statuses.length < 400 || limiter.stats().local < 50) {
    for (const { status, headers } of await Promise.all(
      [...'0123456789'].map(() => fetchText(url)),
    )) {
      statuses.push(status);
      const remaining = Number(headers.get('ratelimit-remaining'));
      expect(remaining).toBeGreaterThan(LIMIT.maxInInterval - 2 * statuses.length - 500);
      expect(remaining).toBeLessThan(LIMIT.maxInInterval);
    }
  }
  server.closeIdleConnections();
  await new Promise((resolve) => server.close(resolve));
  await limiter.close();

  const succeeded = statuses.filter((status) => status === 200).length;
  expect(succeeded).toBe(statuses.length - Math.floor(statuses.length / 5));
  const plain = RateLimiter(options);
  expect((await plain.usage('ada')).used).toBe(succeeded);
  await plain.close();
});
