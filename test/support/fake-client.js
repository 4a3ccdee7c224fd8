// A client that looks like node-redis and whose answers a test decides, and limiters over it.
'use strict';

const RateLimiter = require('../..');

const isScript = ([name]) => name.startsWith('eval');
const keysOf = (args) => (isScript(args) ? args.slice(3, 3 + Number(args[2])) : args.slice(1));

/** Brief answers: each key is allowed. */
const allowing = (args) => (isScript(args) ? keysOf(args).map(() => 0) : 1);

/** An error reply. */
const refusal = (message) => Object.assign(new Error(message), { name: 'ReplyError' });

/** `answer(args)` decides, `sent` has the words of all commands. */
function fakeClient(answer = allowing, more = {}) {
  const sent = [];
  return {
    isOpen: true,
    sent,
    names: () => sent.map(([name]) => name),
    keys: () => sent.map(keysOf),
    async sendCommand(args) {
      sent.push(args);
      return answer(args);
    },
    ...more,
  };
}

function limiterOver(client, { commandTimeout = 10_000, maxQueue, ...options } = {}) {
  const redis = { client, commandTimeout, maxQueue };
  return RateLimiter({ redis, namespace: 'n', interval: 1000, maxInInterval: 9, ...options });
}

module.exports = { allowing, fakeClient, keysOf, limiterOver, refusal };
