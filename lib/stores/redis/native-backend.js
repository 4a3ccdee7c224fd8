// The backend of the native client: the checks of one turn of the event loop in few commands.
'use strict';

const { decisionLength } = require('../../base/decision');
const { OPERATIONS } = require('../remote/operations');
const { RedisBackend } = require('./backend');
const failures = require('./failures');
const { amountsOf, createPolicyNumbers } = require('./script');
const SCRIPTS = require('./scripts');

const MOST_OF_ONE_TURN = 5000;

class NativeBackend extends RedisBackend {
  detectedClientType = 'hiredis';
  #connection;
  #client;
  #native; // the functions of the limiter in the client
  #policyNumbers;
  #within;
  #length;
  /** The client holds it weakly. */
  #changed = (isUp) => this.publishConnection(isUp);

  /** @param {object} connection a RedisConnection */
  constructor({ connection, policy, namespace }) {
    super(policy, namespace);
    this.#connection = connection;
    this.#client = connection.acquire(this);
    this.#length = decisionLength(policy.windows.length);
    const { numbers, within, hasLongLogs } = createPolicyNumbers(policy);
    this.#policyNumbers = new Float64Array(numbers);
    this.#within = within;
    this.#native = this.#client.createLimiter({
      keyPrefix: namespace,
      script: SCRIPTS[policy.algorithm],
      policy: this.#policyNumbers,
      windows: policy.windows.length,
      hasLongLogs,
      hasNames: policy.isWeighted,
    });
    this.#client.whenChanged(this.#changed);
  }

  get isCluster() {
    return this.#connection.isCluster;
  }

  nodeOf(key) {
    return this.#client.nodeOf(key);
  }

  decide({ operation, id, cost, isFull, now, max, done }) {
    const amounts = amountsOf(this.policy, cost);
    const call = this.#within
      ? this.#native.ask(id, operation, isFull, amounts, now, this.#numbersWithin(max, operation))
      : this.#native.ask(id, operation, isFull, amounts, now);
    this.#client.wait(call, this, done);
  }

  #numbersWithin(max, operation) {
    return new Float64Array(this.#within(max, operation));
  }

  change({ operation, id, now }, { amounts, at, generation }) {
    return new Promise((resolve, reject) => {
      const ofPolicy = this.#policyNumbers;
      const call = this.#native.ask(id, operation, false, amounts, now, ofPolicy, at, generation);
      const done = (failed, _, integer) => (failed === null ? resolve([integer]) : reject(failed));
      this.#client.wait(call, this, done);
    });
  }

  command(key, words) {
    return this.#client.command(words, { key, owner: this });
  }

  async masters() {
    await this.command(this.keyOf(''), ['pttl', this.keyOf('')]); // a cluster's nodes are known once one has answered
    const { owners } = this.#client.nodes();
    return owners.map((node) => (words) => this.#client.command(words, { node, owner: this }));
  }

  /** In turns of as many as may be pending at once. */
  async decideMany(ids, now) {
    const all = new Float64Array(ids.length * this.#length);
    const most = Math.min(this.#connection.maxQueue, MOST_OF_ONE_TURN);
    for (let first = 0; first < ids.length; first += most) {
      const turn = ids.slice(first, first + most);
      this.#assertRoom(turn); // before any of them is recorded
      await Promise.all(turn.map((id, i) => this.#attemptInto(all, first + i, id, now)));
    }
    return all;
  }

  /** Writes the numbers to `all`, because they are valid in the callback only. */
  #attemptInto(all, place, id, now) {
    return new Promise((resolve, reject) => {
      const done = (failed, numbers) => {
        if (failed !== null) return reject(failed);
        all.set(numbers, place * this.#length);
        return resolve();
      };
      this.decide({ operation: OPERATIONS.ATTEMPT, id, cost: 1, isFull: true, now, done });
    });
  }

  /** Throws if a node has no room for all of these calls. */
  #assertRoom(ids) {
    const calls = new Map();
    for (const id of ids) {
      const node = this.partOf(id);
      calls.set(node, (calls.get(node) ?? 0) + 1);
    }
    for (const [node, count] of calls) {
      if (count > this.#client.roomAt(node)) throw failures.queueFull(this.#connection.maxQueue);
    }
  }

  /** Calls that were made keep the earlier limits. */
  setLimits(next) {
    const { numbers, hasLongLogs } = createPolicyNumbers(next);
    this.#policyNumbers = new Float64Array(numbers);
    this.#native.setPolicy(this.#policyNumbers, hasLongLogs);
  }

  stats() {
    return this.#client.stats();
  }

  /** Fails pending calls. The connection stays open for other limiters. */
  async close() {
    this.#client.abandon(this);
    this.#connection.release(this);
  }
}

module.exports = { NativeBackend };
