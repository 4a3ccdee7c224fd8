// The backend of the native client: the checks of one turn of the event loop in few commands.
'use strict';

const { RedisBackend } = require('./backend');
const SCRIPTS = require('./scripts');

class NativeBackend extends RedisBackend {
  detectedClientType = 'hiredis';
  #connection;
  #client;
  #native; // the functions of the limiter in the client
  /** The client holds it weakly. */
  #changed = (isUp) => this.publishConnection(isUp);

  /** @param {object} connection a RedisConnection */
  constructor({ connection, policy, namespace, suffix = '' }) {
    super(policy, namespace, suffix);
    this.#connection = connection;
    this.#client = connection.acquire(this);
    const { windows, algorithm } = policy;
    this.#native = this.#client.createLimiter(
      { keyPrefix: namespace, keySuffix: suffix },
      SCRIPTS[algorithm],
      windows.length,
    );
    this.#client.whenChanged(this.#changed);
  }

  get isCluster() {
    return this.#connection.isCluster;
  }

  get maxQueue() {
    return this.#connection.maxQueue;
  }

  get commandTimeout() {
    return this.#connection.commandTimeout;
  }

  nodeOf(key) {
    return this.#client.nodeOf(key);
  }

  roomAt(node) {
    return this.#client.roomAt(node);
  }

  askKey({ id, done }, { head, isApart, isChange, length }, amounts) {
    this.#client.wait(this.#native.ask(id, head, length, isApart, isChange, amounts), this, done);
  }

  command(key, words) {
    return this.#client.command(words, { key, owner: this });
  }

  async masters() {
    await this.command(this.keyOf(''), ['pttl', this.keyOf('')]); // a cluster's nodes are known once one has answered
    const { owners } = this.#client.nodes();
    return owners.map((node) => (words) => this.#client.command(words, { node, owner: this }));
  }

  stats() {
    return this.#client.stats();
  }

  /** What waits for the end of the turn is sent then, because nobody else closes the connection. */
  flush() {}

  /** Fails pending calls. The connection stays open for other limiters. */
  async close() {
    this.#client.abandon(this);
    this.#connection.release(this);
  }
}

module.exports = { NativeBackend };
