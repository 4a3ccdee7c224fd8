// Runs the scripts through a user's client: deadlines, a bounded queue, and checked replies.
'use strict';

const { decisionLength } = require('../../base/decision');
const { Deadlines } = require('../remote/deadlines');
const { OPERATIONS } = require('../remote/operations');
const { RedisBackend } = require('./backend');
const { partsOf } = require('./cluster');
const failures = require('./failures');
const {
  amountsOf,
  callNumbers,
  costNumberOf,
  createPolicyNumbers,
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

const answerOf = async ({ send, words }) => send(words);

/** Promises what `call(done)` calls back with. */
function promised(call) {
  return new Promise((resolve, reject) => {
    call((failed, result) => (failed === null ? resolve(result) : reject(failed)));
  });
}

/** The backend over a user's client. */
class ClientBackend extends RedisBackend {
  #adapter;
  #circumstances;
  #policyNumbers;
  #numbers;
  #queueFull;
  #timedOut;
  #deadlines;
  /**
   * How many commands each node has not answered, by its name: a node that hangs uses up its own budget only. Counts
   * commands that have timed out here as long as the client holds them.
   */
  #unanswered = new Map();
  // If the server does not have the script, one call sends its source and the others wait for it.
  #isSendingSource = false;
  #withoutScript = [];

  constructor({ connection, policy, namespace }) {
    const { commandTimeout, maxQueue, kind } = connection;
    const adapter = kind.connect(connection.client);
    super(policy, `${adapter.prefix}${namespace}`);
    this.detectedClientType = kind.type;
    this.#adapter = adapter;
    this.#circumstances = { commandTimeout, maxQueue, ...adapter };
    this.#numbers = new Float64Array(decisionLength(policy.windows.length));
    this.#queueFull = failures.queueFull(maxQueue);
    this.#timedOut = failures.timeout(commandTimeout);
    this.#deadlines = new Deadlines(commandTimeout, (request) => request.done(this.#timedOut));
    this.setLimits(policy);
  }

  get isCluster() {
    return this.#adapter.isCluster;
  }

  nodeOf(key) {
    return this.#adapter.nodeOf(key);
  }

  #countUnanswered(node, change) {
    const count = (this.#unanswered.get(node) ?? 0) + change;
    if (count > 0) this.#unanswered.set(node, count);
    else this.#unanswered.delete(node);
  }

  #end(request, failed, reply) {
    this.#countUnanswered(request.node, -1);
    if (this.#deadlines.end(request)) request.done(failed, reply);
  }

  #sendSource(request) {
    this.#isSendingSource = true;
    const { done } = request;
    request.done = (...results) => {
      this.#isSendingSource = false;
      for (const again of this.#withoutScript.splice(0)) {
        if (again.isPending) this.#transmit(again);
        else this.#countUnanswered(again.node, -1);
      }
      done(...results);
    };
    request.words = ['eval', SCRIPTS[this.policy.algorithm].source, ...request.words.slice(2)];
    this.#transmit(request);
  }

  #sendAgain(request) {
    request.timesUnknown += 1;
    const mayWait = this.#isSendingSource && request.timesUnknown < MOST_TIMES_UNKNOWN;
    if (mayWait) this.#withoutScript.push(request);
    else this.#sendSource(request);
  }

  #transmit(request) {
    answerOf(request).then(
      (reply) => this.#end(request, null, reply),
      (error) => {
        const isUnknown = String(error?.message).startsWith('NOSCRIPT');
        if (isUnknown && request.words[0] === 'evalsha' && request.isPending) {
          this.#sendAgain(request);
        } else {
          this.#end(request, failures.fromClientError(error, this.#circumstances));
        }
      },
    );
  }

  /** Calls `done(failed, reply)` once, later, even if the client never answers. */
  #request(send, node, words, done) {
    if (this.#unanswered.get(node) >= this.#circumstances.maxQueue) {
      process.nextTick(done, this.#queueFull);
      return;
    }
    const request = { send, words, node, done, deadline: 0, isPending: false, timesUnknown: 0 };
    this.#deadlines.begin(request);
    this.#countUnanswered(node, 1);
    this.#transmit(request);
  }

  #requestAt(key, words, done) {
    this.#request((sent) => this.#adapter.send(key, sent), this.nodeOf(key), words, done);
  }

  #ask(send, words) {
    return promised((done) => this.#request(send, '', words, done));
  }

  command(key, words) {
    return promised((done) => this.#requestAt(key, words, done));
  }

  async masters() {
    const masters = await this.#ask(() => this.#adapter.masters(), []);
    return masters.map((send) => (words) => this.#ask(send, words));
  }

  /** `call` is of callNumbers, `amounts` of amountsOf or settledAmountsOf. */
  #runOn(keys, call, amounts, ofPolicy = this.#policyNumbers.numbers) {
    const { sha1 } = SCRIPTS[this.policy.algorithm];
    const ofKeys = typeof amounts === 'number' ? [] : amounts;
    const args = runArguments(keys, call, ofPolicy, this.#policyNumbers.hasLongLogs, ofKeys);
    return ['evalsha', sha1, String(keys.length), ...keys, ...args];
  }

  decide({ operation, id, cost, isFull, now, max, done }) {
    const key = this.keyOf(id);
    const amounts = amountsOf(this.policy, cost);
    const call = callNumbers(operation, isFull, now, costNumberOf(this.policy, amounts));
    const words = this.#runOn([key], call, amounts, this.#policyNumbers.within?.(max, operation));
    const read = isFull ? readFull : readBrief;
    const numbers = this.#numbers;
    this.#requestAt(key, words, (failed, reply) => {
      done(failed ?? read(reply, numbers, numbers.length), numbers);
    });
  }

  change({ operation, id, now }, { amounts, at, generation }) {
    const key = this.keyOf(id);
    const cost = costNumberOf(this.policy, amounts);
    const call = callNumbers(operation, false, now, cost, at, generation);
    return this.command(key, this.#runOn([key], call, amounts));
  }

  /** One call for each slot of a cluster and for each 1000 ids. */
  async decideMany(ids, now) {
    const keys = ids.map((id) => this.keyOf(id));
    const { length } = this.#numbers;
    const all = new Float64Array(ids.length * length);
    const one = amountsOf(this.policy, 1);
    const call = callNumbers(OPERATIONS.ATTEMPT, true, now, costNumberOf(this.policy, one));
    const decidePart = async (indexes) => {
      const part = indexes.map((i) => keys[i]);
      const reply = await this.command(part[0], this.#runOn(part, call, one));
      const failed = readFull(reply, all, length, indexes);
      if (failed !== null) throw failed;
    };
    await Promise.all(partsOf(keys, this.isCluster).map(decidePart));
    return all;
  }

  setLimits(next) {
    this.#policyNumbers = createPolicyNumbers(next);
  }

  stats() {
    let unanswered = 0;
    for (const count of this.#unanswered.values()) unanswered += count;
    return { isUp: this.#adapter.isUp(), pending: this.#deadlines.pending, unanswered };
  }

  /** The owner closes the client; pending calls settle within their deadlines. */
  async close() {}
}

module.exports = { ClientBackend };
