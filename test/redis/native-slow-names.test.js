// Names that are looked up for seconds, and names with an address that does not answer.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');

/**
 * two.test has two addresses, any other name takes long. A lookup that is under way cannot be called
 * off, other than one that waits for its turn.
 */
const LOOKUP = `
  #define _GNU_SOURCE
  #include <dlfcn.h>
  #include <netdb.h>
  #include <string.h>
  #include <unistd.h>
  typedef int lookup(const char*, const char*, const struct addrinfo*, struct addrinfo**);
  int getaddrinfo(const char* n, const char* s, const struct addrinfo* h, struct addrinfo** r) {
    lookup* real = (lookup*)dlsym(RTLD_NEXT, "getaddrinfo");
    if (strncmp(n, "127.", 4) == 0) return real(n, s, h, r);
    if (strcmp(n, "two.test") == 0) {
      const int status = real("127.0.0.2", s, h, r);
      return status != 0 ? status : real("127.0.0.1", s, h, &(*r)->ai_next);
    }
    sleep(3);
    return EAI_NONAME;
  }
`;

/** Listens, and then never accepts anybody: once its queue is full, whoever comes waits for ever. */
const DEAF = `
  const server = require('node:net').createServer();
  server.listen({ port: Number(process.argv[1]), host: '127.0.0.2', backlog: 1 }, () => {
    require('node:fs').writeSync(1, 'ready');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  });
`;

let folder;
let library;

beforeAll(() => {
  if (process.platform !== 'linux') return;
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-names-'));
  const file = path.join(folder, 'slow.so');
  const args = ['-shared', '-fPIC', '-x', 'c', '-', '-o', file, '-ldl'];
  const env = { ...process.env, LD_PRELOAD: '' };
  if (spawnSync('cc', args, { input: LOOKUP, env }).status === 0) library = file;
});

afterAll(() => {
  if (folder !== undefined) fs.rmSync(folder, { recursive: true });
});

const preload = () => ({ LD_PRELOAD: [process.env.LD_PRELOAD, library].filter(Boolean).join(' ') });

test('close() fails the calls under way at once', async () => {
  if (library === undefined) return; // nothing to slow it with
  const program = `
    const limiter = require('rollgate')({ redis: 'redis://a.test', interval: 1000, maxInInterval: 2 });
    const began = performance.now();
    const tell = ({ code }) => {
      console.log(JSON.stringify({ code, tookMs: performance.now() - began }));
    };
    limiter('a').catch(tell);
    setTimeout(() => limiter.close(), 100);
  `;
  const { code, tookMs } = await askProgram(program, { env: preload() });
  expect(code).toMatch(/CLOSED$/);
  expect(tookMs).toBeLessThan(2500);
});

test('an address that does not answer does not hide the next one', async () => {
  if (library === undefined) return;
  const { port } = await startRedis();
  const deaf = spawn(process.execPath, ['-e', DEAF, String(port)], {
    env: { ...process.env, LD_PRELOAD: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(deaf.stdout, 'data');
  const waiting = Array.from({ length: 8 }, () => {
    return net.connect(port, '127.0.0.2').on('error', () => {});
  });
  const program = `
    const redis = { host: 'two.test', port: ${port}, connectTimeout: 1000, commandTimeout: 2000 };
    const limiter = require('rollgate')({ redis, interval: 1000, maxInInterval: 2 });
    limiter('a').catch(({ code }) => code).then((outcome) => console.log(JSON.stringify(outcome)));
  `;
  expect(await askProgram(program, { env: preload() })).toBe(0);
  for (const socket of waiting) socket.destroy();
  deaf.kill();
});
