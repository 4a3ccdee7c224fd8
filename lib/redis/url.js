// A redis://, rediss:// or unix:// URL, taken apart. No message shows any of it but the scheme.
'use strict';

const { rangeError, typeError } = require('../errors');

const EXPECTED =
  'redis://[[user]:password@]host[:port][/db], rediss://... or unix://.../path[?db=n]';
const LARGEST_DB = 2 ** 31 - 1;
const SCHEME = /^([a-z][a-z\d+.-]*):\/\//i;
/** Not every such URL is one for the class URL: it knows no credentials without a host. */
const UNIX = /^unix:\/\/(?:([^/@]*)@)?(\/[^?#]+)(?:\?db=(\d+))?$/i;

/** What may be shown of a text that was meant to be a URL, with a password in it perhaps. */
function hideUrl(text) {
  const [, scheme] = SCHEME.exec(text) ?? [];
  return scheme === undefined ? 'a string that is no URL' : `"${scheme.toLowerCase()}://***"`;
}

function refuse(name, url) {
  return typeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected ${EXPECTED}, got ${hideUrl(url)}`,
  );
}

function readDb(name, text, url) {
  if (text === undefined || text === '') return undefined;
  const db = Number(text);
  if (/^\d+$/.test(text) && db <= LARGEST_DB) return db;
  throw rangeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected a database number such as /2 in its URL, got ${hideUrl(url)}`,
  );
}

/** Empty parts are as good as none. */
function readCredentials(username, password) {
  return {
    username: decodeURIComponent(username ?? '') || undefined,
    password: decodeURIComponent(password ?? '') || undefined,
  };
}

function readUnix(name, url) {
  const [, credentials, path, db] = UNIX.exec(url) ?? [];
  if (path === undefined) throw refuse(name, url);
  const [, username, password] = /^([^:]*):?(.*)$/s.exec(credentials ?? '');
  return {
    ...readCredentials(username, password),
    path: decodeURIComponent(path),
    db: readDb(name, db, url),
  };
}

function readTcp(name, url) {
  const { protocol, username, password, hostname, port, pathname, search, hash } = new URL(url);
  if (search !== '' || hash !== '') throw refuse(name, url);
  return {
    ...readCredentials(username, password),
    host: decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1') || undefined,
    port: port === '' ? undefined : Number(port),
    db: readDb(name, pathname.replace(/^\//, ''), url),
    tls: protocol === 'rediss:' ? {} : undefined,
  };
}

const READERS = { redis: readTcp, rediss: readTcp, unix: readUnix };

/**
 * @returns {{ host?: string, port?: number, path?: string, username?: string, password?: string,
 *   db?: number, tls?: object }} what the URL says; undefined where it says nothing
 * @throws TypeError or RangeError ERR_ROLLGATE_OPTION
 */
function readUrl(name, url) {
  const [, scheme] = SCHEME.exec(url) ?? [];
  const read = READERS[scheme?.toLowerCase()];
  if (read === undefined) throw refuse(name, url);
  try {
    return read(name, url);
  } catch (error) {
    // What else is thrown here, by URL and decodeURIComponent, has the URL in it.
    throw error.code === 'ERR_ROLLGATE_OPTION' ? error : refuse(name, url);
  }
}

module.exports = { readUrl };
