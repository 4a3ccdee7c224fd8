// node-redis, 4 and newer: a client or a pool of clients.
'use strict';

/** Replies as plain strings and numbers, whatever the client is told for others. */
const PLAIN = { typeMapping: {} };

const NEVER_CONNECTED = 'the client is not connected; call its connect() first';

/** A client that is not open was closed, unless it never was open as far as can be told. */
function openness(client) {
  let wasOpen = client.isOpen === true;
  return {
    note() {
      if (!wasOpen) wasOpen = client.isOpen === true;
    },
    isClosed: () => wasOpen && client.isOpen === false,
    hint: () => (!wasOpen && client.isOpen === false ? NEVER_CONNECTED : undefined),
  };
}

function prefixOf(client) {
  return String(client.options?.keyPrefix ?? client.keyPrefix ?? '');
}

/** Version 4 in its legacy mode keeps the function with promises elsewhere. */
function senderOf(client) {
  const modern = client.options?.legacyMode ? client.v4 : client;
  return (args) => modern.sendCommand(args, PLAIN);
}

module.exports = {
  type: 'node-redis',
  PLAIN,
  openness,
  prefixOf,

  matches(client) {
    return (
      typeof client.sendCommand === 'function' &&
      typeof client.isOpen === 'boolean' &&
      typeof client.getSentinelNode !== 'function' // its sendCommand takes other arguments
    );
  },

  connect(client) {
    const send = senderOf(client);
    const open = openness(client);
    return {
      prefix: prefixOf(client),
      isCluster: false,
      send(_key, args) {
        open.note();
        return send(args);
      },
      masters: async () => [{ send }],
      isUp: () => client.isReady ?? null, // a pool does not tell
      isClosed: open.isClosed,
      hint: open.hint,
    };
  },
};
