// A client of node-redis whose commands can be held up, changed or lost on the way, in a test.
'use strict';

const { createClient } = require('redis');

/** A real client whose commands go through `gate(args, send)`, at first as they are. */
async function gatedClient(url) {
  const client = createClient({ url }).on('error', () => {});
  await client.connect();
  const pass = client.sendCommand.bind(client);
  const asTheyAre = (args, send) => send(args);
  const gated = {
    client,
    sent: 0,
    gate: asTheyAre,
    /** From now on each command fails at once. */
    cut() {
      gated.gate = () => Promise.reject(new Error('cut'));
    },
    mend() {
      gated.gate = asTheyAre;
    },
    /** Holds back the reply to the next command. Promises what lets it through, once it has come. */
    holdReply: () =>
      new Promise((resolve) => {
        gated.gate = async (args, send) => {
          gated.mend();
          const reply = await send(args);
          await new Promise(resolve);
          return reply;
        };
      }),
    close: () => client.destroy(),
  };
  client.sendCommand = (args, options) => {
    gated.sent += 1;
    return gated.gate(args, (words) => pass(words, options));
  };
  return gated;
}

module.exports = { gatedClient };
