// The backend over a user's client, whose limiters share batches.
'use strict';

const { RedisBackend } = require('./backend');
const { Batches } = require('./batches');
const { Questions } = require('./questions');

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
  #calls;
  #questions;

  constructor({ connection, policy, namespace }) {
    const batches = batchesOf(connection);
    super(policy, `${batches.adapter.prefix}${namespace}`);
    this.detectedClientType = connection.kind.type;
    this.maxQueue = connection.maxQueue;
    this.isCluster = batches.adapter.isCluster;
    this.#batches = batches;
    this.#calls = batches.createPendingCalls(connection);
    this.setLimits(policy);
  }

  nodeOf(key) {
    return this.#batches.nodeOf(key);
  }

  roomAt(node) {
    return this.#calls.roomAt(node);
  }

  decide(call) {
    const question = this.#questions.of(call);
    this.#ask(call, question, this.#questions.amountsOf(call.cost));
  }

  change(call, operands) {
    return new Promise((resolve, reject) => {
      const done = (failed, _, integer) => (failed === null ? resolve([integer]) : reject(failed));
      const question = this.#questions.ofChange(call, operands);
      const { amounts } = operands;
      this.#ask({ ...call, done }, question, typeof amounts === 'number' ? 0 : amounts);
    });
  }

  #ask(call, question, amounts) {
    this.#batches.ask(this.#calls, call, this.keyOf(call.id), question, amounts);
  }

  command(key, words) {
    return this.#command(this.nodeOf(key), ({ send }) => send(key, words));
  }

  async masters() {
    const masters = await this.#command('', (adapter) => adapter.masters());
    return masters.map((send) => (words) => this.#command('', () => send(words)));
  }

  #command(node, send) {
    return this.#batches.command(this.#calls, node, send);
  }

  setLimits(next) {
    this.#questions = new Questions(next);
  }

  stats() {
    return { isUp: this.#batches.adapter.isUp(), ...this.#calls.stats() };
  }

  /** The owner closes the client; pending calls settle within their deadlines. */
  async close() {}
}

module.exports = { ClientBackend };
