// node-redis up to version 3, which calls back.
'use strict';

const { promisify } = require('node:util');

/** Which arguments are keys, in the commands that are sent here. */
function keyRange([name, , keyCount]) {
  if (name === 'evalsha' || name === 'eval') return [3, 3 + Number(keyCount)];
  return name === 'unlink' ? [1, Number.POSITIVE_INFINITY] : [0, 0];
}

/** The client will put its prefix before the keys, which have it already. */
function withoutPrefix(args, prefix) {
  const [first, end] = keyRange(args);
  return args.map((arg, i) => (i >= first && i < end ? arg.slice(prefix.length) : arg));
}

module.exports = {
  type: 'node-redis',

  matches(client) {
    return (
      typeof client.internal_send_command === 'function' &&
      typeof client.send_command === 'function'
    );
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
