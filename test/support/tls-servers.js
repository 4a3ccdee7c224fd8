// Certificates of every kind, and servers that are not Redis, by the openssl command line. In Jest all of
// them are gone when the test file ends.
'use strict';

const { execFileSync, spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const CONFIGURATION = `
[req]
distinguished_name = name
x509_extensions = authority
[name]
[authority]
basicConstraints = critical, CA:TRUE
[ca]
default_ca = own
[own]
certificate = ca.pem
private_key = ca.key
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
copy_extensions = copy
policy = any
[any]
commonName = supplied
`;
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
const LOCALHOST = 'DNS:localhost,IP:127.0.0.1';
const DAY_MS = 24 * 60 * 60 * 1000;

const folders = [];
const servers = new Set();

/** As YYYYMMDDhhmmssZ. */
const timeIn = (ms) => new Date(Date.now() + ms).toISOString().replace(/[-:T]|\.\d+/g, '');

/**
 * An authority with its certificate as `ca` and `caFile`, and two functions that make certificates: { cert, key } as PEM,
 * { certFile, keyFile } as paths.
 */
function makeAuthority() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-tls-'));
  folders.push(folder);
  const inside = (name) => path.join(folder, name);
  const read = (name) => fs.readFileSync(inside(name), 'utf8');
  const openssl = (...args) =>
    execFileSync('openssl', [...args, '-config', 'openssl.cnf'], { cwd: folder, stdio: 'pipe' });
  let issued = 0;

  function request(out, names, ...args) {
    const name = `certificate-${++issued}`;
    const files = ['-keyout', `${name}.key`, '-out', `${name}${out}`];
    const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${names}`];
    openssl('req', '-new', ...NEW_KEY, ...files, ...subject, ...args);
    return name;
  }

  function madeAs(name) {
    const [certFile, keyFile] = [`${name}.pem`, `${name}.key`];
    return {
      ...{ cert: read(certFile), key: read(keyFile) },
      ...{ certFile: inside(certFile), keyFile: inside(keyFile) },
    };
  }

  fs.writeFileSync(inside('openssl.cnf'), CONFIGURATION);
  fs.writeFileSync(inside('index.txt'), '');
  const own = ['-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=an authority of a test'];
  openssl('req', '-x509', '-days', '2', ...NEW_KEY, ...own);
  return {
    ca: read('ca.pem'),
    caFile: inside('ca.pem'),
    /** Valid for `names`, from `fromMs` to `untilMs` after now. */
    issue({ names = LOCALHOST, fromMs = -DAY_MS, untilMs = DAY_MS } = {}) {
      const name = request('.csr', names);
      const files = ['-in', `${name}.csr`, '-out', `${name}.pem`];
      const times = ['-startdate', timeIn(fromMs), '-enddate', timeIn(untilMs)];
      openssl('ca', '-batch', '-notext', ...files, ...times);
      return madeAs(name);
    },
    issueSelfSigned: () => madeAs(request('.pem', LOCALHOST, '-x509', '-days', '2')),
  };
}

/** Ends the server with its input: when it is closed, or this process is gone. */
const GUARD = '"$@" & server=$!; read -r _; kill "$server"; wait';

/**
 * A TLS server that answers each line with its characters in reverse order. `args` are those of openssl
 * s_server. Resolves to the port.
 */
async function startReversingServer({ certFile, keyFile }, ...args) {
  const command = ['openssl', 's_server', '-rev', '-accept', '127.0.0.1:0'];
  const certificate = ['-cert', certFile, '-key', keyFile];
  const server = spawn('sh', ['-c', GUARD, 'sh', ...command, ...certificate, ...args]);
  servers.add(server);
  let output = '';
  return new Promise((resolve, reject) => {
    for (const stream of [server.stdout, server.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
        const [, port] = /^ACCEPT .*:(\d+)$/m.exec(output) ?? [];
        if (port !== undefined) resolve(Number(port));
      });
    }
    server.on('error', reject);
    server.on('close', () => reject(new Error(`openssl s_server ended: ${output}`)));
  });
}

async function stop(server) {
  const ended = new Promise((resolve) => server.once('close', resolve));
  server.stdin.end();
  await ended;
}

globalThis.afterAll?.(async () => {
  await Promise.all([...servers].map(stop));
  for (const folder of folders) fs.rmSync(folder, { recursive: true });
});

module.exports = { DAY_MS, makeAuthority, startReversingServer };
