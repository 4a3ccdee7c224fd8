// The options of rollgate's own connection to Redis: checked, with defaults; TLS as the native side takes it.
'use strict';

const tls = require('node:tls');
const {
  failure,
  optionError,
  optionRangeError,
  optionTypeError,
  rangeError,
  typeError,
} = require('../errors');
const { loadAddon } = require('../native');
const values = require('../option-values');
const { readObject, rejectUnknownOptions } = values;
const { LONGEST_TIMER, readCommandTimeout } = require('../store-options');
const { readUrl } = require('./url');

const CONNECTION_NAMES = [
  'url',
  'host',
  'port',
  'path',
  'username',
  'password',
  'db',
  'tls',
  'connectTimeout',
  'commandTimeout',
  'maxQueue',
  'retry',
  'connectionName',
  'cluster',
  'client',
];

/** The ways to say where Redis is, which exclude each other. */
const PLACES = [['url'], ['cluster'], ['path'], ['host', 'port']];

/** An object with one of these says where Redis is, or has a client. */
const PLACE_NAMES = ['client', ...PLACES.flat()];

function readInteger(name, value, least, most, byDefault) {
  return value === undefined ? byDefault : values.readInteger(name, value, least, most);
}

function readString(name, value, expected = 'a non-empty string', pattern = /./s) {
  if (value === undefined) return undefined;
  return values.readString(name, value, expected, (string) => pattern.test(string));
}

/** A value with an @ is not shown, because it may contain a password. */
function readHost(name, value) {
  const expected = 'the name or address of a host';
  if (typeof value === 'string' && value.includes('@')) {
    throw rangeError('ERR_ROLLGATE_OPTION', `option '${name}': expected ${expected} without an @`);
  }
  return readString(name, value, expected, /^[^\s/]+$/);
}

/** The value is not shown: a password of a wrong type is still a password. */
function readPassword(name, value) {
  if (value === undefined || typeof value === 'string') return value || undefined;
  throw optionError(name, `expected a string, got a value of type ${typeof value}`);
}

function readTls(name, value) {
  if (value === undefined || value === false) return undefined;
  if (value === true) return {};
  if (typeof value !== 'object') {
    throw optionTypeError(name, "true, false or an object of node:tls's options", value);
  }
  return readObject(name, value);
}

function readRetry(name, value = {}) {
  rejectUnknownOptions(readObject(name, value), ['min', 'max'], { place: name });
  const min = readInteger(`${name}.min`, value.min, 1, LONGEST_TIMER, 50);
  const byDefault = Math.max(min, 2000);
  return { min, max: readInteger(`${name}.max`, value.max, min, LONGEST_TIMER, byDefault) };
}

/** The options of calls, which also hold for a user's client. */
function readCallOptions(name, { commandTimeout, maxQueue }) {
  return {
    commandTimeout: readCommandTimeout(`${name}.commandTimeout`, commandTimeout),
    maxQueue: maxQueue === undefined ? 10_000 : values.readCount(`${name}.maxQueue`, maxQueue),
  };
}

/** A URL is never shown. */
function readUrlOption(name, url) {
  if (typeof url === 'string') return readUrl(name, url);
  throw optionTypeError(name, 'a redis://, rediss:// or unix:// URL', url);
}

/** The seeds of a cluster must be equal except for host and port. */
function readCluster(name, urls) {
  const own = Array.isArray(urls) ? Array.from(urls) : [];
  if (own.length === 0) {
    const came = Array.isArray(urls) ? 'an empty one' : `a value of type ${typeof urls}`;
    throw optionError(name, `expected a list of URLs, got ${came}`);
  }
  const seeds = own.map((url, i) => readUrlOption(`${name}[${i}]`, url));
  const [first] = seeds;
  for (const [i, seed] of seeds.entries()) {
    const refuse = (expected) => optionError(`${name}[${i}]`, `expected ${expected}`);
    if (seed.path !== undefined || (seed.db ?? 0) !== 0) {
      throw refuse('redis:// or rediss:// without a database, of which a cluster has one only');
    }
    const agrees =
      seed.username === first.username &&
      seed.password === first.password &&
      (seed.tls === undefined) === (first.tls === undefined);
    if (!agrees) throw refuse('the same scheme, user and password as in the first of the list');
  }
  const { username, password, tls } = first;
  const cluster = seeds.map(({ host = '127.0.0.1', port = 6379 }) => ({ host, port }));
  return { username, password, tls, cluster };
}

function readPlace(name, options, urlName) {
  const given = PLACES.map((names) => names.find((known) => options[known] !== undefined));
  const [one, other] = given.filter(Boolean);
  if (other !== undefined) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `options '${name}.${one}' and '${name}.${other}': expected only one of them`,
    );
  }
  if (options.url !== undefined) return readUrlOption(urlName, options.url);
  if (options.cluster !== undefined) return readCluster(`${name}.cluster`, options.cluster);
  return {
    host: readHost(`${name}.host`, options.host),
    port: readInteger(`${name}.port`, options.port, 1, 65_535),
    path: readString(`${name}.path`, options.path),
  };
}

/**
 * Checks the options of a connection. Other options override the URL. `urlName` names the URL in messages.
 * In the result, `path` and `cluster` override host and port; `tls` has options of node:tls, or is undefined.
 */
function readConnectionOptions(name, options, urlName) {
  rejectUnknownOptions(options, CONNECTION_NAMES, { place: name });
  const place = readPlace(name, options, urlName);
  const db = readInteger(`${name}.db`, options.db, 0, LONGEST_TIMER);
  if (place.cluster !== undefined && db > 0) {
    throw optionRangeError(`${name}.db`, '0, the only database of a cluster', db);
  }
  const { connectTimeout, connectionName } = options;
  const tls = options.tls === undefined ? place.tls : readTls(`${name}.tls`, options.tls);
  const password = readPassword(`${name}.password`, options.password) ?? place.password;
  const username = readString(`${name}.username`, options.username) ?? place.username;
  if (username !== undefined && password === undefined) {
    throw optionError(`${name}.password`, 'required with a username');
  }
  return {
    host: place.host ?? '127.0.0.1',
    port: place.port ?? 6379,
    path: place.path,
    cluster: place.cluster,
    username,
    password,
    db: db ?? place.db ?? 0,
    tls,
    connectTimeout: readInteger(`${name}.connectTimeout`, connectTimeout, 1, LONGEST_TIMER, 2000),
    ...readCallOptions(name, options),
    retry: readRetry(`${name}.retry`, options.retry),
    connectionName: readString(
      `${name}.connectionName`,
      connectionName,
      'printable ASCII without spaces',
      /^[!-~]+$/,
    ),
  };
}

const TLS_NAMES = ['ca', 'cert', 'key', 'passphrase', 'rejectUnauthorized', 'servername'];

/** PEM as a string or Buffer. Not shown, because it may be a private key. */
function readPem(name, value) {
  if (typeof value === 'string') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  throw optionTypeError(name, 'PEM as a string or Buffer', typeof value);
}

/** Options of node:tls in the form of the native client; undefined without TLS. */
function readNativeTls(options) {
  if (options === undefined) return undefined;
  if (!loadAddon().redisHasTls) {
    throw failure(
      'ERR_ROLLGATE_UNSUPPORTED',
      'the native Redis client has no TLS in this build, for its hiredis has none (it takes hiredis 1.0 ' +
        "or newer with SSL): give 'redis' a client of ioredis or redis (node-redis) that connects with " +
        'TLS, or go through a TLS tunnel on this host',
    );
  }
  rejectUnknownOptions(options, TLS_NAMES, { place: 'redis.tls' });
  const { ca = tls.rootCertificates, cert = '', key = '' } = options;
  const { passphrase = '', servername = '' } = options;
  return {
    ca: (Array.isArray(ca) ? ca : [ca]).map((one) => readPem('redis.tls.ca', one)),
    cert: readPem('redis.tls.cert', cert),
    key: readPem('redis.tls.key', key),
    passphrase,
    verifies: options.rejectUnauthorized !== false,
    serverName: servername,
  };
}

module.exports = {
  CONNECTION_NAMES,
  PLACE_NAMES,
  readCallOptions,
  readConnectionOptions,
  readNativeTls,
};
