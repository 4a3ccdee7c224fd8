// The options of a limiter on Redis: redis (or client), namespace and onError.
'use strict';

const { randomBytes } = require('node:crypto');
const { optionError, optionTypeError, typeError } = require('../errors');
const { loadAddon } = require('../native');
const { readObject, rejectUnknownOptions } = require('../option-values');
const { readNamespace: readGivenNamespace, readOnError } = require('../store-options');
const { clientKindOf } = require('./clients');
const {
  CONNECTION_NAMES,
  PLACE_NAMES,
  readCallOptions,
  readConnectionOptions,
} = require('./connection-options');
const { assertNativeClient } = require('./native-backend');

const EXPECTED =
  'a redis://, rediss:// or unix:// URL, an object of connection options, or a client of ioredis or ' +
  'redis (node-redis)';

const EXPECTED_CLIENT =
  'a client of ioredis or redis (node-redis), or a URL or an object that says where Redis is';

/** The random default shares its counts with no other limiter. */
function readNamespace(namespace) {
  if (namespace !== undefined) return readGivenNamespace(namespace);
  return `rate-limiter-${randomBytes(6).toString('base64url')}`;
}

/** Other objects are clients of an unknown kind. */
function isPlainObject(value) {
  if (typeof value !== 'object' || value === null) return false;
  try {
    const prototype = Object.getPrototypeOf(value);
    return prototype === null || Object.getPrototypeOf(prototype) === null;
  } catch {
    return false; // a revoked proxy
  }
}

function readClient(name, client) {
  const kind = clientKindOf(client);
  if (kind === undefined) {
    throw optionTypeError(name, 'a client of ioredis or redis (node-redis)', client);
  }
  return { client, kind };
}

/** { client } with the options that are allowed with it. */
function readGivenClient(name, options) {
  rejectUnknownOptions(options, CONNECTION_NAMES, { place: name });
  const other = CONNECTION_NAMES.find(
    (known) =>
      options[known] !== undefined && !['client', 'commandTimeout', 'maxQueue'].includes(known),
  );
  if (other !== undefined) {
    const why = `conflicts with '${name}.client', which has its own connection`;
    throw optionError(`${name}.${other}`, why);
  }
  return { ...readClient(`${name}.client`, options.client), ...readCallOptions(name, options) };
}

/** Also true with an unknown option, which has its own message later. */
function saysWhere(options) {
  const names = Object.keys(options).filter((name) => options[name] !== undefined);
  return names.some((name) => PLACE_NAMES.includes(name) || !CONNECTION_NAMES.includes(name));
}

function readConnection(name, value) {
  if (typeof value === 'string') return readConnectionOptions(name, { url: value }, name);
  if (clientKindOf(value) !== undefined) {
    return { ...readClient(name, value), ...readCallOptions(name, {}) };
  }
  if (!isPlainObject(value)) throw optionTypeError(name, EXPECTED, value);
  readObject(name, value);
  // `client` without a place is an error, not the server on this host.
  if (name === 'client' && !saysWhere(value)) throw optionTypeError(name, EXPECTED_CLIENT, value);
  return value.client === undefined
    ? readConnectionOptions(name, value, `${name}.url`)
    : readGivenClient(name, value);
}

/**
 * A `connection` has commandTimeout and maxQueue, and either `client` with its `kind` (see clients/index.js) or
 * the result of readConnectionOptions.
 */
function readRedisOptions({ redis, client, namespace, onError }) {
  if (redis !== undefined && client !== undefined && redis !== client) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      "options 'redis' and 'client': expected one of them, which mean the same, got two different values",
    );
  }
  const checked = {
    connection:
      redis === undefined ? readConnection('client', client) : readConnection('redis', redis),
    namespace: readNamespace(namespace),
    onError: readOnError(onError),
  };
  if (checked.connection.client === undefined) assertNativeClient();
  if (checked.onError === 'memory') loadAddon(); // a missing addon fails now, not in an outage
  return checked;
}

module.exports = { readNamespace, readRedisOptions };
