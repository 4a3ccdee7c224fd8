// The competitors: one function each, all taking { interval, maxInInterval, maxKeys } and giving a way to check one id.
//
// `calling`: 'sync' answers the time left, 'await' answers by a promise that `isRefused` reads,
// 'rejects' refuses by rejecting the promise.

const { createMapLimiter, createSlabLimiter } = require('./plain-js');

function rollgate(options) {
  const { RateLimiter } = require('../../lib');
  return { calling: 'sync', check: RateLimiter(options) };
}

/** Without the addon. Each subject has a process of its own. */
function rollgateWasm(options) {
  process.env.ROLLGATE_BINDING = 'wasm';
  return rollgate(options);
}

function rollgatePromise(options) {
  const { RateLimiter } = require('../../lib');
  const limiter = RateLimiter(options);
  return { calling: 'await', check: (id) => limiter.limit(id), isRefused: (blocked) => blocked };
}

function plainMap({ interval, maxInInterval }) {
  return { calling: 'sync', check: createMapLimiter({ interval, maxInInterval }) };
}

function plainSlab({ interval, maxInInterval }) {
  return { calling: 'sync', check: createSlabLimiter({ interval, maxInInterval }) };
}

function expressRateLimit({ interval, maxInInterval }) {
  const { MemoryStore } = require('express-rate-limit');
  const store = new MemoryStore();
  store.init({ windowMs: interval });
  return {
    calling: 'await',
    check: (id) => store.increment(id),
    isRefused: (client) => client.totalHits > maxInInterval,
    close: () => store.shutdown(),
  };
}

function rateLimiterFlexible({ interval, maxInInterval }) {
  const { RateLimiterMemory } = require('rate-limiter-flexible');
  const limiter = new RateLimiterMemory({ points: maxInInterval, duration: interval / 1000 });
  return { calling: 'rejects', check: (id) => limiter.consume(id) };
}

function rollingRateLimiter01({ interval, maxInInterval }) {
  const createLimiter = require('rolling-rate-limiter-0.1');
  return { calling: 'sync', check: createLimiter({ interval, maxInInterval }) };
}

function rollingRateLimiter04({ interval, maxInInterval }) {
  const { InMemoryRateLimiter } = require('rolling-rate-limiter');
  const limiter = new InMemoryRateLimiter({ interval, maxInInterval });
  return { calling: 'await', check: (id) => limiter.limit(id), isRefused: (blocked) => blocked };
}

/** No limiter at all: what the loop and the making of ids cost by themselves. */
function idsOnly() {
  const kept = { id: '' };
  return {
    calling: 'sync',
    check: (id) => {
      kept.id = id; // a store the engine cannot leave out
      return 0;
    },
  };
}

const subjects = {
  rollgate: { create: rollgate, label: 'rollgate' },
  rollgateWasm: { create: rollgateWasm, label: 'rollgate as WebAssembly' },
  rollgatePromise: { create: rollgatePromise, label: 'rollgate, `await limit(id)`' },
  plainMap: { create: plainMap, label: 'plain JS, Map and rings' },
  plainSlab: { create: plainSlab, label: 'plain JS, Map and slab' },
  expressRateLimit: { create: expressRateLimit, label: 'express-rate-limit MemoryStore' },
  rateLimiterFlexible: { create: rateLimiterFlexible, label: 'rate-limiter-flexible memory' },
  rollingRateLimiter01: { create: rollingRateLimiter01, label: 'rolling-rate-limiter 0.1' },
  rollingRateLimiter04: { create: rollingRateLimiter04, label: 'rolling-rate-limiter 0.4' },
  idsOnly: { create: idsOnly, label: 'id building only' },
};

module.exports = { subjects };
