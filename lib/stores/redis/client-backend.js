// Runs the scripts through a user's client: deadlines, a bounded queue, and checked replies.
'use strict';

const { promisify } = require('node:util');
const { decisionLength } = require('../../base/decision');
const { partsOf } = require('./cluster');
const { createCommands } = require('./commands');
const { Deadlines } = require('../remote/deadlines');
const failures = require('./failures');
const {
  amountsOf,
  callNumbers,
  costNumberOf,
  createChanges,
  createPolicyNumbers,
  OPERATIONS,
  readBrief,
  readFull,
  runArguments,
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
  const keyOf = (id) => `${adapter.prefix}${namespace}{${id}}`;
  const { source, sha1 } = SCRIPTS[policy.algorithm];
  let { numbers: policyNumbers, within, hasLongLogs } = createPolicyNumbers(policy);
  const length = decisionLength(policy.windows.length);
  const numbers = new Float64Array(length);
  const isFull = failures.queueFull(maxQueue);
  const isLate = failures.timeout(commandTimeout);
  const deadlines = new Deadlines(commandTimeout, (call) => call.done(isLate));
  /**
   * How many commands each node has not answered, by its name: a node that hangs uses up its own budget only. Counts
   * commands that have timed out here as long as the client holds them.
   */
  const unanswered = new Map();
  // If the server does not have the script, one call sends its source and the others wait for it.
  let isSendingSource = false;
  const withoutScript = [];

  function countUnanswered(node, change) {
    const count = (unanswered.get(node) ?? 0) + change;
    if (count > 0) unanswered.set(node, count);
    else unanswered.delete(node);
  }

  function end(call, failed, reply) {
    countUnanswered(call.node, -1);
    if (deadlines.end(call)) call.done(failed, reply);
  }

  function sendSource(call) {
    isSendingSource = true;
    const { done } = call;
    call.done = (...results) => {
      isSendingSource = false;
      for (const again of withoutScript.splice(0)) {
        if (again.isPending) transmit(again);
        else countUnanswered(again.node, -1);
      }
      done(...results);
    };
    call.args = ['eval', source, ...call.args.slice(2)];
    transmit(call);
  }

  function sendAgain(call) {
    call.timesUnknown += 1;
    if (isSendingSource && call.timesUnknown < MOST_TIMES_UNKNOWN) withoutScript.push(call);
    else sendSource(call);
  }

  const answerOf = async ({ send, args }) => send(args);

  function transmit(call) {
    answerOf(call).then(
      (reply) => end(call, null, reply),
      (error) => {
        const isUnknown = String(error?.message).startsWith('NOSCRIPT');
        if (isUnknown && call.args[0] === 'evalsha' && call.isPending) sendAgain(call);
        else end(call, failures.fromClientError(error, circumstances));
      },
    );
  }

  /** Calls `done(failed, reply)` once, later, even if the client never answers. */
  function request(send, node, args, done) {
    if (unanswered.get(node) >= maxQueue) {
      process.nextTick(done, isFull);
      return;
    }
    const call = { send, args, node, done, deadline: 0, isPending: false, timesUnknown: 0 };
    deadlines.begin(call);
    countUnanswered(node, 1);
    transmit(call);
  }

  function requestAt(key, args, done) {
    request((words) => adapter.send(key, words), adapter.nodeOf(key), args, done);
  }

  const askNode = promisify(request);
  const ask = (send, args) => askNode(send, '', args);
  const askAt = promisify(requestAt);

  /** `call` is of callNumbers, `cost` a number or amounts. */
  function scriptOn(keys, call, cost, ofPolicy = policyNumbers) {
    const amounts = typeof cost === 'number' ? [] : cost;
    const args = runArguments(keys, call, ofPolicy, hasLongLogs, amounts);
    return ['evalsha', sha1, String(keys.length), ...keys, ...args];
  }

  async function change(operation, id, amounts, now, at, generation) {
    const key = keyOf(id);
    const call = callNumbers(operation, false, now, costNumberOf(policy, amounts), at, generation);
    return askAt(key, scriptOn([key], call, amounts));
  }

  return {
    ...createCommands(adapter, keyOf, { ask, askAt }),
    ...createChanges(policy, change),

    detectedClientType: connection.kind.type,

    attempt(id, cost, records, full, now, done, max) {
      const key = keyOf(id);
      const amounts = amountsOf(policy, cost);
      const call = callNumbers(records, full, now, costNumberOf(policy, amounts));
      const args = scriptOn([key], call, amounts, within?.(max, records));
      const read = full ? readFull : readBrief;
      requestAt(key, args, (failed, reply) => {
        done(failed ?? read(reply, numbers, length), numbers);
      });
    },

    /** One call for each slot of a cluster and for each 1000 ids. */
    async attemptMany(ids, now) {
      const keys = ids.map(keyOf);
      const all = new Float64Array(ids.length * length);
      const one = amountsOf(policy, 1);
      const call = callNumbers(OPERATIONS.ATTEMPT, true, now, costNumberOf(policy, one));
      const attemptPart = async (indexes) => {
        const part = indexes.map((i) => keys[i]);
        const reply = await askAt(part[0], scriptOn(part, call, one));
        const failed = readFull(reply, all, length, indexes);
        if (failed !== null) throw failed;
      };
      await Promise.all(partsOf(keys, adapter.isCluster).map(attemptPart));
      return all;
    },

    setLimits(next) {
      ({ numbers: policyNumbers, within, hasLongLogs } = createPolicyNumbers(next));
    },

    stats() {
      let total = 0;
      for (const count of unanswered.values()) total += count;
      return { isUp: adapter.isUp(), pending: deadlines.pending, unanswered: total };
    },

    /** The owner closes the client; pending calls settle within their deadlines. */
    async close() {},
  };
}

module.exports = { createClientBackend };
