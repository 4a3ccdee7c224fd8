// Every way to connect a limiter to Redis, limiters over the native client, what a server and channels say of clients.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const RateLimiter = require('../..');
const { hasNativeRedis } = require('./bindings');
const { all, patient } = require('./tiers');

const quiet = () => {}; // what goes wrong is seen by the calls that fail

/** node-redis from 4 on has to be told to connect, and queues commands from then on. */
function connectNodeRedis(client) {
  client.on('error', quiet);
  client.connect().catch(quiet);
  return client;
}

async function close(client) {
  try {
    if (typeof client.destroy === 'function') client.destroy();
    else if (typeof client.end === 'function') client.end(true);
    else await client.disconnect();
  } catch {
    // It is closed already.
  }
}

function ioredis(packageName) {
  const redisOptions = { retryStrategy: () => 50 };
  const clusterOptions = { clusterRetryStrategy: () => 50, redisOptions };
  return {
    open(url) {
      const Redis = require(packageName);
      return { client: new Redis(url, redisOptions).on('error', quiet) };
    },
    openCluster(urls) {
      const { Cluster } = require(packageName);
      return { client: new Cluster(urls, clusterOptions).on('error', quiet) };
    },
  };
}

function nodeRedis(packageName) {
  const socket = { reconnectStrategy: 50 };
  return {
    open(url) {
      return { client: connectNodeRedis(require(packageName).createClient({ url, socket })) };
    },
    openCluster(urls) {
      const options = { rootNodes: urls.map((url) => ({ url })), defaults: { socket } };
      return { client: connectNodeRedis(require(packageName).createCluster(options)) };
    },
  };
}

function nodeRedis3() {
  const options = { retry_strategy: () => 50 };
  return {
    open: (url) => ({ client: require('redis-3').createClient(url, options).on('error', quiet) }),
  };
}

/**
 * By name; a package is loaded when it is used. `open(url)` and, where it can, `openCluster(urls)` give what
 * the option `redis` takes, as an object that more can be put into. What has to be closed is its `client`.
 */
const REDIS_CLIENTS = {
  native: { open: (url) => ({ url }), openCluster: (urls) => ({ cluster: urls }) },
  ioredis: ioredis('ioredis'),
  'ioredis 5': ioredis('ioredis-5'),
  'node-redis 3': nodeRedis3(),
  'node-redis 4': nodeRedis('redis-4'),
  'node-redis 5': nodeRedis('redis-5'),
  'node-redis 6': nodeRedis('redis'),
};

/** A Redis client for tests that need any one. */
const ONE_CLIENT = hasNativeRedis ? 'native' : 'node-redis 6';

const EXISTING = Object.keys(REDIS_CLIENTS).filter((name) => name !== 'native' || hasNativeRedis);

/** All of them in `npm run test:all`, otherwise the native one and one of those that users bring. */
const names = all ? EXISTING : [...new Set([ONE_CLIENT, 'node-redis 6'])];

/** For describe.each: the name and open(). */
const EACH_CLIENT = names.map((name) => [name, REDIS_CLIENTS[name].open]);

/** For describe.each: the name and openCluster(). */
const EACH_CLUSTER_CLIENT = names
  .filter((name) => REDIS_CLIENTS[name].openCluster)
  .map((name) => [name, REDIS_CLIENTS[name].openCluster]);

/** Opens, and closes all that it opened: `const { using, closeAll } = openings()`. */
function openings() {
  const opened = [];
  return {
    using(redis) {
      opened.push(redis);
      return redis;
    },
    async closeAll() {
      const all = opened.splice(0);
      await Promise.all(all.map(({ client }) => client && close(client)));
    },
  };
}

const clientsByUrl = new Map();
globalThis.afterAll?.(() => Promise.all([...clientsByUrl.values()].map(close)));

/** A client of ioredis, the same one for one URL. In Jest all of them are closed at the end of the file. */
function clientAt(url) {
  if (!clientsByUrl.has(url)) clientsByUrl.set(url, REDIS_CLIENTS.ioredis.open(url).client);
  return clientsByUrl.get(url);
}

/** What the option `redis` takes for a server, with the native client and without it. */
const redisAt = (url) => (hasNativeRedis ? url : clientAt(url));

let made = 0;
const opened = [];
globalThis.afterEach?.(() => Promise.all(opened.splice(0).map((limiter) => limiter.close())));

/**
 * A limiter of a namespace of its own, two in a minute unless `options` say otherwise; `redis` is a
 * URL or the options of a connection. Calls are given up late, so that a busy machine fails no test. In
 * Jest all of them are closed after each test.
 */
function nativeLimiter(redis, options) {
  made += 1;
  const connection = typeof redis === 'string' ? { url: redis } : redis;
  const limiter = RateLimiter({
    redis: { commandTimeout: patient(15_000), ...connection },
    interval: 60_000,
    maxInInterval: 2,
    namespace: `native-${process.pid}-${made}`,
    ...options,
  });
  opened.push(limiter);
  return limiter;
}

/** The lines of CLIENT LIST whose connection has this name, as objects of their fields. */
async function clientsNamed(server, name) {
  const list = await server.command('CLIENT', 'LIST');
  return list
    .split('\n')
    .map((line) => Object.fromEntries(line.split(' ').map((field) => field.split('='))))
    .filter((client) => client.name === name);
}

/** The messages on a channel of node:diagnostics_channel while something is done. */
async function published(channel, action) {
  const messages = [];
  const listener = (message) => messages.push(message);
  diagnostics.subscribe(channel, listener);
  await action().finally(() => diagnostics.unsubscribe(channel, listener));
  return messages;
}

/** How often the server has run scripts, by their SHA-1 or by their text. */
async function scriptRuns(server) {
  const stats = await server.command('INFO', 'commandstats');
  const runs = stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g);
  return Array.from(runs, ([, calls]) => Number(calls)).reduce((sum, calls) => sum + calls, 0);
}

/** How many runs of scripts something takes that is awaited. */
async function runsOf(server, action) {
  const before = await scriptRuns(server);
  await action();
  return (await scriptRuns(server)) - before;
}

module.exports = {
  EACH_CLIENT,
  EACH_CLUSTER_CLIENT,
  ONE_CLIENT,
  REDIS_CLIENTS,
  clientAt,
  clientsNamed,
  nativeLimiter,
  openings,
  published,
  redisAt,
  runsOf,
  scriptRuns,
};
