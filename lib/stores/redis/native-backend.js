// The backend of the native client: the checks of one turn of the event loop in few commands.
'use strict';

const { RedisBackend } = require('./backend');
const { amountsOf, createPolicyNumbers } = require('./script');
const SCRIPTS = require('./scripts');

class NativeBackend extends RedisBackend {
  detectedClientType = 'hiredis';
  #connection;
  #client;
  #native; // the functions of the limiter in the client
  #policyNumbers;
  #within;
  /** The client holds it weakly. */
  #changed = (isUp) => this.publishConnection(isUp);

  /** @param {object} connection a RedisConnection */
  constructor({ connection, policy, namespace }) {
    super(policy, namespace);
    this.#connection = connection;
    this.#client = connection.acquire(this);
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

  get maxQueue() {
    return this.#connection.maxQueue;
  }

  nodeOf(key) {
    return this.#client.nodeOf(key);
  }

  roomAt(node) {
    return this.#client.roomAt(node);
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
