// The Redis clients that users may bring, told apart by what they can do.
'use strict';

const ioredis = require('./ioredis');
const nodeRedis = require('./node-redis');
const nodeRedisCallbacks = require('./node-redis-callbacks');
const nodeRedisCluster = require('./node-redis-cluster');

/**
 * A kind of client: `type` as users read it in detectedClientType, `matches(client)`, and
 * `connect(client)`, which gives what the backend needs of it. That takes nothing over: it neither
 * connects nor closes the client and listens to none of its events.
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
 *   send: (key: string | undefined, args: string[]) => Promise<unknown>,
 *   masters: () => Promise<{ send: (args: string[]) => Promise<unknown> }[]>,
 *   isUp: () => boolean | null,
 *   isClosed: () => boolean,
 *   hint: () => string | undefined,
 * }} Adapter `prefix` stands before every key; `key` is the full one, by which a cluster finds the
 *   node; `masters` are all nodes that hold keys; `hint` tells what is wrong with the client if that
 *   can be told; names of commands are in lower case
 */

/** @type {ClientKind[]} the more special first */
const KINDS = [ioredis, nodeRedisCallbacks, nodeRedisCluster, nodeRedis];

/** @returns {ClientKind | undefined} undefined for what is no client that is known */
function clientKindOf(client) {
  if (typeof client !== 'object' || client === null) return undefined;
  try {
    return KINDS.find((kind) => kind.matches(client));
  } catch {
    return undefined; // an object that throws when looked at is none of them
  }
}

module.exports = { clientKindOf };
