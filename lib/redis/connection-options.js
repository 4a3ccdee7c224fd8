// The options of a connection of rollgate's own: checked, with defaults.
'use strict';

const { optionRangeError, optionTypeError, rangeError, typeError } = require('../errors');
const { readNumber, readObject, rejectUnknownOptions } = require('../option-values');
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
const LONGEST_TIMER = 2 ** 31 - 1;

/** Where to connect can be said in one way only. */
const PLACES = [['url'], ['cluster'], ['path'], ['host', 'port']];

/** Of an object that is to say where, or through what. */
const PLACE_NAMES = ['client', ...PLACES.flat()];

function readInteger(name, value, least, most, byDefault) {
  if (value === undefined) return byDefault;
  const expected =
    most === Number.MAX_SAFE_INTEGER
      ? `an integer >= ${least}`
      : `an integer from ${least} to ${most}`;
  const isInRange = (n) => Number.isInteger(n) && n >= least && n <= most;
  return readNumber(name, value, expected, isInRange);
}

function readText(name, value, expected = 'a non-empty string', isGood = (text) => text !== '') {
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw optionTypeError(name, expected, value);
  if (!isGood(value)) throw optionRangeError(name, expected, value);
  return value;
}

/** What has an @ is not shown: there may be a password before it. */
function readHost(name, value) {
  const expected = 'the name or address of a host';
  if (typeof value === 'string' && value.includes('@')) {
    throw rangeError('ERR_ROLLGATE_OPTION', `option '${name}': expected ${expected} without an @`);
  }
  return readText(name, value, expected, (text) => /^[^\s/]+$/.test(text));
}

/** What came is not shown: it may be the password all the same. */
function readPassword(name, value) {
  if (value === undefined || typeof value === 'string') return value || undefined;
  throw typeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected a string, got a value of type ${typeof value}`,
  );
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

/** What concerns each call, whoever connects. */
function readCallOptions(name, { commandTimeout, maxQueue }) {
  return {
    commandTimeout: readInteger(`${name}.commandTimeout`, commandTimeout, 1, LONGEST_TIMER, 500),
    maxQueue: readInteger(`${name}.maxQueue`, maxQueue, 1, Number.MAX_SAFE_INTEGER, 10_000),
  };
}

/** A URL as an option; never shown. */
function readUrlOption(name, url) {
  if (typeof url === 'string') return readUrl(name, url);
  throw optionTypeError(name, 'a redis://, rediss:// or unix:// URL', url);
}

/** The seeds of a cluster must agree in all but where they are. */
function readCluster(name, urls) {
  const own = Array.isArray(urls) ? Array.from(urls) : [];
  if (own.length === 0) {
    const came = Array.isArray(urls) ? 'an empty one' : `a value of type ${typeof urls}`;
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `option '${name}': expected a list of URLs, got ${came}`,
    );
  }
  const seeds = own.map((url, i) => readUrlOption(`${name}[${i}]`, url));
  const [first] = seeds;
  for (const [i, seed] of seeds.entries()) {
    const refuse = (expected) =>
      typeError('ERR_ROLLGATE_OPTION', `option '${name}[${i}]': expected ${expected}`);
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
    path: readText(`${name}.path`, options.path),
  };
}

/**
 * Checks the options of a connection; what is said beside a URL wins over what the URL says.
 * `urlName` is what the URL is called in messages.
 *
 * @returns {{ host: string, port: number, path: string | undefined,
 *   cluster: { host: string, port: number }[] | undefined, username: string | undefined,
 *   password: string | undefined, db: number, tls: object | undefined, connectTimeout: number,
 *   commandTimeout: number, maxQueue: number, retry: { min: number, max: number },
 *   connectionName: string | undefined }} `path` and `cluster` go before host and port; `tls` is an
 *   object for node:tls wherever TLS is asked for; times in ms
 */
function readConnectionOptions(name, options, urlName) {
  rejectUnknownOptions(options, CONNECTION_NAMES, { place: name });
  const place = readPlace(name, options, urlName);
  const db = readInteger(`${name}.db`, options.db, 0, LONGEST_TIMER);
  if (place.cluster !== undefined && db > 0) {
    throw optionRangeError(`${name}.db`, '0, the only database of a cluster', db);
  }
  const tls = options.tls === undefined ? place.tls : readTls(`${name}.tls`, options.tls);
  const password = readPassword(`${name}.password`, options.password) ?? place.password;
  const username = readText(`${name}.username`, options.username) ?? place.username;
  if (username !== undefined && password === undefined) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      `option '${name}.password': expected one beside a username, got undefined`,
    );
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
    connectTimeout: readInteger(
      `${name}.connectTimeout`,
      options.connectTimeout,
      1,
      LONGEST_TIMER,
      2000,
    ),
    ...readCallOptions(name, options),
    retry: readRetry(`${name}.retry`, options.retry),
    connectionName: readText(
      `${name}.connectionName`,
      options.connectionName,
      'printable ASCII without spaces',
      (text) => /^[!-~]+$/.test(text),
    ),
  };
}

module.exports = { CONNECTION_NAMES, PLACE_NAMES, readCallOptions, readConnectionOptions };
