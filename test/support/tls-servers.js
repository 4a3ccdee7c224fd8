// Authorities, their certificates, and TLS servers that are not Redis. In Jest all are gone when the test file ends.
'use strict';

const { execFileSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const tls = require('node:tls');

const CONFIGURATION = '[req]\ndistinguished_name = name\n[name]\n';
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

const folders = [];
const servers = [];

/**
 * An authority with its certificate as `ca` and `caFile`. `issue(names)` makes a certificate: { cert, key } as PEM,
 * { certFile, keyFile } as paths.
 */
function makeAuthority() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-tls-'));
  folders.push(folder);
  fs.writeFileSync(path.join(folder, 'openssl.cnf'), CONFIGURATION);
  let issued = 0;

  function make(...args) {
    const name = `certificate-${++issued}`;
    const [certFile, keyFile] = [`${name}.pem`, `${name}.key`];
    const files = ['-keyout', keyFile, '-out', certFile, '-subj', `/CN=${name}`];
    const all = [
      'req',
      '-x509',
      '-days',
      '2',
      '-config',
      'openssl.cnf',
      ...NEW_KEY,
      ...files,
      ...args,
    ];
    execFileSync('openssl', all, { cwd: folder, stdio: 'pipe' });
    const inFolder = [certFile, keyFile].map((file) => path.join(folder, file));
    const [cert, key] = inFolder.map((file) => fs.readFileSync(file, 'utf8'));
    return { cert, key, certFile: inFolder[0], keyFile: inFolder[1] };
  }

  const own = make('-addext', 'basicConstraints=critical,CA:TRUE');
  const signed = ['-CA', own.certFile, '-CAkey', own.keyFile];
  return {
    ca: own.cert,
    caFile: own.certFile,
    issue: (names = 'DNS:localhost,IP:127.0.0.1') =>
      make(...signed, '-addext', `subjectAltName=${names}`),
  };
}

/** A server that answers whatever it gets with empty lines. Resolves to its port. */
async function startForeignServer({ cert, key }, options) {
  const server = tls.createServer({ cert, key, ...options }, (socket) => {
    socket.on('error', () => {}).on('data', () => socket.write('\r\n'));
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server.address().port;
}

globalThis.afterAll?.(() => {
  for (const server of servers) server.close();
  for (const folder of folders) fs.rmSync(folder, { recursive: true });
});

module.exports = { makeAuthority, startForeignServer };
