// The option tls of the URL client: the options of node:tls.
'use strict';

const { X509Certificate } = require('node:crypto');
const { isIP } = require('node:net');
const tls = require('node:tls');
const { optionError, optionSecretError } = require('../../base/errors');
const values = require('../../options/values');

const CERTIFICATE = /-----BEGIN [^-]*CERTIFICATE-----[^-]*-----END [^-]*-----/g;

function readPem(name, value) {
  if (typeof value === 'string') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  throw optionSecretError(name, 'PEM as a string or Buffer', value);
}

function readAuthorities(name, value) {
  if (!Array.isArray(value)) return readPem(name, value);
  const list = values.readList(name, value, 'PEM, or a list of it');
  return list.map((one, i) => readPem(`${name}[${i}]`, one));
}

const readVersion = values.stringReader(
  "'TLSv1.2' or 'TLSv1.3' (older versions are not supported)",
  (version) => ['TLSv1.2', 'TLSv1.3'].includes(version),
);

function readArchive(name, value) {
  if (value instanceof Uint8Array) return value;
  throw optionSecretError(name, 'PKCS #12 as a Buffer', value);
}

function readContext(name, value) {
  if (value?.context !== undefined) return value;
  throw optionSecretError(name, 'what tls.createSecureContext returns', value);
}

const readProtocol = values.stringReader('a name of 1 to 255 bytes', (protocol) => {
  const length = Buffer.byteLength(protocol);
  return length > 0 && length < 256;
});

function readProtocols(name, value) {
  const list = values.readList(name, value, 'a list of names');
  return list.map((one, i) => readProtocol(`${name}[${i}]`, one));
}

const READERS = {
  ca: readAuthorities,
  cert: readPem,
  key: readPem,
  passphrase: values.readSecret,
  rejectUnauthorized: values.readBoolean,
  servername: values.readNonEmpty,
  minVersion: readVersion,
  maxVersion: readVersion,
  ciphers: values.stringReader('names of ciphers, separated by colons', (list) =>
    /[^:]/.test(list),
  ),
  ecdhCurve: values.readNonEmpty,
  sigalgs: values.readNonEmpty,
  crl: readAuthorities,
  pfx: readArchive,
  minDHSize: (name, bits) => values.readInteger(name, bits, 1, 65_536),
  secureOptions: (name, bits) => values.readInteger(name, bits, 0, 2 ** 32 - 1),
  secureContext: readContext,
  checkServerIdentity: values.readFunction,
  ALPNProtocols: readProtocols,
};

/** Undefined for false. Else options of node:tls. */
function readTls(name, value) {
  if (value === false) return undefined;
  const expected = "true, false or an object of node:tls's options";
  if (typeof value === 'string') throw optionSecretError(name, expected, value);
  const options = value === true ? {} : values.readObject(name, value, expected);
  values.rejectUnknownOptions(options, Object.keys(READERS), { place: name });
  const checked = values.readEach(name, options, READERS);
  const [given, needed] = checked.cert ? ['cert', 'key'] : ['key', 'cert'];
  if (checked[given] && !checked[needed]) {
    throw optionError(`${name}.${given}`, `requires '${name}.${needed}'`);
  }
  return checked;
}

/** node:tls overlooks authorities that are none. */
function checkAuthorities({ ca = [] }) {
  for (const text of [ca].flat()) {
    const all = text.match(CERTIFICATE) ?? [];
    if (all.length === 0) throw new Error('PEM without a certificate');
    for (const one of all) new X509Certificate(one);
  }
}

const checkWith =
  (...names) =>
  (options) =>
    tls.createSecureContext(Object.fromEntries(names.map((name) => [name, options[name]])));

/** What throws if an option is wrong, in the order in which they are used. */
const CHECKS = {
  ca: checkAuthorities,
  cert: checkWith('cert'),
  key: checkWith('cert', 'key', 'passphrase'),
  pfx: checkWith('pfx', 'passphrase'),
  ciphers: checkWith('ciphers'),
  ecdhCurve: checkWith('ecdhCurve'),
  sigalgs: checkWith('sigalgs'),
  crl: checkWith('crl'),
};

function createContext(name, options) {
  for (const [option, check] of Object.entries(CHECKS)) {
    try {
      if (options[option] !== undefined) check(options);
    } catch (error) {
      throw optionError(name, `${option}: ${error.message}`);
    }
  }
  try {
    return options.secureContext ?? tls.createSecureContext(options);
  } catch (error) {
    throw optionError(name, error.message);
  }
}

/** By the checked option, because it may take long to make them. */
const contexts = new WeakMap();

/** The context of the connections with these options. Throws if node:tls does not take them. */
function contextOf(name, options) {
  if (!contexts.has(options)) contexts.set(options, createContext(name, options));
  return contexts.get(options);
}

/** What tls.connect needs to connect to `host` at any address. */
function securityOf(options, host) {
  const { servername = host, checkServerIdentity = tls.checkServerIdentity } = options;
  return {
    ...options,
    secureContext: contextOf('redis.tls', options),
    servername: isIP(servername) === 0 ? servername : '', // a name only, as RFC 6066 says
    checkServerIdentity(_, certificate) {
      try {
        return checkServerIdentity(servername, certificate);
      } catch (error) {
        return error; // else it would be uncaught
      }
    },
  };
}

module.exports = { contextOf, readTls, securityOf };
