// The options of a limiter on Redis: redis (or client), namespace and onError.
'use strict';

const { randomBytes } = require('node:crypto');
const { optionTypeError, typeError } = require('../../base/errors');
const { loadBinding } = require('../../native');
const { isPlainObject } = require('../../options/values');
const { readNamespace: readGivenNamespace, readOnError } = require('../../options/remote');
const { clientKindOf } = require('./clients');
const { readConnectionOptions, saysWhere } = require('./connection-options');
const { RedisConnection, sharedConnection } = require('./connection');

const EXPECTED =
  'a client of ioredis or redis (node-redis), a redis://, rediss:// or unix:// URL, or an object of ' +
  'connection options that says where Redis is';

/** The random default shares its counts with no other limiter. */
function readNamespace(namespace) {
  if (namespace !== undefined) return readGivenNamespace(namespace);
  return `rate-limiter-${randomBytes(6).toString('base64url')}`;
}

function readConnection(name, value) {
  if (RedisConnection.isConnection(value)) return value;
  if (name === 'connection') {
    throw optionTypeError(name, 'what createRedisConnection returns', value);
  }
  const isUrl = typeof value === 'string';
  const options = clientKindOf(value) === undefined ? value : { client: value };
  // Other objects are clients of an unknown kind.
  if (!isUrl && !isPlainObject(options)) throw optionTypeError(name, EXPECTED, value);
  const checked = readConnectionOptions(name, options);
  // `client` without a place is an error, not the server on this host.
  const isPlace = isUrl || name !== 'client' || saysWhere(options);
  if (!isPlace) throw optionTypeError(name, EXPECTED, value);
  return checked.client === undefined ? sharedConnection(checked) : checked;
}

/** The options that say where Redis is, which mean the same. */
const NAMES = ['redis', 'client', 'connection'];

/**
 * The `connection` of the result is a RedisConnection, or a user's `client` with its `kind` (see clients/index.js),
 * commandTimeout and maxQueue.
 */
function readRedisOptions(options) {
  const [name, other] = NAMES.filter((one) => options[one] !== undefined);
  if (other !== undefined && options[other] !== options[name]) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `options '${name}' and '${other}': expected one of them, which mean the same, got two different values`,
    );
  }
  const checked = {
    connection: readConnection(name, options[name]),
    namespace: readNamespace(options.namespace),
    onError: readOnError(options.onError),
  };
  if (checked.onError === 'memory') loadBinding(); // so that what decides in an outage is there before one
  return checked;
}

module.exports = { readNamespace, readRedisOptions };
