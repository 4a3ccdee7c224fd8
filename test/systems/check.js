// Limiters of each store in the system that runs this: node test/systems/check.js
'use strict';

const assert = require('node:assert/strict');
const RateLimiter = require('../..');
const { pemOf, startRedis, startRedisWithTls } = require('../support/redis-server');

const LIMITS = { interval: 600_000, maxInInterval: 2 };
const FAILED_HANDSHAKES = 50;

async function assertLimits(options) {
  const limiter = RateLimiter({ ...LIMITS, ...options });
  const waits = [];
  for (let i = 0; i < 3; i++) waits.push(await limiter('a'));
  await limiter.close();
  const refused = waits.map((wait) => wait > 0);
  assert.deepEqual(refused, [false, false, true], `${Object.keys(options)}: ${waits}`);
}

/** A shared limiter of the default size, in a /dev/shm as small as a container's. */
async function checkShared() {
  const name = `systems-check-${process.pid}`;
  try {
    await assertLimits({ shared: name });
  } finally {
    RateLimiter.unlinkShared(name);
  }
}

async function checkRedis() {
  const server = await startRedis();
  await assertLimits({ redis: server.url, namespace: 'check' });
  await server.stop();
}

/** Each handshake that fails must be an error. */
async function checkTls() {
  const { server, url } = await startRedisWithTls();
  const secure = (tls) => ({ redis: { url, tls }, namespace: 'check-tls' });
  await assertLimits(secure({ ca: pemOf('ca.pem') }));
  for (let i = 0; i < FAILED_HANDSHAKES; i++) {
    const limiter = RateLimiter({ ...LIMITS, ...secure({}) }); // of an unknown authority
    await assert.rejects(limiter('a'), { code: 'ERR_ROLLGATE_REDIS_UNREACHABLE' });
    await limiter.close();
  }
  await server.stop();
}

async function main() {
  await assertLimits({});
  await checkShared();
  await checkRedis();
  await checkTls();
  console.log('memory, shared, native Redis, TLS');
}

main();
