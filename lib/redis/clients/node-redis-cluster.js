// node-redis, 4 and newer: a cluster.
'use strict';

const { PLAIN, openness, prefixOf } = require('./node-redis');

module.exports = {
  type: 'node-redis',

  matches(client) {
    return (
      typeof client.sendCommand === 'function' &&
      typeof client.nodeClient === 'function' &&
      Array.isArray(client.masters)
    );
  },

  connect(client) {
    const open = openness(client);
    const send = (key, args) => {
      open.note();
      return client.sendCommand(key, false, args, PLAIN);
    };
    return {
      prefix: prefixOf(client),
      isCluster: true,
      send,
      async masters() {
        await send(undefined, ['ping']); // fails where its nodes are not known
        return Promise.all(
          client.masters.map(async (master) => {
            const node = await client.nodeClient(master);
            return { send: (args) => node.sendCommand(args, PLAIN) };
          }),
        );
      },
      isUp: () => null, // each of its nodes has a state of its own
      isClosed: open.isClosed,
      hint: open.hint,
    };
  },
};
