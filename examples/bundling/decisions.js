// Two attempts on a limiter in memory and two on one on Redis: each allows the first and refuses the second.
'use strict';

const Redis = require('ioredis');
const RateLimiter = require('rollgate');

const ONCE = { interval: 60_000, maxInInterval: 1 };

module.exports = async function decisions() {
  const inMemory = RateLimiter(ONCE);
  const client = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379');
  const onRedis = RateLimiter({ redis: client, ...ONCE });
  const waits = {
    memory: [inMemory('somebody'), inMemory('somebody')],
    redis: [await onRedis('somebody'), await onRedis('somebody')],
  };
  client.disconnect();
  return waits;
};
