// The limiters on Redis and what they are held against: one function each, all taking { url, interval, maxInInterval }.
//
// What they give, or promise, is as in subjects.js, and `keyOf(id)` is where the server keeps what it
// knows of an id. Each has one connection, and clients are used with their defaults.

const NAMESPACE = 'b';

/** `url` may be a list of arguments for ioredis. */
function openIoredis({ url }) {
  const Redis = require('ioredis');
  return new Redis(...[url].flat());
}

async function openNodeRedis({ url }) {
  const { createClient } = require('redis');
  const client = createClient({ url });
  client.on('error', () => {}); // it is the calls that fail
  await client.connect();
  return client;
}

const keyOfRollgate = (id) => `${NAMESPACE}{${id}}`;

function rollgateOver(redis, { interval, maxInInterval, countBlocked }) {
  const { RateLimiter } = require('../../lib');
  return {
    calling: 'await',
    check: RateLimiter({ interval, maxInInterval, countBlocked, redis, namespace: NAMESPACE }),
    isRefused: (timeLeft) => timeLeft > 0,
    keyOf: keyOfRollgate,
  };
}

const rollgate = (options) => rollgateOver(options.url, options);
const rollgateUncounted = (options) => rollgate({ ...options, countBlocked: false });
const rollgateIoredis = (options) => rollgateOver(openIoredis(options), options);
const rollgateNodeRedis = async (options) => rollgateOver(await openNodeRedis(options), options);

/** No limiter: rollgate's script, called as the native client calls it. */
async function scriptIoredis({ url, interval, maxInInterval }) {
  const {
    callNumbers,
    groupHead,
    policyNumbers,
    runWords,
  } = require('../../lib/stores/redis/script');
  const { OPERATIONS } = require('../../lib/stores/remote/operations');
  const SCRIPTS = require('../../lib/stores/redis/scripts');
  const { source, sha1 } = SCRIPTS['sliding-window-log'];
  const client = openIoredis({ url });
  await client.script('LOAD', source);
  const windows = [{ interval, maxInInterval }];
  const policy = policyNumbers({ windows, minDifference: 0, countBlocked: true, blockFor: [] });
  const question = {
    head: groupHead(callNumbers(OPERATIONS.ATTEMPT, false), policy),
    isApart: false,
  };
  const [, , ...args] = runWords([{ question, keys: ['key'], amounts: [] }]);
  return {
    calling: 'await',
    check: (id) => client.evalsha(sha1, '1', keyOfRollgate(id), ...args),
    isRefused: ([timeLeft]) => timeLeft > 0,
    keyOf: keyOfRollgate,
  };
}

function rollingRateLimiter(className, client, { interval, maxInInterval }) {
  const Limiter = require('rolling-rate-limiter')[className];
  const limiter = new Limiter({ client, namespace: NAMESPACE, interval, maxInInterval });
  return {
    calling: 'await',
    check: (id) => limiter.limit(id),
    isRefused: (blocked) => blocked,
    keyOf: (id) => limiter.makeKey(id),
  };
}

const rollingRateLimiterIoredis = (options) =>
  rollingRateLimiter('IORedisRateLimiter', openIoredis(options), options);

const rollingRateLimiterNodeRedis = async (options) =>
  rollingRateLimiter('NodeRedisRateLimiter', await openNodeRedis(options), options);

function rateLimiterFlexible(client, { interval, maxInInterval }) {
  const { RateLimiterRedis } = require('rate-limiter-flexible');
  const limiter = new RateLimiterRedis({
    ...client,
    keyPrefix: NAMESPACE,
    points: maxInInterval,
    duration: interval / 1000,
  });
  return {
    calling: 'rejects',
    check: (id) => limiter.consume(id),
    keyOf: (id) => limiter.getKey(id),
  };
}

const rateLimiterFlexibleIoredis = (options) =>
  rateLimiterFlexible({ storeClient: openIoredis(options) }, options);

async function rateLimiterFlexibleNodeRedis(options) {
  const client = { storeClient: await openNodeRedis(options), useRedisPackage: true };
  return rateLimiterFlexible(client, options);
}

async function rateLimitRedis(sendCommand, { interval, maxInInterval }) {
  const { RedisStore } = require('rate-limit-redis');
  const store = new RedisStore({ sendCommand, prefix: NAMESPACE });
  await store.init({ windowMs: interval });
  return {
    calling: 'await',
    check: (id) => store.increment(id),
    isRefused: ({ totalHits }) => totalHits > maxInInterval,
    keyOf: (id) => store.prefixKey(id),
  };
}

function rateLimitRedisIoredis(options) {
  const client = openIoredis(options);
  return rateLimitRedis((...command) => client.call(...command), options);
}

async function rateLimitRedisNodeRedis(options) {
  const client = await openNodeRedis(options);
  return rateLimitRedis((...command) => client.sendCommand(command), options);
}

const redisSubjects = {
  rollgate: { create: rollgate, label: 'rollgate' },
  rollgateUncounted: {
    create: rollgateUncounted,
    label: 'rollgate, refusals not counted',
  },
  rollgateIoredis: { create: rollgateIoredis, label: 'rollgate over ioredis' },
  rollgateNodeRedis: { create: rollgateNodeRedis, label: 'rollgate over node-redis' },
  rollingRateLimiterIoredis: {
    create: rollingRateLimiterIoredis,
    label: 'rolling-rate-limiter 0.4 on ioredis',
    isPeer: true,
  },
  rollingRateLimiterNodeRedis: {
    create: rollingRateLimiterNodeRedis,
    label: 'rolling-rate-limiter 0.4 on node-redis',
    isPeer: true,
  },
  rateLimiterFlexibleIoredis: {
    create: rateLimiterFlexibleIoredis,
    label: 'rate-limiter-flexible on ioredis',
    isPeer: true,
  },
  rateLimiterFlexibleNodeRedis: {
    create: rateLimiterFlexibleNodeRedis,
    label: 'rate-limiter-flexible on node-redis',
    isPeer: true,
  },
  rateLimitRedisIoredis: {
    create: rateLimitRedisIoredis,
    label: 'rate-limit-redis on ioredis',
    isPeer: true,
  },
  rateLimitRedisNodeRedis: {
    create: rateLimitRedisNodeRedis,
    label: 'rate-limit-redis on node-redis',
    isPeer: true,
  },
  scriptIoredis: { create: scriptIoredis, label: "ioredis alone, running rollgate's script" },
};

module.exports = { openIoredis, openNodeRedis, redisSubjects };
