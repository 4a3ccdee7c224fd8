// The kinds of Redis clients that users may bring, recognised by their methods.
'use strict';

const ioredis = require('./ioredis');
const { nodeRedis, nodeRedisCallbacks, nodeRedisCluster } = require('./node-redis');

/**
 * A kind of client: `type` is what users read in detectedClientType; `connect(client)` returns what the backend
 * needs. It leaves the client to its owner: it neither connects nor closes it, and adds no listeners.
 *
 * @typedef {{
 *   type: 'ioredis' | 'node-redis',
 *   matches: (client: any) => boolean,
 *   connect: (client: any) => Adapter,
 * }} ClientKind
 *
 * @typedef {{
 *   prefix: string,
 *   isCluster: boolean,
 *   send: (key: string | undefined, args: (string | Buffer)[]) => Promise<unknown>,
 *   masters: () => Promise<((args: string[]) => Promise<unknown>)[]>,
 *   nodeOf: (slot: number) => string,
 *   isUp: () => boolean | null,
 *   isClosed: () => boolean,
 *   hint: () => string | undefined,
 * }} Adapter `prefix` begins every key; `key` is a full key, by which a cluster finds the node; `masters`
 *   send to each node that holds keys; `nodeOf` names the node of a cluster that serves the hash slot now, or the slot
 *   while the node is unknown, and is '' without a cluster; `hint` says what is wrong with the client, if
 *   known; names of commands are in lower case
 */

/** @type {ClientKind[]} the more specific first */
const KINDS = [ioredis, nodeRedisCallbacks, nodeRedisCluster, nodeRedis];

/** @returns {ClientKind | undefined} undefined for anything but a known client */
function clientKindOf(client) {
  if (typeof client !== 'object' || client === null) return undefined;
  try {
    return KINDS.find((kind) => kind.matches(client));
  } catch {
    return undefined; // an object whose properties throw is none of them
  }
}

module.exports = { clientKindOf };
