// How to connect to a server, found for each attempt: its address now, and how to log in.
'use strict';

const dns = require('node:dns');
const { isIP } = require('node:net');
const failures = require('./failures');

/** 'host:port', with an IPv6 address in brackets. */
function addressName({ host, port }) {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

async function addressesOf(host) {
  if (isIP(host) !== 0) return [host];
  const fail = (why, cause) => failures.unreachable(`looking up '${host}': ${why}`, cause);
  const lookup = dns.promises.lookup(host, { all: true, verbatim: true });
  const found = await lookup.catch((error) => {
    throw fail(error.message, error);
  });
  if (found.length === 0) throw fail('it has no address');
  return found.map(({ address }) => address);
}

function ask(addressMap, announced) {
  try {
    return addressMap(announced);
  } catch (error) {
    throw failures.unreachable(
      `option 'redis.addressMap' failed: ${error?.message ?? error}`,
      error,
    );
  }
}

/** Where a server is that others announce: as the option addressMap says, in the shape of ioredis' natMap. */
function mappedAddress({ addressMap, cluster = [] }, { host, port }) {
  const announced = `${host}:${port}`;
  if (addressMap === undefined) return { host, port };
  const mapped =
    typeof addressMap === 'function' ? ask(addressMap, announced) : addressMap[announced];
  if (typeof mapped?.host === 'string' && Number.isInteger(mapped.port)) return mapped;
  const isSeed = cluster.some((seed) => seed.host === host && seed.port === port);
  if (mapped === undefined && isSeed) return { host, port };
  throw failures.unreachable(`option 'redis.addressMap' has no { host, port } for '${announced}'`);
}

async function credentialsOf({ credentials, username, password }) {
  if (credentials === undefined) return { username, password };
  const fail = (why, cause) => failures.auth(`option 'redis.credentials' ${why}`, cause);
  let given;
  try {
    given = await credentials();
  } catch (error) {
    throw fail(`failed: ${error?.message ?? error}`, error);
  }
  const isGood = (value) => value === undefined || (typeof value === 'string' && value !== '');
  if (typeof given?.password !== 'string' || !isGood(given.password) || !isGood(given.username)) {
    throw fail('gave no { username?, password } of non-empty strings');
  }
  return given;
}

async function greetingOf(options) {
  const { username, password } = await credentialsOf(options);
  const { db, connectionName, sentinels } = options;
  const commands = [];
  if (password !== undefined) commands.push(['AUTH', ...(username ? [username] : []), password]);
  if (db > 0) commands.push(['SELECT', String(db)]);
  if (connectionName !== undefined) commands.push(['CLIENT', 'SETNAME', connectionName]);
  if (sentinels !== undefined) commands.push(['ROLE']);
  return commands;
}

/** Where a server is, unless that is a path. */
async function findAddress(options, findMaster, node) {
  const { host, port, cluster } = options;
  if (findMaster !== undefined) return mappedAddress(options, await findMaster());
  if (cluster === undefined) return { host, port };
  const parts = /^\[?(.*?)\]?:(\d+)$/.exec(node);
  if (parts === null) throw failures.unreachable(`'${node}' is no address of a server`);
  const [, nodeHost, nodePort] = parts;
  return mappedAddress(options, { host: nodeHost, port: Number(nodePort) });
}

/**
 * @param {object} options as readConnectionOptions returns them
 * @param {(() => Promise<{ host: string, port: number }>) | undefined} findMaster by Sentinel
 * @param {string} node addressName of a cluster's node
 */
async function findRoute(options, findMaster, node) {
  const { path, sentinels } = options;
  if (path !== undefined) {
    const greeting = await greetingOf(options);
    return { addresses: [''], path, greeting, wantsMaster: false };
  }
  const { host, port } = await findAddress(options, findMaster, node);
  if (host === '' || !(Number.isInteger(port) && port > 0 && port < 65_536)) {
    throw failures.unreachable(`'${addressName({ host, port })}' is no address of a server`);
  }
  const [addresses, greeting] = await Promise.all([addressesOf(host), greetingOf(options)]);
  return { addresses, port, host, greeting, wantsMaster: sentinels !== undefined };
}

module.exports = { addressName, findRoute };
