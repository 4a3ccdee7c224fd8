// Parses redis://, rediss:// and unix:// URLs. Messages show nothing of a URL but its scheme.
'use strict';

const { optionError, rangeError } = require('../errors');

const EXPECTED =
  'redis://[[user]:password@]host[:port][/db], rediss://... or unix://.../path[?db=n]';
const LARGEST_DB = 2 ** 31 - 1;
const SCHEME = /^([a-z][a-z\d+.-]*):\/\//i;
/** The class URL does not accept credentials without a host. */
const UNIX = /^unix:\/\/(?:([^/@]*)@)?(\/[^?#]+)(?:\?db=(\d+))?$/i;

/** What may be shown of a URL, which may contain a password. */
function hideUrl(url) {
  const [, scheme] = SCHEME.exec(url) ?? [];
  return scheme === undefined ? 'a string that is no URL' : `"${scheme.toLowerCase()}://***"`;
}

function urlError(name, url) {
  return optionError(name, `expected ${EXPECTED}, got ${hideUrl(url)}`);
}

function readDb(name, digits, url) {
  if (digits === undefined || digits === '') return undefined;
  const db = Number(digits);
  if (/^\d+$/.test(digits) && db <= LARGEST_DB) return db;
  throw rangeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected a database number such as /2 in its URL, got ${hideUrl(url)}`,
  );
}

/** Empty parts count as missing. */
function readCredentials(username, password) {
  return {
    username: decodeURIComponent(username ?? '') || undefined,
    password: decodeURIComponent(password ?? '') || undefined,
  };
}

function readUnix(name, url) {
  const [, credentials, path, db] = UNIX.exec(url) ?? [];
  if (path === undefined) throw urlError(name, url);
  const [, username, password] = /^([^:]*):?(.*)$/s.exec(credentials ?? '');
  return {
    ...readCredentials(username, password),
    path: decodeURIComponent(path),
    db: readDb(name, db, url),
  };
}

function readTcp(name, url) {
  const { protocol, username, password, hostname, port, pathname, search, hash } = new URL(url);
  if (search !== '' || hash !== '') throw urlError(name, url);
  return {
    ...readCredentials(username, password),
    host: decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1') || undefined,
    port: port === '' ? undefined : Number(port),
    db: readDb(name, pathname.replace(/^\//, ''), url),
    tls: protocol === 'rediss:' ? {} : undefined,
  };
}

const READERS = { redis: readTcp, rediss: readTcp, unix: readUnix };

/** The parts of a URL as connection options; missing parts are undefined. */
function readUrl(name, url) {
  const [, scheme] = SCHEME.exec(url) ?? [];
  const read = READERS[scheme?.toLowerCase()];
  if (read === undefined) throw urlError(name, url);
  try {
    return read(name, url);
  } catch (error) {
    // Other errors, by URL and decodeURIComponent, contain the URL.
    throw error.code === 'ERR_ROLLGATE_OPTION' ? error : urlError(name, url);
  }
}

module.exports = { readUrl };
