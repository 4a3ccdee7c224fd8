// A client's address as a key: IPv4 as it is, IPv6 by the subnet its owner can choose addresses from.
'use strict';

const { isIPv4, isIPv6 } = require('node:net');
const { optionRangeError } = require('../errors');

const GROUPS = 8;
const GROUP_BITS = 16;
const ADDRESS_BITS = GROUPS * GROUP_BITS;
const MAPPED_PREFIX = '::ffff:';

/**
 * A home or a server commonly gets a /56 or a /64 of IPv6 addresses, so limiting single addresses would
 * limit nobody. IPv6 that carries an IPv4 address gives that IPv4 address, a zone (`%eth0`) is left out,
 * and what is no IP address comes back as it is.
 *
 * @param {string} ip
 * @param {number | false} [ipv6Subnet] prefix length in bits, 1 to 128; false: the address as it came
 * @returns {string} '192.0.2.1', or a subnet as RFC 5952 writes it: '2001:db8:0:100::/56'
 */
function ipKeyGenerator(ip, ipv6Subnet = 56) {
  // An address without a colon is IPv4 or none at all: nothing to do for most clients.
  if (typeof ip !== 'string' || !ip.includes(':')) return ip;
  // A server on '::' sees its IPv4 clients in this form.
  if (ip.startsWith(MAPPED_PREFIX)) {
    const ipv4 = ip.slice(MAPPED_PREFIX.length);
    if (isIPv4(ipv4)) return ipv4;
  }
  if (!isIPv6(ip)) return ip;

  const address = withoutZone(ip);
  const groups = parseGroups(address);
  const ipv4 = embeddedIPv4(address, groups);
  if (ipv4 !== undefined) return ipv4;
  if (ipv6Subnet === false) return ip;
  if (!Number.isInteger(ipv6Subnet) || ipv6Subnet < 1 || ipv6Subnet > ADDRESS_BITS) {
    throw optionRangeError(
      'ipv6Subnet',
      `false or an integer from 1 to ${ADDRESS_BITS}`,
      ipv6Subnet,
    );
  }
  clearHostBits(groups, ipv6Subnet);
  return `${formatGroups(groups)}/${ipv6Subnet}`;
}

/** A zone names an interface of this host, not a client, and its text may be anything. */
function withoutZone(ip) {
  const zone = ip.indexOf('%');
  return zone === -1 ? ip : ip.slice(0, zone);
}

/** The eight groups of an address that net.isIPv6 has accepted. */
function parseGroups(address) {
  const gap = address.indexOf('::');
  if (gap === -1) return parseRun(address);
  const head = parseRun(address.slice(0, gap));
  const tail = parseRun(address.slice(gap + 2));
  const zeros = new Array(GROUPS - head.length - tail.length).fill(0);
  return [...head, ...zeros, ...tail];
}

function parseRun(text) {
  if (text === '') return [];
  const groups = [];
  for (const part of text.split(':')) {
    if (part.includes('.')) {
      const [a, b, c, d] = part.split('.').map(Number);
      groups.push(a * 256 + b, c * 256 + d);
    } else {
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}

/**
 * The IPv4 address in `::ffff:0:0/96` (IPv4-mapped), or in `::/96` where it is written with dots: only
 * the notation tells the deprecated IPv4-compatible address from `::1` and its like.
 */
function embeddedIPv4(address, groups) {
  const isMapped = groups[5] === 0xffff;
  const isCompatible = groups[5] === 0 && address.includes('.');
  if (!isMapped && !isCompatible) return undefined;
  for (let i = 0; i < 5; i++) if (groups[i] !== 0) return undefined;
  const [high, low] = groups.slice(6);
  return `${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`;
}

function clearHostBits(groups, prefixBits) {
  for (let i = 0; i < GROUPS; i++) {
    const kept = Math.min(GROUP_BITS, Math.max(0, prefixBits - i * GROUP_BITS));
    groups[i] &= 0xffff << (GROUP_BITS - kept);
  }
}

/** RFC 5952, section 4: lower case, no leading zeros, '::' for the first longest run of two zeros or more. */
function formatGroups(groups) {
  const { start, length } = longestZeroRun(groups);
  const hex = groups.map((group) => group.toString(16));
  if (length < 2) return hex.join(':');
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`;
}

function longestZeroRun(groups) {
  let best = { start: 0, length: 0 };
  let length = 0;
  for (let i = 0; i < GROUPS; i++) {
    length = groups[i] === 0 ? length + 1 : 0;
    if (length > best.length) best = { start: i - length + 1, length };
  }
  return best;
}

module.exports = { ipKeyGenerator };
