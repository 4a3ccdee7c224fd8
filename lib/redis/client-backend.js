// Runs the scripts through a user's client: deadlines, a bounded queue, and checked replies.
'use strict';

const { promisify } = require('node:util');
const { decisionLength } = require('../decision');
const { partsOf } = require('./cluster');
const { createCommands } = require('./commands');
const { Deadlines } = require('../remote/deadlines');
const failures = require('./failures');
const {
  attemptOn,
  createPolicyArguments,
  readBrief,
  readFull,
  readRefund,
  timeArgument,
} = require('./script');
const SCRIPTS = require('./scripts');

/**
 * After so many NOSCRIPT replies a call sends the source itself instead of waiting for another call to do so,
 * whose EVAL may be refused, or may have gone to another node of a cluster.
 */
const MOST_TIMES_UNKNOWN = 8;

/** A backend of remote/store.js over a user's client, as docs/design/remote-stores.md specifies. */
function createClientBackend({ connection, policy, namespace }) {
  const { commandTimeout, maxQueue } = connection;
  const adapter = connection.kind.connect(connection.client);
  const circumstances = { commandTimeout, maxQueue, ...adapter };
  const keyStart = `${adapter.prefix}${namespace}{`;
  const keyOf = (id) => `${keyStart}${id}}`;
  const { source, sha1 } = SCRIPTS[policy.algorithm];
  const { args: policyArgs, within: policyWithin } = createPolicyArguments(policy);
  const length = decisionLength(policy.windows.length);
  const numbers = new Float64Array(length);
  const deadlines = new Deadlines(commandTimeout, (call) => {
    call.done(failures.timeout(commandTimeout));
  });
  // Includes commands that have timed out here but are still held by the client.
  let unanswered = 0;

  // If the server does not have the script, one call sends its source and the others wait for it.
  let isSendingSource = false;
  const withoutScript = [];

  function sendSource(call, send, args) {
    isSendingSource = true;
    const { done } = call;
    call.done = (...results) => {
      isSendingSource = false;
      for (const again of withoutScript.splice(0)) {
        unanswered -= 1;
        if (again.call.isPending) transmit(again.call, again.send, again.args);
      }
      done(...results);
    };
    transmit(call, send, ['eval', source, ...args.slice(2)]);
  }

  function sendAgain(call, send, args) {
    call.timesUnknown += 1;
    if (!isSendingSource || call.timesUnknown >= MOST_TIMES_UNKNOWN) {
      sendSource(call, send, args);
      return;
    }
    unanswered += 1; // while it waits here
    withoutScript.push({ call, send, args });
  }

  /** Sends a command, again if the server does not know the script. */
  function transmit(call, send, args) {
    let answer;
    try {
      answer = send(args);
    } catch (error) {
      answer = Promise.reject(error);
    }
    unanswered += 1;
    answer.then(
      (reply) => {
        unanswered -= 1;
        if (deadlines.end(call)) call.done(null, reply);
      },
      (error) => {
        unanswered -= 1;
        if (!call.isPending) return;
        if (args[0] === 'evalsha' && String(error?.message).startsWith('NOSCRIPT')) {
          sendAgain(call, send, args);
          return;
        }
        deadlines.end(call);
        call.done(failures.fromClientError(error, circumstances));
      },
    );
  }

  /** Calls `done(error, reply)` once, later, even if the client never answers. */
  function request(send, args, done) {
    if (unanswered >= maxQueue) {
      process.nextTick(done, failures.queueFull(maxQueue));
      return;
    }
    const call = { done, deadline: 0, isPending: false, timesUnknown: 0 };
    deadlines.begin(call);
    transmit(call, send, args);
  }

  const ask = promisify(request);

  const sendTo = (key) => (args) => adapter.send(key, args);

  function scriptOn(keys, args, policyWords = policyArgs) {
    return ['evalsha', sha1, String(keys.length), ...keys, ...args, ...policyWords];
  }

  async function attemptPart(keys, now, indexes, all) {
    const part = indexes.map((i) => keys[i]);
    const args = scriptOn(part, [attemptOn(part), 'full', timeArgument(now), '1']);
    const reply = await ask(sendTo(part[0]), args);
    const own = new Float64Array(part.length * length);
    const failed = readFull(reply, own, length);
    if (failed !== null) throw failed;
    for (let i = 0; i < indexes.length; i++) {
      all.set(own.subarray(i * length, (i + 1) * length), indexes[i] * length);
    }
  }

  return {
    ...createCommands({ adapter, ask, keyStart }),

    detectedClientType: connection.kind.type,

    attempt(id, cost, records, full, now, done, max) {
      const key = keyOf(id);
      const operation = records ? 'attempt' : 'peek';
      const args = [operation, full ? 'full' : 'brief', timeArgument(now), String(cost)];
      const readReply = (error, reply) => {
        if (error !== null) {
          done(error);
          return;
        }
        const failed = full ? readFull(reply, numbers, length) : readBrief(reply, numbers);
        if (failed === null) done(null, numbers);
        else done(failed);
      };
      request(sendTo(key), scriptOn([key], args, policyWithin?.(max, records)), readReply);
    },

    /** One call for each slot of a cluster and for each 1000 ids. */
    async attemptMany(ids, now) {
      const keys = ids.map(keyOf);
      const all = new Float64Array(ids.length * length);
      const parts = partsOf(keys, adapter.isCluster);
      await Promise.all(parts.map((indexes) => attemptPart(keys, now, indexes, all)));
      return all;
    },

    async refund(id, { at, cost, generation }, now) {
      const key = keyOf(id);
      const args = ['refund', `${at},${generation}`, timeArgument(now), String(cost)];
      return readRefund(await ask(sendTo(key), scriptOn([key], args)));
    },

    stats() {
      return { isUp: adapter.isUp(), pending: deadlines.pending, unanswered };
    },

    /** The owner closes the client; pending calls settle within their deadlines. */
    async close() {},
  };
}

module.exports = { createClientBackend };
