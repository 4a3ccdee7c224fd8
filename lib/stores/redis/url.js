// Parses redis://, rediss:// and unix:// URLs. Messages show nothing of a URL but its scheme.
'use strict';

const { optionError, optionSecretError, rangeError } = require('../../base/errors');

const EXPECTED =
  'redis://[[user]:password@]host[:port][/db], rediss://... or unix://.../path[?db=n]';
const LARGEST_DB = 2 ** 31 - 1;
/** The class URL does not accept credentials without a host. */
const UNIX = /^unix:\/\/(?:([^/@:]*):?([^/@]*)@)?(\/[^?#]+)(?:\?db=(\d+))?$/i;

/** Empty parts count as missing. */
function decoded(part = '') {
  return decodeURIComponent(part) || undefined;
}

/** Throws an error that may contain the URL. */
function parse(url) {
  if (/^unix:/i.test(url)) {
    const [, username, password, path, db = ''] = UNIX.exec(url);
    return { username: decoded(username), password: decoded(password), path: decoded(path), db };
  }
  const { protocol, username, password, hostname, port, pathname, search, hash } = new URL(url);
  const isGood = /^rediss?:$/.test(protocol) && /^rediss?:\/\//i.test(url) && search + hash === '';
  if (!isGood || port === '0') throw new TypeError('another URL');
  return {
    username: decoded(username),
    password: decoded(password),
    host: decoded(hostname.replace(/^\[(.*)\]$/, '$1')),
    port: port === '' ? undefined : Number(port),
    db: pathname.replace(/^\//, ''),
    isTls: protocol === 'rediss:',
  };
}

/** The parts of a URL as connection options; missing parts are undefined. */
function readUrl(name, url) {
  if (typeof url !== 'string') throw optionSecretError(name, EXPECTED, url);
  const [, scheme] = /^([a-z][a-z\d+.-]*):\/\//i.exec(url) ?? [];
  const got = scheme === undefined ? 'a string that is no URL' : `"${scheme.toLowerCase()}://***"`;
  let parts;
  try {
    parts = parse(url);
  } catch {
    throw optionError(name, `expected ${EXPECTED}, got ${got}`);
  }
  if (parts.db === '') return { ...parts, db: undefined };
  const db = Number(parts.db);
  if (/^\d+$/.test(parts.db) && db <= LARGEST_DB) return { ...parts, db };
  throw rangeError(
    'ERR_ROLLGATE_OPTION',
    `option '${name}': expected a database number such as /2 in its URL, got ${got}`,
  );
}

module.exports = { readUrl };
