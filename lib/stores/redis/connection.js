// A connection to Redis that limiters share: one in each thread for the same options, counted by reference.
'use strict';

const { sharedByCopies } = require('../../base/copies');
const { optionError, optionTypeError, typeError } = require('../../base/errors');
const { isPlainObject } = require('../../options/values');
const { readConnectionOptions } = require('./connection-options');
const { NativeClient } = require('./native-client');
const { addressName, findRoute } = require('./route');
const { createMasterFinder } = require('./sentinels');

/** The name of the only server, for messages. */
function serverName({ path, host, port, cluster, sentinels, name }) {
  if (cluster !== undefined) return '';
  if (sentinels !== undefined) return `master '${name}'`;
  return path ?? addressName({ host, port });
}

function createClient(options) {
  const findMaster = createMasterFinder(options);
  const find = (node) => findRoute(options, findMaster, node);
  const seeds = options.cluster?.map(addressName);
  return new NativeClient(options, find, serverName(options), seeds);
}

const collected = new FinalizationRegistry((connection) => connection.release());

/** Connections of all copies of the package. */
const connections = sharedByCopies('connections', () => new WeakSet());

class RedisConnection {
  #options; // private, because they may contain a password
  #client;
  #users = 0;

  /** @param {object} options as readConnectionOptions returns them */
  constructor(options) {
    this.#options = options;
    this.#client = createClient(options); // now, so that invalid options throw
    connections.add(this);
  }

  /** Does not run code of the value. */
  static isConnection(value) {
    return connections.has(value);
  }

  get maxQueue() {
    return this.#options.maxQueue;
  }

  get commandTimeout() {
    return this.#options.commandTimeout;
  }

  get isCluster() {
    return this.#options.cluster !== undefined;
  }

  /** The client, for one more user, which may be collected without a release(). */
  acquire(user) {
    this.#client ??= createClient(this.#options);
    this.#users += 1;
    collected.register(user, this, user);
    return this.#client;
  }

  /** Closes the client with its last user. */
  release(user) {
    if (user !== undefined) collected.unregister(user);
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#client.close();
    this.#client = undefined;
  }
}

const shared = new Map(); // WeakRefs, by options
const numbers = new WeakMap();
let numbered = 0;

/** Equal for equal options. Functions and instances of classes are equal only to themselves. */
function keyOf(options) {
  return JSON.stringify(options, (_, value) => {
    if (isPlainObject(value)) return Object.fromEntries(Object.entries(value).sort());
    const isOpaque = typeof value === 'object' || typeof value === 'function';
    if (!isOpaque || value === null || Array.isArray(value)) return value;
    if (!numbers.has(value)) numbers.set(value, ++numbered);
    return { number: numbers.get(value) };
  });
}

const forgotten = new FinalizationRegistry((key) => {
  if (shared.get(key)?.deref() === undefined) shared.delete(key);
});

/** The connection for these options. */
function sharedConnection(options) {
  const key = keyOf(options);
  let connection = shared.get(key)?.deref();
  if (connection === undefined) {
    connection = new RedisConnection(options);
    shared.set(key, new WeakRef(connection));
    forgotten.register(connection, key);
  }
  return connection;
}

/** See index.d.ts. */
function createRedisConnection(redis, more) {
  if (more !== undefined) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      "createRedisConnection: expected one argument, a URL or an object of options with 'url'",
    );
  }
  if (typeof redis !== 'string' && !isPlainObject(redis)) {
    throw optionTypeError('redis', 'a URL or an object of connection options', redis);
  }
  const checked = readConnectionOptions('redis', redis);
  if (checked.client !== undefined) throw optionError('redis.client', 'has its own connection');
  return new RedisConnection(checked);
}

module.exports = { RedisConnection, createRedisConnection, sharedConnection };
