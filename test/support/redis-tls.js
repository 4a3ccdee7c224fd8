// A Redis server with a TLS port, and the certificates for it.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { startRedis } = require('./redis-server');

const CERTIFICATES = path.join(__dirname, 'certificates');
const fileOf = (name) => path.join(CERTIFICATES, name);
const pemOf = (name) => fs.readFileSync(fileOf(name), 'utf8');

/** The plain port stays open, for commands of the test; `url` is that of the TLS port. */
async function startRedisWithTls() {
  const server = await startRedis({
    args: [
      ...['--tls-port', '0'],
      ...['--tls-cert-file', fileOf('localhost.pem'), '--tls-key-file', fileOf('localhost.key')],
      ...['--tls-ca-cert-file', fileOf('ca.pem'), '--tls-auth-clients', 'optional'],
    ],
  });
  const tlsPort = await anyFreePort(server.port + 10_001, (port) =>
    server.command('CONFIG', 'SET', 'tls-port', String(port)),
  );
  return { server, url: `rediss://localhost:${tlsPort}` };
}

/** The first of a hundred ports that `use` does not reject. */
async function anyFreePort(first, use) {
  let last;
  for (let port = first; port < first + 100; port++) {
    try {
      await use(port);
      return port;
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

module.exports = { pemOf, startRedisWithTls };
