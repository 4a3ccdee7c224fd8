// The TLS options of the native client, from those of node:tls.
'use strict';

const tls = require('node:tls');
const { loadAddon } = require('../native');
const { failure, optionTypeError } = require('../errors');
const { rejectUnknownOptions } = require('../option-values');

const NAMES = ['ca', 'cert', 'key', 'passphrase', 'rejectUnauthorized', 'servername'];

/** A text or a Buffer with one; whatever it is, it is not shown: it may be a key. */
function readPem(name, value) {
  if (typeof value === 'string') return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  throw optionTypeError(name, 'PEM as a string or Buffer', typeof value);
}

function readOptionalPem(name, value) {
  return value === undefined ? '' : readPem(name, value);
}

/**
 * @param {object | undefined} options some of node:tls's
 * @returns {object | undefined} what the native side takes
 * @throws Error ERR_ROLLGATE_UNSUPPORTED where this build has no TLS
 */
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
  rejectUnknownOptions(options, NAMES, { place: 'redis.tls' });
  const { ca = tls.rootCertificates, cert, key, passphrase = '', servername = '' } = options;
  return {
    ca: (Array.isArray(ca) ? ca : [ca]).map((one) => readPem('redis.tls.ca', one)),
    cert: readOptionalPem('redis.tls.cert', cert),
    key: readOptionalPem('redis.tls.key', key),
    passphrase,
    verifies: options.rejectUnauthorized !== false,
    serverName: servername,
  };
}

module.exports = { readNativeTls };
