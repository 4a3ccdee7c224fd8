// ioredis, 4 and newer: a client or a cluster.
'use strict';

const { hasMethods } = require('../../../options/values');

/**
 * The client's own functions add keyPrefix to keys but not to patterns, and group commands into pipelines by
 * what they consider the key. So commands are made without the client's options and then sent by the client.
 */
function commandsOf(client) {
  const maker = { options: {}, sendCommand: (command) => client.sendCommand(command) };
  const functions = new Map();
  return (args) => {
    const [name, ...rest] = args;
    if (!functions.has(name)) functions.set(name, client.createBuiltinCommand(name).string);
    return functions.get(name).apply(maker, rest);
  };
}

module.exports = {
  type: 'ioredis',

  matches(client) {
    const hasCommands = hasMethods(client, 'createBuiltinCommand', 'sendCommand');
    return hasCommands && typeof client.status === 'string' && !client.isPipeline;
  },

  connect(client) {
    const run = commandsOf(client);
    return {
      prefix: String(client.options?.keyPrefix ?? ''),
      isCluster: client.isCluster === true,
      send: (_key, args) => run(args), // the client finds the key by itself
      async masters() {
        if (!client.isCluster) return [run];
        await run(['ping']); // only then are its nodes known
        return client.nodes('master').map(commandsOf);
      },
      // The first one is the primary.
      nodeOf: (slot) => (client.isCluster ? (client.slots?.[slot]?.[0] ?? String(slot)) : ''),
      isUp: () => client.status === 'ready',
      isClosed: () => client.status === 'end',
      hint: () => undefined,
    };
  },
};
