// The script run through a client of the user's: deadlines, a bounded queue, and replies checked.
'use strict';

const { decisionLength } = require('../decision');
const { clearAll } = require('./clear-all');
const { Deadlines } = require('../remote/deadlines');
const failures = require('./failures');
const { keySlot } = require('./key-slot');
const { createPoliciesWithin } = require('./policies-within');
const { checkCount, checkProbe, readBrief, readFull, readRefund } = require('./reply');
const { attemptOn, policyArguments } = require('./script');
const SCRIPTS = require('./scripts');

/**
 * A call that has heard so many times that its server does not know the script waits no more for others
 * to take it there: it may be refused. In a cluster others may have taken it to other nodes before.
 */
const MOST_TIMES_UNKNOWN = 8;

/** Redis stands still while a script runs; and Lua passes on no more than 8000 keys. */
const MOST_KEYS = 1000;

/** Lists of indexes: those of ids whose keys one call may have, in the order of the ids. */
function partsOf(keys, isCluster) {
  const bySlot = new Map();
  for (let i = 0; i < keys.length; i++) {
    const slot = isCluster ? keySlot(keys[i]) : 0;
    if (!bySlot.has(slot)) bySlot.set(slot, []);
    bySlot.get(slot).push(i);
  }
  return [...bySlot.values()].flatMap((indexes) => {
    const parts = [];
    for (let i = 0; i < indexes.length; i += MOST_KEYS) parts.push(indexes.slice(i, i + MOST_KEYS));
    return parts;
  });
}

/**
 * A backend of remote-store.js over the client of a connection. ARCHITECTURE.md tells what backends
 * have in common.
 *
 * @param {{ connection: object, policy: object, namespace: string }} options as checked by options.js
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
  // A client may hold on to a command whose caller was told that it is too late: that counts, too.
  let unanswered = 0;

  // Where a server has not the script, one call takes its source there and the others wait for that:
  // together they would be as long as all sources.
  let isTakingSource = false;
  const withoutScript = [];

  function takeSource(call, send, args) {
    isTakingSource = true;
    const { done } = call;
    call.done = (...results) => {
      isTakingSource = false;
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
    if (!isTakingSource || call.timesUnknown >= MOST_TIMES_UNKNOWN) {
      takeSource(call, send, args);
      return;
    }
    unanswered += 1; // it waits in here
    withoutScript.push({ call, send, args });
  }

  /** Hands a command over; where the script is not known there, once more. */
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

  /** Calls `done(error, reply)` once, later, whatever the client does. */
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

    /** In as many calls as there are slots among the ids of a cluster, and for each 1000 ids. */
    async attemptMany(ids, now) {
      const keys = ids.map(keyOf);
      const all = new Float64Array(ids.length * length);
      const time = now === undefined ? '' : String(now);
      const parts = partsOf(keys, adapter.isCluster);
      await Promise.all(parts.map((indexes) => attemptPart(keys, time, indexes, all)));
      return all;
    },

    refund(id, { at, cost, incarnation }, now) {
      const time = now === undefined ? '' : String(now);
      const args = ['refund', `${at},${incarnation}`, time, String(cost)];
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

    /** Ids of one part are in reach together: those of one slot in a cluster, all elsewhere. */
    partOf: (id) => (adapter.isCluster ? keySlot(keyOf(id)) : 0),

    isOutage: failures.isOutage,

    async probe(id) {
      const key = keyOf(id);
      checkProbe(await ask(sendTo(key), ['pttl', key]));
    },

    stats() {
      return { isUp: adapter.isUp(), pending: deadlines.pending, unanswered };
    },

    /** The client is its owner's to close; what is pending settles in its time. */
    async close() {},
  };
}

module.exports = { createClientBackend };
