// The stores that the suite runs on; one entry each.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { hasAddon, hasNativeRedis, packageOn } = require('../support/bindings');
const { createPlainKv, openDenoKv } = require('../support/kv-stores');
const { REDIS_CLIENTS, openings } = require('../support/redis-clients');
const { startRedis, stopRedis } = require('../support/redis-server');
const { all, patient } = require('../support/tiers');

/** Longer than any test machine pauses. */
const PATIENT = { commandTimeout: patient(15_000) };

let made = 0;
const newNamespace = () => `conformance-${process.pid}-${++made}`;

async function openMemory() {
  return {
    open: (options) => RateLimiter(options),
    together: () => ({}),
    stateOf: () => undefined,
    inChild: '{}',
    close() {},
  };
}

/** The same on the WebAssembly module, in a copy of the package of its own. */
async function openModule() {
  const OnModule = packageOn('wasm');
  return { ...(await openMemory()), open: (options) => OnModule(options), inChild: undefined };
}

/** Regions are small, as a container has 64 MB for all; that of a limiter is removed when it closes. */
const SMALL = { maxKeys: 600 };
/** For limits that change. */
const ROOM = 128;

async function openShared() {
  const childName = newNamespace();
  return {
    open(options) {
      const shared = { name: newNamespace(), room: ROOM };
      const all = { shared, ...SMALL, ...options };
      const limiter = RateLimiter(all);
      const { close } = limiter;
      limiter.close = async () => {
        await close.call(limiter);
        RateLimiter.unlinkShared(all.shared);
      };
      return limiter;
    },
    together: (namespace) => ({ shared: { name: namespace, room: ROOM } }),
    stateOf: () => undefined,
    inChild: `{ shared: '${childName}-' + algorithm, ...${JSON.stringify(SMALL)} }`,
    close() {
      for (const algorithm of ALGORITHMS) RateLimiter.unlinkShared(`${childName}-${algorithm}`);
    },
  };
}

const together = (namespace) => ({ namespace });

const SHA1_OF = "return redis.sha1hex(redis.call('GET', KEYS[1]))";

async function openRedis(client) {
  const server = await startRedis();
  const { using, closeAll } = openings();
  const redis = { ...using(REDIS_CLIENTS[client].open(server.url)), ...PATIENT };
  return {
    open: (options) => RateLimiter({ redis, namespace: newNamespace(), ...options }),
    together,
    async stateOf(namespace, id) {
      const key = `${namespace}{${id}}`;
      const bytes = await server.command('STRLEN', key);
      if (bytes === 0) return undefined;
      const sha1 = await server.command('EVAL', SHA1_OF, 1, key);
      return { bytes, sha1, expires: await server.command('PEXPIRETIME', key) };
    },
    // A user's own client keeps its process alive.
    ...(client === 'native' && { inChild: `{ redis: '${server.url}', namespace: 'child' }` }),
    async close() {
      await closeAll();
      await stopRedis([server]);
    },
  };
}

function openOnKv(kv, place) {
  return {
    open: (options) => RateLimiter({ kv, namespace: newNamespace(), ...PATIENT, ...options }),
    together,
    ...place,
  };
}

async function openPlainKv() {
  const kv = createPlainKv();
  return openOnKv(kv, {
    async stateOf(namespace, id) {
      const found = kv.entries.get(`${namespace}{${id}}`);
      return found && { bytes: found.value.length, ...found };
    },
    inChild: '{ namespace: "child", kv: { get: () => null, set: () => true } }',
    close() {},
  });
}

async function openDeno() {
  const { kv, close } = await openDenoKv();
  return openOnKv(kv, {
    async stateOf(namespace, id) {
      for await (const { key, value, versionstamp } of kv.list({ prefix: [namespace] })) {
        if (key.at(-1) === id) return { bytes: value.length, value, versionstamp };
      }
      return undefined;
    },
    close,
  });
}

const largestLimit = (algorithm) => (algorithm === 'sliding-window-log' ? 3000 : 2 ** 33);
const HERE = { isSync: true, expires: false, largestLimit };
const REMOTE = { isSync: false, expires: false, largestLimit, mostBytes: 200 };

/**
 * - `open()` gives a place: `open(options)` creates a limiter there, and `close()` ends it.
 *   `together(namespace)` gives the options with which limiters count together, none if they cannot.
 *   `stateOf(namespace, id)` is what the store holds for an id, with its size in `bytes`; undefined if that
 *   cannot be seen. `inChild` is source text: options for a limiter in a program of its own.
 * - `isSync`: whether decisions come at once
 * - `expires`: whether keys expire in real time
 * - `mostBytes`: how large the only id may be, by `stateOf` or by stats()
 * - `longestLog`: how many actions a log can hold, if few
 * - `largestLimit(algorithm)`: the largest limit of a call; `roomForRecords`: of a log without names, if it is not 1,024
 * - `pace`: how many operations of random traces it gets; fewer for a slow store
 */
const STORES = {
  memory: { ...HERE, open: openMemory, mostBytes: 100_000, pace: 12_000 },
  'memory, WebAssembly': { ...HERE, open: openModule, mostBytes: 200_000, pace: 4000 },
  'shared memory': {
    ...{ ...HERE, open: openShared, longestLog: 1000, roomForRecords: ROOM, pace: 6000 },
    mostBytes: 2_000_000, // the whole region, with room for records
    largestLimit: (algorithm) => ({ gcra: 2 ** 33, 'sliding-window-log': ROOM })[algorithm] ?? 3000,
  },
  'Redis, native': { ...REMOTE, open: () => openRedis('native'), expires: true, pace: 3000 },
  'Redis, ioredis': { ...REMOTE, open: () => openRedis('ioredis'), expires: true, pace: 1500 },
  'Redis, node-redis': {
    ...{ ...REMOTE, open: () => openRedis('node-redis 6'), expires: true, pace: 1500 },
  },
  'kv, an object': { ...REMOTE, open: openPlainKv, pace: 4000 },
  'kv, Deno KV in a file': {
    ...{ ...REMOTE, open: openDeno, expires: true, longestLog: 5000, pace: 400 },
  },
};

const EXISTS = {
  'memory, WebAssembly': hasAddon, // else it is the memory above
  'shared memory': hasAddon,
  'Redis, native': hasNativeRedis,
};

/** In the fast tier: one store in this process and one Redis client. */
function namesOfTier() {
  if (all) return Object.keys(STORES).filter((name) => EXISTS[name] ?? true);
  return ['memory', hasNativeRedis ? 'Redis, native' : 'Redis, node-redis'];
}

/** For describe.each: the name and the entry. */
const EACH_STORE = namesOfTier().map((name) => [name, { name, ...STORES[name] }]);

module.exports = { EACH_STORE };
