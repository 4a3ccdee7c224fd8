// The default keyGenerator: one key per client address.
'use strict';

const { isIPv6 } = require('node:net');
const { ipKeyGenerator } = require('./ip-key');
const { readSubnet } = require('./subnet');
const { andThen } = require('./maybe-async');

/**
 * Express answers `req.ip` (which honours 'trust proxy'); Connect, Polka and plain servers have the
 * socket's address only.
 *
 * Neither is there when the client has already gone, and on a Unix socket. Such requests share the bucket
 * of callers without an id, as they do in express-rate-limit: they stay limited, and a lost connection
 * makes no error.
 *
 * @param {number | false | ((req: object, res: object) => unknown)} ipv6Subnet
 * @param {(req: object, ip: string | undefined) => void} check
 */
function createClientKey(ipv6Subnet, check) {
  if (typeof ipv6Subnet === 'function') return createBySubnetFunction(ipv6Subnet, check);
  return function clientKey(req) {
    const ip = addressOf(req);
    check(req, ip);
    return ip ? ipKeyGenerator(ip, ipv6Subnet) : undefined;
  };
}

function createBySubnetFunction(subnetOf, check) {
  return function clientKey(req, res) {
    const ip = addressOf(req);
    check(req, ip);
    if (!ip) return undefined;
    if (!isIPv6(ip)) return ip;
    return andThen(subnetOf(req, res), (subnet) => ipKeyGenerator(ip, readSubnet(subnet)));
  };
}

function addressOf(req) {
  return req.ip || req.socket?.remoteAddress;
}

module.exports = { createClientKey };
