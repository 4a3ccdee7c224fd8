// The options of a connection to Redis: checked, with defaults.
'use strict';

const {
  optionError,
  optionRangeError,
  optionSecretError,
  optionTypeError,
  typeError,
} = require('../../base/errors');
const values = require('../../options/values');
const { LONGEST_TIMER } = require('../../base/timers');
const { DEFAULT_COMMAND_TIMEOUT } = require('../../options/remote');
const { clientKindOf } = require('./clients');
const { readTls } = require('./tls');
const { readUrl } = require('./url');

const { readEach, readNonEmpty, readSecret, stringReader } = values;

const integer = (least, most) => (name, value) => values.readInteger(name, value, least, most);

const readMs = integer(1, LONGEST_TIMER);

const readHostName = stringReader('the name or address of a host, without an @', (host) =>
  /^[^\s/@\0]+$/.test(host),
);

/** Masks a value that contains '@': it may hold a password. */
function readHost(name, value) {
  return readHostName(name, typeof value === 'string' ? value.replace(/^.*@.*$/s, '***@') : value);
}

const ADDRESS = { host: readHost, port: integer(1, 65_535) };

/** Does not show a value that is not an array: it may be a URL with a password. */
function readList(name, value, expected) {
  if (Array.isArray(value)) return values.readList(name, value, expected);
  throw optionSecretError(name, expected, value);
}

/** The seeds of a cluster must be equal except for host and port. */
function readCluster(name, value) {
  const urls = readList(name, value, 'a list of URLs');
  const seeds = urls.map((url, i) => readUrl(`${name}[${i}]`, url));
  const [{ username, password, isTls }] = seeds;
  for (const [i, seed] of seeds.entries()) {
    const refuse = (expected) => optionError(`${name}[${i}]`, `expected ${expected}`);
    if (seed.path !== undefined || seed.db > 0) {
      throw refuse('redis:// or rediss:// without a database, of which a cluster has one only');
    }
    if (seed.username !== username || seed.password !== password || seed.isTls !== isTls) {
      throw refuse('the same scheme, user and password as in the first of the list');
    }
  }
  const cluster = seeds.map(({ host = '127.0.0.1', port = 6379 }) => ({ host, port }));
  return { username, password, isTls, cluster };
}

/** Sentinels use the option tls too, so their URLs must be redis://. */
function readSentinelUrl(name, value) {
  const { isTls, ...address } = readUrl(name, value);
  if (isTls) throw optionError(name, 'expected redis:// and the option tls');
  return address;
}

/** Objects as in ioredis, or URLs. */
function readSentinels(name, value) {
  return readList(name, value, 'a list of { host, port }').map((given, i) => {
    const place = `${name}[${i}]`;
    const address = typeof given === 'string' ? readSentinelUrl(place, given) : given;
    values.rejectUnknownOptions(values.readObject(place, address), ['host', 'port'], { place });
    return { host: '127.0.0.1', port: 26_379, ...readEach(place, address, ADDRESS) };
  });
}

/** Each entry is { host, port }, by 'host:port' as announced. */
function readAddressMap(name, value) {
  if (typeof value === 'function') return value;
  if (!values.isPlainObject(value)) throw optionTypeError(name, 'an object or a function', value);
  const entries = Object.entries(value).map(([announced, to]) => {
    const place = `${name}['${announced}']`;
    values.rejectUnknownOptions(values.readObject(place, to), ['host', 'port'], { place });
    const address = readEach(place, to, ADDRESS);
    if (!/^.+:\d+$/.test(announced)) throw optionError(place, "expected 'host:port' as its name");
    if (address.host && address.port) return [announced, address];
    throw optionError(place, 'expected { host, port }');
  });
  return Object.fromEntries(entries);
}

function readCredentials(name, value) {
  if (typeof value === 'function') return value;
  throw optionSecretError(name, 'a function', value);
}

function readRetry(name, value) {
  const { min = 50 } = readEach(name, value, { min: readMs });
  const readMax = integer(min, LONGEST_TIMER);
  const { max = Math.max(min, 2000) } = readEach(name, value, { max: readMax });
  values.rejectUnknownOptions(value, ['min', 'max'], { place: name });
  return { min, max };
}

/** `client` for the backend, with what recognised it. */
function readClient(name, client) {
  const kind = clientKindOf(client);
  if (kind !== undefined) return { client, kind };
  throw optionTypeError(name, 'a client of ioredis or redis (node-redis)', client);
}

const READERS = {
  url: readUrl,
  ...ADDRESS,
  path: stringReader('the path of a unix socket', (path) => /^[^\0]+$/.test(path)),
  username: readNonEmpty,
  password: readSecret,
  db: integer(0, LONGEST_TIMER),
  tls: readTls,
  connectTimeout: readMs,
  commandTimeout: readMs,
  maxQueue: values.readCount,
  retry: readRetry,
  connectionName: stringReader('printable ASCII without spaces', (name) => /^[!-~]+$/.test(name)),
  cluster: readCluster,
  sentinels: readSentinels,
  name: readNonEmpty,
  sentinelUsername: readNonEmpty,
  sentinelPassword: readSecret,
  credentials: readCredentials,
  addressMap: readAddressMap,
  client: readClient,
};

const DEFAULTS = {
  host: '127.0.0.1',
  port: 6379,
  db: 0,
  connectTimeout: 2000,
  commandTimeout: DEFAULT_COMMAND_TIMEOUT,
  maxQueue: 10_000,
  retry: { min: 50, max: 2000 },
};

const WITH_CLIENT = ['client', 'commandTimeout', 'maxQueue'];
const OF_CONNECTION = Object.keys(READERS).filter((name) => !WITH_CLIENT.includes(name));
const PLACES = ['url', 'cluster', 'sentinels', 'path'];

/** Of each of these, only one may be given. */
const ALTERNATIVES = [
  ...OF_CONNECTION.map((name) => ['client', name]),
  [...PLACES, 'host'],
  [...PLACES, 'port'],
  ['password', 'credentials'],
];

/** What each option needs one of. */
const REQUIREMENTS = {
  username: ['password'],
  sentinels: ['name'],
  name: ['sentinels'],
  sentinelUsername: ['sentinelPassword'],
  sentinelPassword: ['sentinels'],
  addressMap: ['cluster', 'sentinels'],
};

function checkTogether(name, given) {
  const isGiven = (option) => given[option] !== undefined;
  const quoted = (option) => `'${name}.${option}'`;
  for (const options of ALTERNATIVES.map((row) => row.filter(isGiven))) {
    if (options.length < 2) continue;
    const both = options.slice(0, 2).map(quoted).join(' and ');
    throw typeError('ERR_ROLLGATE_OPTION', `options ${both}: expected only one of them`);
  }
  for (const [option, needed] of Object.entries(REQUIREMENTS)) {
    if (!isGiven(option) || needed.some(isGiven)) continue;
    throw optionError(`${name}.${option}`, `requires ${needed.map(quoted).join(' or ')}`);
  }
}

/**
 * Checks a URL, or the options of a connection, which override their `url`. In the result, `path`, `cluster` and
 * `sentinels` override host and port. With a user's client, it is { client, kind, commandTimeout, maxQueue }.
 */
function readConnectionOptions(name, value) {
  const isUrl = typeof value === 'string';
  const options = isUrl ? {} : values.readObject(name, value);
  values.rejectUnknownOptions(options, Object.keys(READERS), { place: name });
  const given = isUrl ? { url: readUrl(name, value) } : readEach(name, options, READERS);
  const { url, cluster, client, ...own } = given;
  const place = values.withoutUndefined({ ...url, ...cluster });
  const { username, password } = place;
  checkTogether(name, { username, password, ...given });
  const { isTls, ...checked } = { ...DEFAULTS, ...place, ...own };
  const { commandTimeout, maxQueue } = checked;
  if (client !== undefined) return { ...client, commandTimeout, maxQueue };
  if (cluster !== undefined && checked.db > 0) {
    throw optionRangeError(`${name}.db`, '0, the only database of a cluster', checked.db);
  }
  if (isTls && options.tls === false) {
    throw optionError(`${name}.tls`, 'false conflicts with a rediss:// URL');
  }
  if (isTls) checked.tls ??= readTls(name, true);
  if (checked.tls === undefined || checked.path === undefined) return checked;
  throw optionError(`${name}.tls`, 'conflicts with the path of a unix socket, which has no TLS');
}

/** Whether the options have a client, or say where Redis is. */
function saysWhere(options) {
  return ['client', ...PLACES, 'host', 'port'].some((name) => options[name] !== undefined);
}

module.exports = { readConnectionOptions, saysWhere };
