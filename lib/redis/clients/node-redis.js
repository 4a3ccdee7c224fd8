// node-redis: clients and pools from version 4 on, clusters, and the clients up to version 3, which call back.
'use strict';

const { promisify } = require('node:util');
const { hasMethods } = require('../../option-values');

/** Replies as plain strings and numbers, whatever type mapping the client has. */
const PLAIN = { typeMapping: {} };

const NEVER_CONNECTED = 'the client is not connected; call its connect() first';

/** The parts of an Adapter that clients and clusters share. A client that is not open, but was before, is closed. */
function adapterOf(client, sendTo) {
  let wasOpen = client.isOpen === true;
  return {
    prefix: String(client.options?.keyPrefix ?? client.keyPrefix ?? ''),
    send(key, args) {
      if (!wasOpen) wasOpen = client.isOpen === true;
      return sendTo(key, args);
    },
    isClosed: () => wasOpen && client.isOpen === false,
    hint: () => (!wasOpen && client.isOpen === false ? NEVER_CONNECTED : undefined),
  };
}

/** In the legacy mode of version 4, `v4` has the functions with promises. */
function senderOf(client) {
  const modern = client.options?.legacyMode ? client.v4 : client;
  return (args) => modern.sendCommand(args, PLAIN);
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
    const send = senderOf(client);
    return {
      ...adapterOf(client, (_key, args) => send(args)),
      isCluster: false,
      masters: async () => [{ send }],
      isUp: () => client.isReady ?? null, // a pool has no isReady
    };
  },
};

/** A cluster, from version 4 on. */
const nodeRedisCluster = {
  type: 'node-redis',

  matches(client) {
    return hasMethods(client, 'sendCommand', 'nodeClient') && Array.isArray(client.masters);
  },

  connect(client) {
    const adapter = adapterOf(client, (key, args) => client.sendCommand(key, false, args, PLAIN));
    return {
      ...adapter,
      isCluster: true,
      async masters() {
        await adapter.send(undefined, ['ping']); // fails if the nodes are not known
        return Promise.all(
          client.masters.map(async (master) => {
            const node = await client.nodeClient(master);
            return { send: (args) => node.sendCommand(args, PLAIN) };
          }),
        );
      },
      isUp: () => null, // every node has its own state
    };
  },
};

/** Which arguments of the commands sent here are keys. */
function keyRange([name, , keyCount]) {
  if (name === 'evalsha' || name === 'eval') return [3, 3 + Number(keyCount)];
  return name === 'unlink' ? [1, Number.POSITIVE_INFINITY] : [0, 0];
}

/** The client adds its prefix to the keys, which already have it. */
function withoutPrefix(args, prefix) {
  const [first, end] = keyRange(args);
  return args.map((arg, i) => (i >= first && i < end ? arg.slice(prefix.length) : arg));
}

/** A client up to version 3. */
const nodeRedisCallbacks = {
  type: 'node-redis',

  matches(client) {
    return hasMethods(client, 'internal_send_command', 'send_command');
  },

  connect(client) {
    const prefix = String(client.options?.prefix ?? '');
    const sendCommand = promisify(client.send_command).bind(client);
    const send = (args) => {
      const bare = prefix === '' ? args : withoutPrefix(args, prefix);
      return sendCommand(bare[0], bare.slice(1));
    };
    return {
      prefix,
      isCluster: false,
      send: (_key, args) => send(args),
      masters: async () => [{ send }],
      isUp: () => client.ready === true,
      isClosed: () => client.closing === true,
      hint: () => undefined,
    };
  },
};

module.exports = { nodeRedis, nodeRedisCallbacks, nodeRedisCluster };
