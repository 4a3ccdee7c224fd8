// The client of a request by its address: the default key, and checks that the address is plausible.
'use strict';

const { isIP } = require('#platform');
const { readNumber } = require('../../options/values');
const { andThen } = require('./maybe-async');
const { addressThrough, trustEverybody } = require('./proxies');

/**
 * The default keyGenerator. Express provides `req.ip`, which honours 'trust proxy'; Connect, Polka and plain
 * servers have the socket's address only, unless there is the option `trustProxy`.
 *
 * A client on a Unix socket has no address. All of these share the bucket of requests without an id.
 */
function createClientKey({ ipv6Subnet, trustProxy, validate }, logger) {
  const checks = new AddressChecks({ validate, trustProxy }, logger);
  const toKey = typeof ipv6Subnet === 'function' ? keyBySubnetOf : ipKeyGenerator;
  return function clientKey(req, res) {
    const ip = trustProxy === undefined ? addressOf(req) : addressThrough(req, trustProxy);
    if (!ip) assertIsThere(req);
    checks.check(req, ip);
    return ip ? toKey(ip, ipv6Subnet, req, res) : undefined;
  };
}

/** Instead of a key: the client has left, and its address with it. All such clients would share one count. */
class ClientGone extends Error {
  name = 'ClientGone';
  code = 'ROLLGATE_CLIENT_GONE';

  /** `isUsual`: clients do that, and nobody need be warned. */
  constructor(isUsual = false) {
    super('the client has left');
    this.isUsual = isUsual;
  }
}

/**
 * For a request without a key; throws ClientGone. A client that resets its connection loses its address before Node
 * destroys the socket; only a Unix socket has no address of its own either.
 */
function assertIsThere({ socket }) {
  if (!socket) return;
  const isReset = socket.remoteAddress === undefined && socket.localAddress !== undefined;
  if (socket.destroyed || isReset) throw new ClientGone();
}

function keyBySubnetOf(ip, subnetOf, req, res) {
  if (isIP(ip) !== 6) return ip;
  return andThen(subnetOf(req, res), (subnet) => ipKeyGenerator(ip, readSubnet(subnet)));
}

function addressOf(req) {
  return req.ip || req.socket?.remoteAddress;
}

const GROUPS = 8;
const GROUP_BITS = 16;
const ADDRESS_BITS = GROUPS * GROUP_BITS;

const SUBNET = `false or an integer from 1 to ${ADDRESS_BITS}`;
const isSubnet = (bits) => Number.isInteger(bits) && bits >= 1 && bits <= ADDRESS_BITS;

function readSubnet(value) {
  return value === false ? value : readNumber('ipv6Subnet', value, SUBNET, isSubnet);
}

const FEWEST_BITS = 32;
const MOST_BITS = 64;

/** Shorter prefixes are Internet providers; within longer ones clients choose addresses at will. */
function isUsualSubnet(subnet) {
  return typeof subnet !== 'number' || (subnet >= FEWEST_BITS && subnet <= MOST_BITS);
}

const MAPPED_PREFIX = '::ffff:';

/**
 * An address as a key. A home or a server commonly gets a /56 or a /64 of IPv6 addresses, so limits on single
 * addresses would limit nobody. IPv6 that carries an IPv4 address becomes that IPv4 address, a zone (`%eth0`)
 * is removed, and a string that is no IP address is returned as it is.
 *
 * @param {string} ip
 * @param {number | false} [ipv6Subnet] prefix length in bits, 1 to 128; false: the address unchanged
 * @returns {string} '192.0.2.1', or a subnet as RFC 5952 writes it: '2001:db8:0:100::/56'
 */
function ipKeyGenerator(ip, ipv6Subnet = 56) {
  // Without a colon it is IPv4, as for most clients, or no address.
  if (typeof ip !== 'string' || !ip.includes(':')) return ip;
  // How a server on '::' sees IPv4 clients.
  if (ip.startsWith(MAPPED_PREFIX)) {
    const ipv4 = ip.slice(MAPPED_PREFIX.length);
    if (isIP(ipv4) === 4) return ipv4;
  }
  if (isIP(ip) !== 6) return ip;

  const [address] = ip.split('%'); // a zone names an interface of this host, not a client
  const groups = parseGroups(address);
  const ipv4 = embeddedIPv4(address, groups);
  if (ipv4 !== undefined) return ipv4;
  if (readSubnet(ipv6Subnet) === false) return ip;
  clearHostBits(groups, ipv6Subnet);
  return `${formatGroups(groups)}/${ipv6Subnet}`;
}

/** Of ipaddr.js, loaded with the first address of IPv6. */
let parser;

const DOTTED_QUAD = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/;

/** The eight groups of an address that is one by isIP. ipaddr.js 1.9 does not read a dotted quad behind '::'. */
function parseGroups(address) {
  const hex = (high, low) => (high * 256 + Number(low)).toString(16);
  const plain = address.replace(DOTTED_QUAD, (_, a, b, c, d) => `${hex(a, b)}:${hex(c, d)}`);
  parser ??= require('ipaddr.js').IPv6;
  return parser.parse(plain).parts;
}

/**
 * The IPv4 address in `::ffff:0:0/96` (IPv4-mapped), or in `::/96` if it is written with dots: only the
 * notation distinguishes the deprecated IPv4-compatible addresses from `::1` and similar ones.
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

/**
 * Checks every request that is counted by its address. Each check warns once. A proxy may be added at any time, so
 * headers are checked until a warning; what cannot change is checked once.
 */
class AddressChecks {
  #isOn;
  #trustProxy;
  #logger;
  #isFirst = true;

  constructor({ validate, trustProxy }, logger) {
    this.#isOn = { ...validate };
    this.#trustProxy = trustProxy;
    this.#logger = logger;
  }

  check(req, ip) {
    if (!ip) {
      const what = 'a request has no client address, so that all such requests share one limit.';
      if (req.socket) this.#warn('ip', 'ROLLGATE_NO_CLIENT_IP', what);
      return;
    }
    // An address from a header may be anything.
    if (this.#isFirst || this.#trustProxy !== undefined) this.#checkIP(ip);
    if (this.#isFirst) this.#checkTrust(req);
    this.#isFirst = false;
    const { headers } = req;
    if (headers !== undefined) this.#checkHeaders(headers, req, ip);
  }

  #checkIP(ip) {
    if (!this.#isOn.ip || isIP(ip) !== 0) return;
    const shown = JSON.stringify(String(ip).slice(0, 60));
    this.#warn('ip', 'ROLLGATE_INVALID_IP', `the client's address ${shown} is no IP address.`);
  }

  #checkTrust(req) {
    const trust = this.#trustProxy ?? expressTrust(req);
    if (trust !== true && trust !== trustEverybody) return;
    const what = 'every proxy is trusted, so clients can choose the address they are counted by.';
    this.#warn('trustProxy', 'ROLLGATE_TRUST_PROXY', what);
  }

  #checkHeaders(headers, req, ip) {
    const isBehindProxy = headers['x-forwarded-for'] && this.#trustProxy === undefined;
    if (isBehindProxy && this.#isOn.xForwardedForHeader && trustsNobody(req, ip)) {
      this.#warn(
        'xForwardedForHeader',
        'ROLLGATE_X_FORWARDED_FOR',
        'a request has the header X-Forwarded-For, but no proxy is trusted: if that is a proxy, all its ' +
          "clients share one limit (Express's setting 'trust proxy', Fastify's trustProxy, or the option " +
          'trustProxy elsewhere).',
      );
    }
    if (headers.forwarded && ip === req.socket?.remoteAddress) {
      this.#warn(
        'forwardedHeader',
        'ROLLGATE_FORWARDED',
        'a request has the header Forwarded, which Express does not read: if that is a proxy, all its ' +
          'clients share one limit.',
      );
    }
  }

  #warn(check, code, message) {
    if (!this.#isOn[check]) return;
    this.#isOn[check] = false;
    this.#logger.warn(code, message);
  }
}

/** undefined without Express. */
function expressTrust(req) {
  return req.app?.settings?.['trust proxy'];
}

/** Without Express, what the server took as the address tells. */
function trustsNobody(req, ip) {
  const trust = expressTrust(req);
  return trust === undefined ? ip === req.socket?.remoteAddress : trust === false;
}

module.exports = {
  ClientGone,
  assertIsThere,
  createClientKey,
  ipKeyGenerator,
  isUsualSubnet,
  readSubnet,
};
