// Runs the scripts through a user's client: deadlines, a bounded queue, and checked replies.
'use strict';

const { decisionLength } = require('../decision');
const { clearAll, keySlot, partsOf } = require('./cluster');
const { Deadlines } = require('../remote/deadlines');
const failures = require('./failures');
const {
  createPoliciesWithin,
  checkCount,
  checkProbe,
  readBrief,
  readFull,
  readRefund,
  attemptOn,
  policyArguments,
} = require('./script');
const SCRIPTS = require('./scripts');

/**
 * After so many NOSCRIPT replies a call sends the source itself instead of waiting for another call to do so,
 * whose EVAL may be refused, or may have gone to another node of a cluster.
 */
const MOST_TIMES_UNKNOWN = 8;

/**
 * A backend of remote/store.js over the client of a connection, as docs/design/remote-stores.md specifies.
 *
 * @param {{ connection: object, policy: object, namespace: string }} options checked options
 */
function createClientBackend({ connection, policy, namespace }) {
  const { commandTimeout, maxQueue } = connection;
  const adapter = connection.kind.connect(connection.client);
  const circumstances = { commandTimeout, maxQueue, ...adapter };
  const keyStart = `${adapter.prefix}${namespace}{`;
  const keyOf = (id) => `${keyStart}${id}}`;
  const { source, sha1 } = SCRIPTS[policy.algorithm];
  const policyWithin = policy.setsMax ? createPoliciesWithin(policy) : undefined;
  const policyArgs = policyWithin === undefined ? policyArguments(policy) : policyWithin();
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

  /** The same as a promise. */
  function ask(send, args) {
    return new Promise((resolve, reject) => {
      request(send, args, (error, reply) => (error === null ? resolve(reply) : reject(error)));
    });
  }

  const sendTo = (key) => (args) => adapter.send(key, args);

  function runScript(key, args, done, policyWords = policyArgs) {
    request(sendTo(key), ['evalsha', sha1, '1', key, ...args, ...policyWords], done);
  }

  async function attemptPart(keys, now, indexes, all) {
    const part = indexes.map((i) => keys[i]);
    const words = [attemptOn(part), 'full', now, '1', ...policyArgs];
    const args = ['evalsha', sha1, String(part.length), ...part, ...words];
    const reply = await ask(sendTo(part[0]), args);
    const own = new Float64Array(part.length * length);
    const failed = readFull(reply, own, 0, part.length, length);
    if (failed !== null) throw failed;
    for (let i = 0; i < indexes.length; i++) {
      all.set(own.subarray(i * length, (i + 1) * length), indexes[i] * length);
    }
  }

  return {
    detectedClientType: connection.kind.type,

    attempt(id, cost, records, full, now, done, max) {
      const args = [
        records ? 'attempt' : 'peek',
        full ? 'full' : 'brief',
        now === undefined ? '' : String(now),
        String(cost),
      ];
      const readReply = (error, reply) => {
        if (error !== null) {
          done(error);
          return;
        }
        const failed = full ? readFull(reply, numbers, 0, 1, length) : readBrief(reply, numbers);
        if (failed === null) done(null, numbers);
        else done(failed);
      };
      runScript(keyOf(id), args, readReply, policyWithin?.(max, records));
    },

    /** One call for each slot of a cluster and for each 1000 ids. */
    async attemptMany(ids, now) {
      const keys = ids.map(keyOf);
      const all = new Float64Array(ids.length * length);
      const time = now === undefined ? '' : String(now);
      const parts = partsOf(keys, adapter.isCluster);
      await Promise.all(parts.map((indexes) => attemptPart(keys, time, indexes, all)));
      return all;
    },

    refund(id, { at, cost, generation }, now) {
      const time = now === undefined ? '' : String(now);
      const args = ['refund', `${at},${generation}`, time, String(cost)];
      return new Promise((resolve, reject) => {
        runScript(keyOf(id), args, (error, reply) => {
          const found = error ?? readRefund(reply);
          if (typeof found === 'boolean') resolve(found);
          else reject(found);
        });
      });
    },

    async clear(id) {
      const key = keyOf(id);
      const failed = checkCount(await ask(sendTo(key), ['unlink', key]));
      if (failed !== null) throw failed;
    },

    async clearAll() {
      await clearAll(keyStart, { adapter, ask, sendTo });
    },

    /** Ids of one part become unreachable together: those of one slot in a cluster, else all. */
    partOf: (id) => (adapter.isCluster ? keySlot(keyOf(id)) : 0),

    isOutage: failures.isOutage,

    async probe(id) {
      const key = keyOf(id);
      checkProbe(await ask(sendTo(key), ['pttl', key]));
    },

    stats() {
      return { isUp: adapter.isUp(), pending: deadlines.pending, unanswered };
    },

    /** The owner closes the client; pending calls settle within their deadlines. */
    async close() {},
  };
}

module.exports = { createClientBackend };
