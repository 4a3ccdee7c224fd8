// The backend over a user's client, whose limiters share batches.
'use strict';

const { RedisBackend } = require('./backend');
const { Batches } = require('./batches');

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

  constructor({ connection, policy, namespace, suffix }) {
    const batches = batchesOf(connection);
    super(policy, `${batches.adapter.prefix}${namespace}`, suffix);
    this.detectedClientType = connection.kind.type;
    this.maxQueue = connection.maxQueue;
    this.commandTimeout = connection.commandTimeout;
    this.isCluster = batches.adapter.isCluster;
    this.#batches = batches;
    this.#calls = batches.createPendingCalls(connection);
  }

  nodeOf(key) {
    return this.#batches.nodeOf(key);
  }

  roomAt(node) {
    return this.#calls.roomAt(node);
  }

  askKey(call, question, amounts) {
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

  stats() {
    return { isUp: this.#batches.adapter.isUp(), ...this.#calls.stats() };
  }

  /** Sends what waits for the end of the turn. */
  flush() {
    this.#batches.flush();
  }

  /** The owner may close the client next, so pending calls are sent before. They settle within their deadlines. */
  async close() {
    this.flush();
  }
}

module.exports = { ClientBackend };
