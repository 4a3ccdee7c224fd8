// One connection to a server, over node:net or node:tls.
'use strict';

const net = require('node:net');
const tls = require('node:tls');
const { getSystemErrorMap } = require('node:util');
const { securityOf } = require('./tls');

const { nextTick } = process; // as it is now: fake timers of tests must not stop it

const KEEP_ALIVE_MS = 60_000;

/** The bytes of sun_path without the NUL: newer versions of Node refuse a longer path, older ones cut it. */
const MOST_OF_PATH = { linux: 107, darwin: 103 }[process.platform] ?? Number.POSITIVE_INFINITY;

const WITHOUT_TLS = 'without TLS, the URL begins with redis://';

/** What OpenSSL says of bytes that are no TLS. */
const NO_TLS = ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'];

function reasonOf(error, { isSecure, authorizationError }) {
  const [, description] = getSystemErrorMap().get(error.errno) ?? [];
  if (description !== undefined) return description;
  if (authorizationError) return `certificate verify failed: ${error.message}`;
  if (NO_TLS.includes(error.code)) {
    return `the server does not speak TLS on this port; ${WITHOUT_TLS}`;
  }
  const reason = error.reason ?? error.message; // without OpenSSL's numbers and places
  return isSecure ? reason : `${reason}; ${WITHOUT_TLS}`;
}

/** What all sockets without TLS read into: quicker than a buffer for each event. */
const buffer = new Uint8Array(65_536);

/**
 * Connects, and says what happens by the functions of `on`: accepted() before the handshake of TLS, connected(),
 * received(buffer, count), writable() again, ended(why).
 *
 * @param {{ path?: string, host?: string, address?: string, port?: number }} place `host` is the name in the
 *   certificate
 * @param {object | undefined} secured as readTls returns it
 */
function openSocket({ path, host, address, port }, secured, on) {
  if (path !== undefined && Buffer.byteLength(path) > MOST_OF_PATH) {
    nextTick(on.ended, 'name too long');
    return new net.Socket();
  }
  const place = path === undefined ? { host: address, port } : { path };
  const onread = { buffer, callback: (count) => on.received(buffer, count) };
  let socket;
  try {
    socket = secured
      ? tls.connect({ ...place, ...securityOf(secured, host) })
      : net.connect({ ...place, onread });
  } catch (error) {
    nextTick(on.ended, error.message);
    return new net.Socket();
  }
  let isSecure = !secured;
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  socket.unref();
  if (secured) {
    socket.once('connect', on.accepted);
    socket.once('secureConnect', () => {
      isSecure = true;
      on.connected();
    });
    socket.on('data', (bytes) => on.received(bytes, bytes.length));
  } else {
    socket.once('connect', on.connected);
    socket.resume(); // for its end
  }
  socket.on('drain', on.writable);
  socket.on('error', (error) => {
    on.ended(reasonOf(error, { isSecure, authorizationError: socket.authorizationError }));
  });
  socket.once('end', () => on.ended('the server closed the connection'));
  socket.once('close', () => on.ended('the connection was closed'));
  return socket;
}

module.exports = { openSocket };
