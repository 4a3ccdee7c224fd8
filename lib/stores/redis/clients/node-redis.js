// node-redis: clients and pools from version 4 on, clusters, and the clients up to version 3, which call back.
'use strict';

const { promisify } = require('node:util');
const { hasMethods } = require('../../../options/values');

/** Replies as plain strings and numbers, whatever type mapping the client has. */
const PLAIN = { typeMapping: {} };

const NEVER_CONNECTED = 'the client is not connected; call its connect() first';

/** The parts of an Adapter of one server, to which `run(args)` sends commands. */
function singleServer(run) {
  return {
    isCluster: false,
    send: (_key, args) => run(args),
    masters: async () => [run],
    nodeOf: () => '',
    hint: () => undefined,
  };
}

/** From version 4 on, the adapter with what tells why calls fail: a client that was open before is closed. */
function withState(client, adapter) {
  let wasOpen = client.isOpen === true;
  return {
    ...adapter,
    prefix: String(client.options?.keyPrefix ?? client.keyPrefix ?? ''),
    send(key, args) {
      wasOpen ||= client.isOpen === true;
      return adapter.send(key, args);
    },
    isClosed: () => wasOpen && client.isOpen === false,
    hint: () => (!wasOpen && client.isOpen === false ? NEVER_CONNECTED : undefined),
  };
}

/** A client or a pool of clients, from version 4 on. */
const nodeRedis = {
  type: 'node-redis',

  matches(client) {
    // A sentinel's sendCommand takes other arguments.
    const isClient = hasMethods(client, 'sendCommand') && !hasMethods(client, 'getSentinelNode');
    return isClient && typeof client.isOpen === 'boolean';
  },

  connect(client) {
    const modern = client.options?.legacyMode ? client.v4 : client; // with promises
    return withState(client, {
      ...singleServer((args) => modern.sendCommand(args, PLAIN)),
      isUp: () => client.isReady ?? null, // a pool has no isReady
    });
  },
};

/** A cluster, from version 4 on. */
const nodeRedisCluster = {
  type: 'node-redis',

  matches: (client) =>
    hasMethods(client, 'sendCommand', 'nodeClient') && Array.isArray(client.masters),

  connect(client) {
    const send = (key, args) => client.sendCommand(key, false, args, PLAIN);
    return withState(client, {
      isCluster: true,
      send,
      async masters() {
        await send(undefined, ['ping']); // fails if the nodes are not known
        const nodes = await Promise.all(client.masters.map((master) => client.nodeClient(master)));
        return nodes.map((node) => (args) => node.sendCommand(args, PLAIN));
      },
      nodeOf: (slot) => client.slots?.[slot]?.master?.address ?? String(slot),
      isUp: () => null, // every node has its own state
    });
  },
};

/** Which arguments of the commands sent here are keys. */
function keyRange([name, , keyCount]) {
  if (name === 'evalsha' || name === 'eval') return [3, 3 + Number(keyCount)];
  return ['unlink', 'pttl'].includes(name) ? [1, Number.POSITIVE_INFINITY] : [0, 0];
}

/** The client adds its prefix to the keys, which already have it. */
function withoutPrefix(args, prefix) {
  const [first, end] = keyRange(args);
  return args.map((arg, i) => (i >= first && i < end ? arg.slice(prefix.length) : arg));
}

/** A client up to version 3. */
const nodeRedisCallbacks = {
  type: 'node-redis',

  matches: (client) => hasMethods(client, 'internal_send_command', 'send_command'),

  connect(client) {
    const prefix = String(client.options?.prefix ?? '');
    const sendCommand = promisify(client.send_command).bind(client);
    return {
      ...singleServer((args) => {
        const [name, ...rest] = withoutPrefix(args, prefix);
        return sendCommand(name, rest);
      }),
      prefix,
      isUp: () => client.ready === true,
      isClosed: () => client.closing === true,
    };
  },
};

module.exports = { nodeRedis, nodeRedisCallbacks, nodeRedisCluster };
