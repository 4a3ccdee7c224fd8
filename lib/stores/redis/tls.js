// The option tls of the native Redis client: options of node:tls, checked, in the form of the native side.
'use strict';

const tls = require('node:tls');
const { optionError, optionSecretError } = require('../../base/errors');
const values = require('../../options/values');

/** The numbers of the versions in the protocol. */
const VERSIONS = { 'TLSv1.2': 0x0303, 'TLSv1.3': 0x0304 };

function readPem(name, value) {
  if (typeof value === 'string') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  throw optionSecretError(name, 'PEM as a string or Buffer', value);
}

function readAuthorities(name, value) {
  if (!Array.isArray(value)) return [readPem(name, value)];
  const list = values.readList(name, value, 'PEM, or a list of it');
  return list.map((one, i) => readPem(`${name}[${i}]`, one));
}

const READERS = {
  ca: readAuthorities,
  cert: readPem,
  key: readPem,
  passphrase: values.readSecret,
  rejectUnauthorized: values.readBoolean,
  servername: values.readNonEmpty,
  minVersion: values.stringReader(
    "'TLSv1.2' or 'TLSv1.3' (older versions are not supported)",
    (version) => Object.hasOwn(VERSIONS, version),
  ),
  ciphers: values.stringReader('names of ciphers, separated by colons', (list) =>
    /[^:]/.test(list),
  ),
};

const DEFAULTS = {
  cert: '',
  key: '',
  passphrase: '',
  rejectUnauthorized: true,
  servername: '',
  minVersion: 'TLSv1.2',
  ciphers: '',
};

/** Undefined for false. In the result, `ca` is missing for the default. */
function readTls(name, value) {
  if (value === false) return undefined;
  const expected = "true, false or an object of node:tls's options";
  if (typeof value === 'string') throw optionSecretError(name, expected, value);
  const options = value === true ? {} : values.readObject(name, value, expected);
  values.rejectUnknownOptions(options, Object.keys(READERS), { place: name });
  const { rejectUnauthorized, servername, minVersion, ciphers, ...pems } = {
    ...DEFAULTS,
    ...values.readEach(name, options, READERS),
  };
  const [given, needed] = pems.cert ? ['cert', 'key'] : ['key', 'cert'];
  if (pems[given] && !pems[needed]) {
    throw optionError(`${name}.${given}`, `requires '${name}.${needed}'`);
  }
  // As in node:tls: one list for all versions, in which names of TLS 1.3 begin with TLS_.
  const names = ciphers.split(':').filter(Boolean);
  const isNew = (cipher) => cipher.startsWith('TLS_');
  const areAllNew = names.length > 0 && names.every(isNew);
  return {
    ...pems,
    verifies: rejectUnauthorized,
    serverName: servername,
    ciphers: names.filter((cipher) => !isNew(cipher)).join(':'),
    cipherSuites: names.filter(isNew).join(':'),
    minVersion: VERSIONS[areAllNew ? 'TLSv1.3' : minVersion],
  };
}

/** The certificates to trust by default. */
function defaultAuthorities() {
  return tls.getCACertificates?.('default') ?? tls.rootCertificates;
}

module.exports = { defaultAuthorities, readTls };
