// Redis, at $REDIS_URL, through the client that the argument names: native, ioredis or node-redis.
import assert from 'node:assert/strict';
import RateLimiter from 'rollgate';

const url = process.env.REDIS_URL;
const kind = process.argv[2];
const options = { interval: 3_600_000, maxInInterval: 5, countBlocked: false };

async function connect() {
  if (kind === 'ioredis') {
    const { Redis } = await import('ioredis');
    const client = new Redis(url);
    return { redis: client, end: () => client.quit() };
  }
  if (kind === 'node-redis') {
    const { createClient } = await import('redis');
    const client = await createClient({ url }).connect();
    return { redis: client, end: () => client.close() };
  }
  return { redis: url, end() {} };
}

async function main() {
  const { redis, end } = await connect();
  for (const algorithm of [
    'sliding-window-log',
    'sliding-window-counter',
    'fixed-window',
    'gcra',
  ]) {
    const namespace = `${kind}-${process.pid}-${algorithm}`;
    const limiter = RateLimiter({ ...options, redis, namespace, algorithm });
    const calls = Array.from({ length: 10 }, () => limiter('ada'));
    const timesLeft = await Promise.all(calls);
    assert.equal(timesLeft.filter((timeLeft) => timeLeft === 0).length, 5, algorithm);
    const many = await limiter.attemptMany(['ada', 'bob', 'eve']);
    assert.deepEqual(
      many.map(({ allowed }) => allowed),
      [false, true, true],
      algorithm,
    );
    assert.equal(await limiter.refund(many[1]), true);
    await limiter.clear('ada');
    assert.equal(await limiter('ada'), 0, algorithm);
    await limiter.clearAll();
  }
  await end();
}

/** Bun and Deno have no libuv for addons, which the native client needs. */
function assertRefused() {
  const wanted = { code: 'ERR_ROLLGATE_UNSUPPORTED', message: /ioredis.*node-redis/s };
  assert.throws(() => RateLimiter({ ...options, redis: url }), wanted);
  assert.throws(() => RateLimiter({ ...options, redis: { url } }), wanted);
  assert.throws(() => RateLimiter({ ...options, redis: { cluster: [url] } }), wanted);
  assert.throws(() => RateLimiter.rateLimit({ redis: url }), wanted);
}

if (kind === 'native' && (process.versions.bun || process.versions.deno)) {
  assertRefused();
  console.log('result: refused, `ERR_ROLLGATE_UNSUPPORTED`');
} else {
  await main();
  console.log('result: works');
}
