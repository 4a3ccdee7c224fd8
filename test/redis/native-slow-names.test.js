// A name that is looked up for seconds holds up nobody who has given up on it.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { askProgram } = require('../support/run-program');

/** A lookup that is under way cannot be called off, other than one that waits for its turn. */
const SLOW_LOOKUP = `
  #include <netdb.h>
  #include <unistd.h>
  int getaddrinfo(const char* n, const char* s, const struct addrinfo* h, struct addrinfo** r) {
    sleep(3);
    return EAI_NONAME;
  }
`;

let folder;
let library;

beforeAll(() => {
  if (process.platform !== 'linux') return;
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-names-'));
  const file = path.join(folder, 'slow.so');
  const args = ['-shared', '-fPIC', '-x', 'c', '-', '-o', file];
  const env = { ...process.env, LD_PRELOAD: '' };
  if (spawnSync('cc', args, { input: SLOW_LOOKUP, env }).status === 0) library = file;
});

afterAll(() => {
  if (folder !== undefined) fs.rmSync(folder, { recursive: true });
});

test('close() fails the calls under way at once', async () => {
  if (library === undefined) return; // nothing to slow it with
  const preload = [process.env.LD_PRELOAD, library].filter(Boolean).join(' ');
  const program = `
    const limiter = require('rollgate')({ redis: 'redis://a.test', interval: 1000, maxInInterval: 2 });
    const began = performance.now();
    const tell = ({ code }) => {
      console.log(JSON.stringify({ code, tookMs: performance.now() - began }));
    };
    limiter('a').catch(tell);
    setTimeout(() => limiter.close(), 100);
  `;
  const { code, tookMs } = await askProgram(program, { env: { LD_PRELOAD: preload } });
  expect(code).toMatch(/CLOSED$/);
  expect(tookMs).toBeLessThan(2500);
});
