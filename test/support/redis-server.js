// Real Redis servers for tests and benchmarks: started on loopback, frozen, killed, restarted.
//
// In Jest all of them are stopped when the test file ends. That happens before afterAll hooks at the
// top of the file, so clients are closed in afterEach, in a describe's afterAll, or in the test.
// A program without Jest may stop its servers or leave them: they end when it ends, however it ends.
'use strict';

const { spawn } = require('node:child_process');
const { randomInt } = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { standsStill, waitUntil } = require('./outcome');
const { encodeCommand, valueReader } = require('./resp');
const { patient } = require('./tiers');

const HOST = '127.0.0.1';
/** Another server, or a program that becomes one and keeps its process id. */
const PROGRAM = process.env.ROLLGATE_REDIS_SERVER || 'redis-server';
const PATIENCE_MS = patient(20_000);
// A sanitizer that is loaded before Node must not be loaded before other programs.
const ENVIRONMENT = { ...process.env, LD_PRELOAD: '' };

/** Below the ports that systems give to outgoing connections, and so is the cluster bus, 10000 above. */
const anyPort = () => randomInt(10_000, 22_768);
const READY = /ready to accept connections|Sentinel ID is/i;
const PORT_TAKEN = /address already in use|failed listening on port/i;

/**
 * Ends the server and removes its folder once this process is gone or hangs up. Its input is the
 * server's process id with each start, and an empty line with each stop.
 */
const GUARD = `
  while read -r line; do pid=$line; done
  if [ -n "$pid" ]; then kill -9 "$pid"; fi
  rm -rf "$0"
`;

const started = new Set();

class RedisServer {
  /** Whether it was frozen and not thawed since. */
  frozen = false;
  #child;
  #guard;
  #folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-redis-'));
  #options;

  constructor(options) {
    this.#options = options;
    if (options.unixSocket) this.socketPath = path.join(this.#folder, 'redis.sock');
    this.#guard = spawn('sh', ['-c', GUARD, this.#folder], {
      detached: true, // out of reach of Ctrl-C
      env: ENVIRONMENT,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#guard.unref();
    this.#guard.stdin.unref();
    started.add(this);
  }

  /** The process id; undefined while stopped. */
  get pid() {
    return this.#child?.pid;
  }

  get url() {
    const { password } = this.#options;
    const user = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
    return this.socketPath
      ? `unix://${user}${this.socketPath}`
      : `redis://${user}${HOST}:${this.port}`;
  }

  /** Starts it again, empty, on the same port; also after stop(). */
  async restart() {
    await this.stop();
    // The port may still be held for a moment by what connected to it.
    await waitUntil(`port ${this.port} is free again`, () => this.#tryToStart());
  }

  /** As if its machine lost power. Does nothing while it is stopped. */
  async stop() {
    const child = this.#child;
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.ref();
    child.kill('SIGKILL');
    await ended;
  }

  /** It keeps its connections and its port, and answers nothing until thaw(). */
  async freeze() {
    process.kill(this.pid, 'SIGSTOP');
    this.frozen = true;
    await standsStill(this.pid);
  }

  thaw() {
    process.kill(this.pid, 'SIGCONT');
    this.frozen = false;
  }

  /** Sends one command on a connection of its own; rejects with a ReplyError if that is the reply. */
  async command(...words) {
    const { password } = this.#options;
    const login = password === undefined ? [] : [['AUTH', password]];
    const commands = [...login, words];
    const socket = net.connect(this.socketPath ? { path: this.socketPath } : this.port, HOST);
    try {
      return await new Promise((resolve, reject) => {
        const replies = [];
        const read = valueReader((reply) => {
          replies.push(reply);
          if (reply instanceof Error) reject(reply);
          else if (replies.length === commands.length) resolve(reply);
        });
        socket.on('data', read);
        socket.on('error', reject);
        socket.on('close', () => reject(new Error(`${words[0]}: the server hung up`)));
        socket.setTimeout(PATIENCE_MS, () => reject(new Error(`${words[0]}: no answer`)));
        socket.write(Buffer.concat(commands.map(encodeCommand)));
      });
    } finally {
      socket.destroy();
    }
  }

  /** Finds a free port, unless it has a unix socket. For startRedis alone. */
  async start() {
    for (let tries = 0; tries < 50; tries += 1) {
      if (!this.socketPath) this.port = anyPort();
      if (await this.#tryToStart()) return;
    }
    throw new Error('found no free port');
  }

  /** Stops it for good: it cannot be restarted. */
  async dispose() {
    await this.stop();
    started.delete(this);
    if (this.#guard.exitCode !== null || this.#guard.signalCode !== null) return;
    const ended = once(this.#guard, 'exit');
    this.#guard.ref();
    this.#guard.stdin.end();
    await ended;
  }

  /** Its name, as the first argument, of the file that a Sentinel keeps its state in; it outlives a restart. */
  #configFile() {
    if (!this.#options.keepsConfig) return [];
    const file = path.join(this.#folder, 'redis.conf');
    fs.closeSync(fs.openSync(file, 'a'));
    return [file];
  }

  /** Whether it started; false if its port is taken. */
  async #tryToStart() {
    const settings = {
      port: this.socketPath ? 0 : this.port,
      bind: HOST,
      dir: this.#folder,
      save: '',
      appendonly: 'no',
      ...(this.socketPath && { unixsocket: this.socketPath }),
      ...(this.#options.password !== undefined && { requirepass: this.#options.password }),
    };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const child = spawn(PROGRAM, [...this.#configFile(), ...args, ...this.#options.args], {
      env: ENVIRONMENT,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    if (child.pid !== undefined) this.#guard.stdin.write(`${child.pid}\n`);
    child.once('exit', () => {
      this.#child = undefined;
      this.frozen = false;
      this.#guard.stdin.write('\n');
    });
    const { ready, output } = await readiness(child);
    if (!ready) {
      if (PORT_TAKEN.test(output)) return false;
      throw new Error(`${PROGRAM} did not start: ${output}`);
    }
    this.#child = child;
    for (const handle of [child, child.stdout, child.stderr]) handle.unref();
    return true;
  }
}

/** Whether a server says that it accepts connections, and what it wrote until then. */
function readiness(child) {
  return new Promise((resolve) => {
    let output = '';
    let settled = false;
    const settle = (ready) => {
      settled = true;
      clearTimeout(impatience);
      resolve({ ready, output });
    };
    const impatience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text) => {
        if (settled) return; // read on, or the server would block
        output += text;
        // Only our own server writes here, whatever else has the port.
        if (READY.test(output)) settle(true);
      });
    }
    child.on('error', (error) => {
      output += `${error.message}; node scripts/setup.mjs --for=test installs it`;
      settle(false);
    });
    child.on('close', () => settle(false));
  });
}

const DEFAULTS = { args: [], unixSocket: false, keepsConfig: false };

/**
 * Starts a server that keeps nothing on disk, on a free port of 127.0.0.1 or, with `unixSocket`, on a socket
 * in its folder alone. `password` is asked of every client; `args` are further arguments such as
 * ['--maxmemory', '2mb'], which overrule what is set here. With `keepsConfig` it has a file of settings that
 * it may write, as a Sentinel must.
 *
 * @param {{ args?: string[], unixSocket?: boolean, password?: string, keepsConfig?: boolean }} [options]
 * @returns {Promise<RedisServer>}
 */
async function startRedis(options) {
  const server = new RedisServer({ ...DEFAULTS, ...options });
  try {
    await server.start();
  } catch (error) {
    await server.dispose();
    throw error;
  }
  return server;
}

/** The same for the tests of a file or of a describe: it starts before them. */
function redisForTests(options) {
  const server = new RedisServer({ ...DEFAULTS, ...options });
  beforeAll(() => server.start());
  return server;
}

/** Stops all servers of this file, or those given, and removes their folders. */
async function stopRedis(servers = [...started]) {
  await Promise.all(servers.map((server) => server.dispose()));
}

/** How many calls of a command a server has served since its statistics began. */
async function callsOf(server, command) {
  const stats = await server.command('INFO', 'commandstats');
  const [, calls] = new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats) ?? [null, 0];
  return Number(calls);
}

const CERTIFICATES = path.join(__dirname, 'certificates');
const fileOf = (name) => path.join(CERTIFICATES, name);
const pemOf = (name) => fs.readFileSync(fileOf(name), 'utf8');

/**
 * The plain port stays open, for commands of the test; `url` is that of the TLS port, `port`. `more` arguments overrule
 * what is set here.
 */
async function startRedisWithTls(...more) {
  const server = await startRedis({
    args: [
      ...['--tls-port', '0'],
      ...['--tls-cert-file', fileOf('localhost.pem'), '--tls-key-file', fileOf('localhost.key')],
      ...['--tls-ca-cert-file', fileOf('ca.pem'), '--tls-auth-clients', 'optional'],
      ...more,
    ],
  });
  const port = await waitUntil('it listens on a port for TLS', async () => {
    const free = anyPort();
    await server.command('CONFIG', 'SET', 'tls-port', free);
    return free;
  });
  return { server, port, url: `rediss://localhost:${port}` };
}

globalThis.afterAll?.(() => stopRedis());

module.exports = { callsOf, pemOf, redisForTests, startRedis, startRedisWithTls, stopRedis };
