// ioredis, 4 and newer: a client or a cluster.
'use strict';

/**
 * The client's own functions put keyPrefix before keys but not into patterns, and gather commands
 * into pipelines by what they take for the key. So commands are made with options of our own, and
 * only handed to the client.
 */
function commandsOf(client) {
  const maker = { options: {}, sendCommand: (command) => client.sendCommand(command) };
  const functions = new Map();
  return (args) => {
    const [name] = args;
    let make = functions.get(name);
    if (make === undefined) {
      make = client.createBuiltinCommand(name).string;
      functions.set(name, make);
    }
    return make.apply(maker, args.slice(1));
  };
}

module.exports = {
  type: 'ioredis',

  matches(client) {
    return (
      typeof client.createBuiltinCommand === 'function' &&
      typeof client.sendCommand === 'function' &&
      typeof client.status === 'string' &&
      !client.isPipeline
    );
  },

  connect(client) {
    const run = commandsOf(client);
    return {
      prefix: String(client.options?.keyPrefix ?? ''),
      isCluster: client.isCluster === true,
      send: (_key, args) => run(args), // the client finds the key by itself
      async masters() {
        if (!client.isCluster) return [{ send: run }];
        await run(['ping']); // only then are its nodes known
        return client.nodes('master').map((node) => ({ send: commandsOf(node) }));
      },
      isUp: () => client.status === 'ready',
      isClosed: () => client.status === 'end',
      hint: () => undefined,
    };
  },
};
