// The classes of rolling-rate-limiter 0.2 to 0.4.
'use strict';

const { optionTypeError, typeError } = require('./errors');
const RateLimiter = require('./limiter');
const { CHOICES } = require('./store-options');

/** A limiter in memory; `new InMemoryRateLimiter({ interval, maxInInterval, minDifference })`. */
class InMemoryRateLimiter extends RateLimiter {
  constructor(options) {
    super(options);
    const other = CHOICES.find((name) => options[name] !== undefined);
    if (other === undefined) return;
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `option '${other}': not allowed for a limiter in memory`,
    );
  }
}

/** A limiter on Redis; `detectedClientType` tells through what. */
class RedisRateLimiter extends RateLimiter {
  constructor(options) {
    super(withRedis(options));
  }

  /** 'ioredis' or 'node-redis'; null for what is no client that is known. */
  static determineRedisClientType(client) {
    return require('./redis/clients').clientKindOf(client)?.type ?? null;
  }
}

/** A limiter on Redis through a client of node-redis, and no other. */
class NodeRedisRateLimiter extends RedisRateLimiter {
  constructor(options) {
    super(options);
    assertType(this, 'node-redis');
  }
}

/** A limiter on Redis through a client of ioredis, and no other. */
class IORedisRateLimiter extends RedisRateLimiter {
  constructor(options) {
    super(options);
    assertType(this, 'ioredis');
  }
}

/** What is no object, RateLimiter refuses itself. */
function withRedis(options) {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) {
    const { client, redis } = options;
    if (client === undefined && redis === undefined) {
      throw optionTypeError('client', 'a Redis client (or redis: a URL or options)', undefined);
    }
  }
  return options;
}

function assertType({ detectedClientType }, expected) {
  if (detectedClientType === expected) return;
  const message = `option 'client': expected a client of ${expected}, got ${detectedClientType}`;
  throw typeError('ERR_ROLLGATE_OPTION', message);
}

module.exports = {
  InMemoryRateLimiter,
  IORedisRateLimiter,
  NodeRedisRateLimiter,
  RedisRateLimiter,
};
