// The option trustProxy: which proxies tell the truth about their clients, as Express' setting 'trust proxy'.
'use strict';

const { optionError, optionTypeError } = require('../../base/errors');
const { isPromise } = require('./maybe-async');

const EXPECTED =
  'true, false, a number of proxies, addresses or subnets (a list, or a string with commas), or a function';

const trustEverybody = () => true;

/** @returns {(address: string, hop: number) => boolean} whether the proxy with that address is trusted */
function readTrustProxy(name, value) {
  if (typeof value === 'boolean') return value ? trustEverybody : () => false;
  if (typeof value === 'function') return trustBy(name, value);
  if (Number.isInteger(value) && value >= 0) return (_address, hop) => hop < value;
  const list = typeof value === 'string' ? value.split(',').map((part) => part.trim()) : value;
  const isList = Array.isArray(list) && list.length > 0;
  // A number as a string would be read as an address.
  const isAddress = (part) => typeof part === 'string' && !/^\d*$/.test(part);
  if (!isList || !list.every(isAddress)) throw optionTypeError(name, EXPECTED, value);
  try {
    return require('proxy-addr').compile([...list]);
  } catch ({ message }) {
    throw optionError(name, `expected ${EXPECTED}: ${message}`);
  }
}

/** A promise would trust everybody. */
function trustBy(name, trust) {
  return (address, hop) => {
    const isTrusted = trust(address, hop);
    if (!isPromise(isTrusted)) return isTrusted;
    throw optionTypeError(name, 'the function to give true or false', isTrusted);
  };
}

/** The client's address of a request through trusted proxies. */
function addressThrough(req, trust) {
  if (req.headers === undefined) return req.socket?.remoteAddress;
  return require('proxy-addr')(req, trust);
}

module.exports = { addressThrough, readTrustProxy, trustEverybody };
