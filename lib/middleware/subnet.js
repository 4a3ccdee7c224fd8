// The option ipv6Subnet: how many bits of an IPv6 address tell one client from another.
'use strict';

const { optionRangeError, optionTypeError } = require('../errors');

const FEWEST_BITS = 32;
const MOST_BITS = 64;

/** Below it is an Internet provider, above it a client chooses addresses at will. */
function readSubnet(value) {
  if (value === false) return value;
  const expected = `false or an integer from ${FEWEST_BITS} to ${MOST_BITS}`;
  if (typeof value !== 'number') throw optionTypeError('ipv6Subnet', expected, value);
  if (!Number.isInteger(value) || value < FEWEST_BITS || value > MOST_BITS) {
    throw optionRangeError('ipv6Subnet', expected, value);
  }
  return value;
}

module.exports = { readSubnet };
