// Every way to connect a limiter to Redis, for suites that are run with each.
'use strict';

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
  const Redis = require(packageName);
  const retries = { retryStrategy: () => 50 };
  return {
    open: (url) => ({ client: new Redis(url, retries).on('error', quiet) }),
    openCluster: (urls) => ({
      client: new Redis.Cluster(urls, {
        clusterRetryStrategy: () => 50,
        redisOptions: retries,
      }).on('error', quiet),
    }),
  };
}

function nodeRedis(packageName) {
  const { createClient, createCluster } = require(packageName);
  const socket = { reconnectStrategy: 50 };
  return {
    open: (url) => ({ client: connectNodeRedis(createClient({ url, socket })) }),
    openCluster: (urls) => ({
      client: connectNodeRedis(
        createCluster({ rootNodes: urls.map((url) => ({ url })), defaults: { socket } }),
      ),
    }),
  };
}

function nodeRedis3() {
  const { createClient } = require('redis-3');
  const open = (url) => ({
    client: createClient(url, { retry_strategy: () => 50 }).on('error', quiet),
  });
  return { open };
}

/**
 * By name: `open(url)` and, where it can, `openCluster(urls)` give what the option `redis` takes, as an
 * object that more can be put into. What has to be closed is its `client`.
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

const names = Object.keys(REDIS_CLIENTS);

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

module.exports = { EACH_CLIENT, EACH_CLUSTER_CLIENT, REDIS_CLIENTS, openings };
