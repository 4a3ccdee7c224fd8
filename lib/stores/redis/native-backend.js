// The backend of the native client: the checks of one turn of the event loop in few commands.
'use strict';

const { promisify } = require('node:util');
const { RECORDS, decisionLength } = require('../../base/decision');
const { createCommands } = require('./commands');
const failures = require('./failures');
const { amountsOf, createChanges, createPolicyNumbers } = require('./script');
const SCRIPTS = require('./scripts');

const MOST_OF_ONE_TURN = 5000;

/** A backend of remote/store.js; `connection` is a RedisConnection. */
function createNativeBackend({ connection, policy, namespace }) {
  const { maxQueue, isCluster } = connection;
  const backend = {};
  const client = connection.acquire(backend);
  const length = decisionLength(policy.windows.length);
  const { numbers, within, hasLongLogs } = createPolicyNumbers(policy);
  const keyOf = (id) => `${namespace}{${id}}`;
  let ownPolicy = new Float64Array(numbers);
  const limiter = client.createLimiter({
    keyPrefix: namespace,
    script: SCRIPTS[policy.algorithm],
    policy: ownPolicy,
    windows: policy.windows.length,
    hasLongLogs,
    hasNames: policy.isWeighted,
  });
  const adapter = {
    isCluster,
    nodeOf: client.nodeOf,
    async masters() {
      await commands.probe(''); // a cluster's nodes are known once one has answered
      const { owners } = client.nodes();
      return owners.map((node) => (words) => client.command(words, { node, owner: backend }));
    },
  };
  const commands = createCommands(adapter, keyOf, {
    ask: async (send, words) => send(words), // the native side has the deadlines
    askAt: (key, words) => client.command(words, { key, owner: backend }),
  });

  function attempt(id, cost, records, full, now, done, max) {
    const amounts = amountsOf(policy, cost);
    const call = within
      ? limiter.ask(id, records, full, amounts, now, new Float64Array(within(max, records)))
      : limiter.ask(id, records, full, amounts, now);
    client.wait(call, backend, done);
  }

  const change = promisify((operation, id, amounts, now, at, generation, done) => {
    const call = limiter.ask(id, operation, false, amounts, now, ownPolicy, at, generation);
    client.wait(call, backend, (failed, _, integer) => done(failed, [integer]));
  });

  /** Writes the numbers to `all`, because they are valid in the callback only. */
  const attemptInto = promisify((all, place, id, now, done) => {
    const write = (failed, numbers) => {
      if (failed === null) all.set(numbers, place * length);
      done(failed);
    };
    attempt(id, 1, RECORDS.ATTEMPT, true, now, write);
  });

  /** Throws if a node has no room for all of these calls. */
  function assertRoom(ids) {
    const calls = new Map();
    for (const id of ids) {
      const node = client.nodeOf(keyOf(id));
      calls.set(node, (calls.get(node) ?? 0) + 1);
    }
    for (const [node, count] of calls) {
      if (count > client.roomAt(node)) throw failures.queueFull(maxQueue);
    }
  }

  return Object.assign(backend, commands, createChanges(policy, change), {
    detectedClientType: 'hiredis',
    attempt,

    /** In turns of as many as may be pending at once. */
    async attemptMany(ids, now) {
      const all = new Float64Array(ids.length * length);
      for (let first = 0; first < ids.length; ) {
        const turn = ids.slice(first, first + Math.min(maxQueue, MOST_OF_ONE_TURN));
        assertRoom(turn); // before any of them is recorded
        await Promise.all(turn.map((id, i) => attemptInto(all, first + i, id, now)));
        first += turn.length;
      }
      return all;
    },

    /** Calls that were made keep the earlier limits. */
    setLimits(next) {
      const created = createPolicyNumbers(next);
      ownPolicy = new Float64Array(created.numbers);
      limiter.setPolicy(ownPolicy, created.hasLongLogs);
    },

    /** Calls back with whether there is a connection, whenever that changes. */
    whenChanged(callback) {
      backend.changed = callback; // the client holds it weakly
      client.whenChanged(callback);
    },

    stats: client.stats,

    /** Fails pending calls. The connection stays open for other limiters. */
    async close() {
      client.abandon(backend);
      connection.release(backend);
    },
  });
}

module.exports = { createNativeBackend };
