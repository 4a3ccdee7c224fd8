// Other limiters as subjects of the corpus. `folder` is where npm installed them; see promises.js for what a subject has.
'use strict';

const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { fakedTime } = require('./time');

/** What is installed, and what the page says was run. */
const VERSIONS = {
  '@sinonjs/fake-timers': '15.5.0',
  '@upstash/ratelimit': '2.2.0',
  bottleneck: '2.19.5',
  'express-rate-limit': '8.7.4',
  limiter: '4.1.0',
  'p-queue': '10.0.0',
  'rate-limiter-flexible': '11.4.0',
};

/** A limiter of each id, where one limits a single thing. */
function byId(make) {
  const limiters = new Map();
  return (id) => {
    if (!limiters.has(id)) limiters.set(id, make());
    return limiters.get(id);
  };
}

function expressRateLimit({ rateLimit }) {
  return {
    open({ interval, max }) {
      let limit = max;
      let refused;
      const middleware = rateLimit({
        windowMs: interval,
        limit: () => limit,
        keyGenerator: ({ id }) => id,
        handler: () => {
          refused = true;
        },
        legacyHeaders: false,
        validate: false,
      });
      return {
        async attempt(id) {
          refused = false;
          const request = { id };
          await middleware(request, {}, () => {});
          return { allowed: !refused, wait: request.rateLimit.resetTime.getTime() - Date.now() };
        },
        setMax: (next) => {
          limit = next;
        },
      };
    },
  };
}

function rateLimiterFlexible({ RateLimiterMemory }) {
  return {
    takesCosts: true,
    open({ interval, max }) {
      const limiter = new RateLimiterMemory({ points: max, duration: interval / 1000 });
      return {
        attempt: (id, cost) =>
          limiter.consume(id, cost).then(
            () => ({ allowed: true }),
            ({ msBeforeNext }) => ({ allowed: false, wait: msBeforeNext }),
          ),
        setMax: (next) => {
          limiter.points = next;
        },
      };
    },
  };
}

/**
 * The functions of a client of @upstash/redis that the limiter calls. The flag in the scripts' first lines is Upstash's.
 * The server's clock does not move with `time`, so keys are removed when they would have expired.
 */
function upstashClient(redis, time) {
  const ends = new Map();
  const removeExpired = async (key) => {
    if (ends.get(key) <= time.elapsed()) await redis.del(key);
  };
  const noteEnd = async (key) => {
    const left = await redis.pttl(key); // it is negative unless the script has just set it
    if (left < 0) return;
    ends.set(key, time.elapsed() + Math.round(left / 1000) * 1000); // of whole seconds
    await redis.persist(key);
  };
  return {
    evalsha: () => Promise.reject(new Error('NOSCRIPT')), // the limiter sends the script instead
    async eval(script, keys, args) {
      await Promise.all(keys.map(removeExpired));
      const reply = await redis.eval(
        script.replace(/^#!lua.*\n/, ''),
        keys.length,
        ...keys,
        ...args,
      );
      await Promise.all(keys.map(noteEnd));
      return reply;
    },
    get: (key) => redis.get(key),
    set: (key, value) => redis.set(key, value),
    del: (key) => redis.del(key),
  };
}

let prefixes = 0;

function upstash({ Ratelimit }, redis, limiterOf) {
  return {
    takesCosts: true,
    oneOf: 7,
    open({ interval, max }, time) {
      prefixes += 1;
      const ratelimit = new Ratelimit({
        redis: upstashClient(redis, time),
        limiter: limiterOf(Ratelimit, max, `${interval} ms`),
        prefix: `corpus-${process.pid}-${prefixes}`,
        dynamicLimits: true,
        enableTelemetry: false,
      });
      return {
        async attempt(id, cost) {
          const { success, reset } = await ratelimit.limit(id, { rate: cost });
          return { allowed: success, wait: reset - Date.now() };
        },
        setMax: (limit) => ratelimit.setDynamicLimit({ limit }),
      };
    },
  };
}

function limiterPackage({ RateLimiter }) {
  return {
    takesCosts: true,
    oneOf: 1,
    cannot: { limits: 'no call' },
    open({ interval, max }) {
      const limiterOf = byId(() => new RateLimiter({ tokensPerInterval: max, interval }));
      return {
        attempt(id, cost) {
          const limiter = limiterOf(id);
          const allowed = limiter.tryRemoveTokens(cost);
          return { allowed, wait: allowed ? 0 : limiter.getWaitTime(cost) };
        },
      };
    },
  };
}

function pQueue({ default: PQueue }) {
  return {
    waits: true,
    oneOf: 1,
    cannot: { refusals: 'tasks wait', limits: 'no call' },
    open({ interval, max }) {
      const queueOf = byId(() => new PQueue({ interval, intervalCap: max, strict: true }));
      return { add: (id, onStart) => queueOf(id).add(onStart) };
    },
  };
}

function bottleneck(Bottleneck, optionsOf) {
  return {
    waits: true,
    ...{ oneOf: 13, oneOfShort: 3 },
    cannot: { wait: 'tasks wait', refusals: 'tasks wait', limits: 'not measured' },
    open({ interval, max }) {
      const limiterOf = byId(() => new Bottleneck(optionsOf(interval, max))); // its timers end with the time
      return { add: (id, onStart) => limiterOf(id).schedule(async () => onStart()) };
    },
  };
}

const FROM_FIRST = 'fixed window from the first request';
const UPSTASH = {
  fixedWindow: ['fixed window', (R, max, interval) => R.fixedWindow(max, interval)],
  slidingWindow: ['two weighted windows', (R, max, interval) => R.slidingWindow(max, interval)],
  tokenBucket: ['token bucket', (R, max, interval) => R.tokenBucket(max, interval, max)],
};
const refreshing = (interval, max) => ({
  reservoir: max,
  reservoirRefreshAmount: max,
  reservoirRefreshInterval: interval,
});
const spaced = (interval, max) => ({ minTime: Math.ceil(interval / max) });

/** All of them; `redis` is a client of ioredis. `promised` is what their documentation says. */
async function loadPeers(folder, redis) {
  const load = (name) => require(path.join(folder, 'node_modules', name));
  const queue = path.join(folder, 'node_modules/p-queue/dist/index.js');
  const FakeTimers = load('@sinonjs/fake-timers');
  const [limiter, Bottleneck] = [load('limiter'), load('bottleneck')];
  const [express, flexible] = [load('express-rate-limit'), load('rate-limiter-flexible')];
  const rows = [
    ['express-rate-limit', 'MemoryStore', FROM_FIRST, expressRateLimit(express), ['wait']],
    [
      'rate-limiter-flexible',
      'RateLimiterMemory',
      FROM_FIRST,
      rateLimiterFlexible(flexible),
      ['wait'],
    ],
    ...Object.entries(UPSTASH).map(([what, [algorithm, limiterOf]]) => {
      const adapter = upstash(load('@upstash/ratelimit'), redis, limiterOf);
      return ['@upstash/ratelimit', what, algorithm, adapter, []];
    }),
    [
      'limiter',
      'RateLimiter',
      'token bucket, and a fixed window',
      limiterPackage(limiter),
      ['clock'],
    ],
    [
      'p-queue',
      'strict',
      'log of starts',
      pQueue(await import(pathToFileURL(queue))),
      ['interval'],
    ],
    ['bottleneck', 'reservoir', 'fixed window', bottleneck(Bottleneck, refreshing), []],
    ['bottleneck', 'minTime', 'time between starts', bottleneck(Bottleneck, spaced), ['interval']],
  ];
  return rows.map(([name, what, algorithm, adapter, promised]) => ({
    ...{ name: `${name}, \`${what}\``, version: VERSIONS[name], algorithm, promised },
    reads: name === 'limiter' ? 'monotonic' : 'time of day',
    most: promised.includes('interval') ? (max) => max : (max) => 2 * max,
    time: (startMs) => fakedTime(FakeTimers, startMs),
    ...{ oneOf: 3, oneOfShort: 1 },
    ...adapter,
  }));
}

module.exports = { VERSIONS, loadPeers };
