// The backend over a user's client, whose limiters share batches.
'use strict';

const { RedisBackend } = require('./backend');
const { Batches } = require('./batches');
const { Questions } = require('./questions');
const { amountsOf, costNumberOf } = require('./script');

const batchesByClient = new WeakMap();

/** One for each client, as long as its key prefix stays. */
function batchesOf({ kind, client }) {
  const adapter = kind.connect(client);
  const known = batchesByClient.get(client);
  if (known?.adapter.prefix === adapter.prefix) return known;
  const batches = new Batches(adapter);
  batchesByClient.set(client, batches);
  return batches;
}

class ClientBackend extends RedisBackend {
  #batches;
  #adapter;
  #calls;
  #questions;

  constructor({ connection, policy, namespace }) {
    const batches = batchesOf(connection);
    super(policy, `${batches.adapter.prefix}${namespace}`);
    this.detectedClientType = connection.kind.type;
    this.maxQueue = connection.maxQueue;
    this.#batches = batches;
    this.#adapter = batches.adapter;
    this.#calls = batches.createPendingCalls(connection);
    this.setLimits(policy);
  }

  get isCluster() {
    return this.#adapter.isCluster;
  }

  nodeOf(key) {
    return this.#batches.nodeOf(key);
  }

  roomAt(node) {
    return this.#calls.roomAt(node);
  }

  decide(call) {
    const { cost } = call;
    // Not in the question, so that calls of different costs share a group.
    const isOneAmount = cost > 1 && !this.policy.isWeighted;
    const amounts = isOneAmount ? [cost] : amountsOf(this.policy, cost);
    const question = this.#questions.of(call, costNumberOf(this.policy, amounts));
    this.#batches.ask(this.#calls, call, this.keyOf(call.id), question, amounts);
  }

  change(call, operands) {
    const { amounts } = operands;
    const question = this.#questions.ofChange(call, costNumberOf(this.policy, amounts), operands);
    return new Promise((resolve, reject) => {
      const done = (failed, _, integer) => (failed === null ? resolve([integer]) : reject(failed));
      this.#batches.ask(this.#calls, { done }, this.keyOf(call.id), question, amounts);
    });
  }

  command(key, words) {
    return this.#ask(this.nodeOf(key), () => this.#adapter.send(key, words));
  }

  async masters() {
    const masters = await this.#ask('', () => this.#adapter.masters());
    return masters.map((send) => (words) => this.#ask('', () => send(words)));
  }

  #ask(node, send) {
    return this.#batches.command(this.#calls, node, send);
  }

  setLimits(next) {
    this.#questions = new Questions(next);
  }

  stats() {
    const { pending, unanswered } = this.#calls;
    return { isUp: this.#adapter.isUp(), pending, unanswered };
  }

  /** The owner closes the client; pending calls settle within their deadlines. */
  async close() {}
}

module.exports = { ClientBackend };
