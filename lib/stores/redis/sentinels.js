// Finds a master through Redis Sentinel. Source: "Guidelines for Redis clients with support for Redis Sentinel".
'use strict';

const { errorOfFailure } = require('../../base/errors');
const failures = require('./failures');
const { NativeClient } = require('./native-client');
const { addressName, findRoute } = require('./route');

/** For so long after an attempt to connect, another answer is preferred. */
const SUSPECT_MS = 5000;

/** Asks one sentinel, on a connection of its own. */
async function askSentinel(sentinel, options) {
  const { sentinelUsername: username, sentinelPassword: password, name } = options;
  const address = addressName(sentinel);
  const route = { ...sentinel, username, password };
  // To ask is a part of connecting: an attempt that was given up must not keep the process alive.
  const commandTimeout = Math.min(options.commandTimeout, options.connectTimeout);
  const own = { ...options, commandTimeout };
  const client = new NativeClient(own, () => findRoute(route), address);
  try {
    const reply = await client.command(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name], {});
    if (reply === null) throw new Error('it knows no such master');
    const [master, masterPort] = Array.isArray(reply) ? reply : [];
    if (!/^\d+$/.test(masterPort)) throw new Error('its answer is no address');
    return { host: master, port: Number(masterPort) };
  } catch (error) {
    const { message } = errorOfFailure(error);
    throw new Error(message.includes(address) ? message : `${address}: ${message}`);
  } finally {
    client.close();
  }
}

/** A function that promises { host, port } of the master; undefined without sentinels. */
function createMasterFinder(options) {
  const { sentinels, name } = options;
  if (sentinels === undefined) return undefined;
  let last = { at: Number.NEGATIVE_INFINITY };
  /** A sentinel may still report a failed master: the address of the last attempt is tried last for SUSPECT_MS. */
  const isSuspect = ({ host, port }) =>
    performance.now() - last.at < SUSPECT_MS && host === last.host && port === last.port;
  return async () => {
    const asked = sentinels.map((sentinel) => askSentinel(sentinel, options));
    const another = asked.map(async (answer) => {
      const master = await answer;
      if (isSuspect(master)) throw new Error('the same as before');
      return master;
    });
    try {
      const master = await Promise.any(another).catch(() => Promise.any(asked));
      last = { ...master, at: performance.now() };
      return master;
    } catch ({ errors }) {
      const answers = errors.map(({ message }) => message).join('; ');
      throw failures.unreachable(`no sentinel names the master '${name}': ${answers}`);
    }
  };
}

module.exports = { createMasterFinder };
