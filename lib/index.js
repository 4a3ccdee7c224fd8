// The exports of the package: RateLimiter with the other exports as its properties, and its subclasses.
'use strict';

const { optionError, optionTypeError } = require('./base/errors');
const ConcurrencyLimiter = require('./concurrency');
const RateLimiter = require('./limiter');
const { addonPath, setAddonPath } = require('./native/addon');
const { CHOICES } = require('./stores/options');

// Loaded when they are first called: the middleware alone is half of all code.
let middleware;
let ofSlots;
let client;

function rateLimit(...args) {
  middleware ??= require('./adapters/middleware');
  return middleware(...args);
}

function concurrencyLimit(...args) {
  ofSlots ??= require('./adapters/concurrency');
  return ofSlots(...args);
}

function ipKeyGenerator(...args) {
  client ??= require('./adapters/middleware/client');
  return client.ipKeyGenerator(...args);
}

function unlinkShared(shared) {
  return require('./stores/shared/region').unlinkShared(shared);
}

function attemptAll(entries) {
  return require('./limiter/attempt-all').attemptAll(entries);
}

function createRedisConnection(...args) {
  return require('./stores/redis/connection').createRedisConnection(...args);
}

// The classes of rolling-rate-limiter 0.2 to 0.4.

/** A limiter in memory; `new InMemoryRateLimiter({ interval, maxInInterval, minDifference })`. */
class InMemoryRateLimiter extends RateLimiter {
  constructor(options) {
    super(options);
    const other = CHOICES.find((name) => options[name] !== undefined);
    if (other !== undefined) throw optionError(other, 'not allowed for a limiter in memory');
  }
}

/** A limiter on Redis; `detectedClientType` names the client. */
class RedisRateLimiter extends RateLimiter {
  constructor(options) {
    super(withRedis(options));
  }

  /** 'ioredis' or 'node-redis'; null for anything else. */
  static determineRedisClientType(client) {
    return require('./stores/redis/clients').clientKindOf(client)?.type ?? null;
  }
}

/** A limiter on Redis through a client of node-redis. */
class NodeRedisRateLimiter extends RedisRateLimiter {
  constructor(options) {
    super(options);
    assertType(this, 'node-redis');
  }
}

/** A limiter on Redis through a client of ioredis. */
class IORedisRateLimiter extends RedisRateLimiter {
  constructor(options) {
    super(options);
    assertType(this, 'ioredis');
  }
}

/** RateLimiter rejects anything but an object. */
function withRedis(options) {
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) {
    const { client, redis, connection } = options;
    if (client === undefined && redis === undefined && connection === undefined) {
      throw optionTypeError('client', 'a Redis client (or redis: a URL or options)', undefined);
    }
  }
  return options;
}

function assertType({ detectedClientType }, expected) {
  if (detectedClientType === expected) return;
  throw optionError('client', `expected a client of ${expected}, got ${detectedClientType}`);
}

// In this form, so that Node finds the names for import.
module.exports = RateLimiter;
module.exports.RateLimiter = RateLimiter;
module.exports.ConcurrencyLimiter = ConcurrencyLimiter;
module.exports.InMemoryRateLimiter = InMemoryRateLimiter;
module.exports.IORedisRateLimiter = IORedisRateLimiter;
module.exports.NodeRedisRateLimiter = NodeRedisRateLimiter;
module.exports.RedisRateLimiter = RedisRateLimiter;
module.exports.attemptAll = attemptAll;
module.exports.createRedisConnection = createRedisConnection;
module.exports.rateLimit = rateLimit;
module.exports.concurrencyLimit = concurrencyLimit;
module.exports.ipKeyGenerator = ipKeyGenerator;
module.exports.unlinkShared = unlinkShared;
module.exports.addonPath = addonPath;
module.exports.setAddonPath = setAddonPath;
