// Shared memory under the bounds of containers: a small /dev/shm, a memory limit. The system is a real one here;
// room_test.cc has made-up ones.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { patient } = require('../support/tiers');

const ROOT = path.join(__dirname, '..', '..');
const MEBI = 2 ** 20;

/** Runs shell commands with mounts of their own; what they mount nobody else sees. */
const runApart = (commands) =>
  spawnSync('unshare', ['--mount', 'sh', '-ec', commands], {
    cwd: ROOT,
    env: { ...process.env, NODE: process.execPath },
    encoding: 'utf8',
    timeout: patient(60_000),
  });

/** Calls a limiter once, with a /dev/shm of that size, and returns what came of it and what is in /dev/shm. */
function call(size, options, before = '') {
  const program = `
    const RateLimiter = require('rollgate');
    const limiter = RateLimiter({ shared: 'api', interval: 60_000, maxInInterval: 100, ...${JSON.stringify(options)} });
    let result;
    try {
      result = { timeLeft: limiter('a'), bytes: limiter.stats().bytes };
    } catch ({ code, message }) {
      result = { code, message };
    }
    console.log(JSON.stringify({ ...result, files: require('node:fs').readdirSync('/dev/shm') }));
  `;
  const { status, signal, stdout, stderr } = runApart(`
    mount -t tmpfs -o size=${size} tmpfs /dev/shm
    ${before}
    exec "$NODE" --input-type=commonjs --eval '${program.replaceAll("'", `'\\''`)}'
  `);
  if (status !== 0) throw new Error(`the program ended with ${signal ?? status}: ${stderr}`);
  return JSON.parse(stdout);
}

const noMounts =
  runApart('mount -t tmpfs tmpfs /dev/shm').status === 0 ? '' : 'mounting needs CAP_SYS_ADMIN';

/** A folder of the memory controller in which groups can be made, of version 1 or 2. */
function memoryGroups() {
  const read = (file) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '');
  if (read('/sys/fs/cgroup/memory/memory.use_hierarchy')) {
    return { folder: '/sys/fs/cgroup/memory', limitFile: 'memory.limit_in_bytes' };
  }
  if (read('/sys/fs/cgroup/cgroup.subtree_control').split(/\s/).includes('memory')) {
    return { folder: '/sys/fs/cgroup', limitFile: 'memory.max' };
  }
  return undefined;
}

/** Calls `use` with the path of a new group that is limited to so many bytes, and removes it. */
function withMemoryLimit(bytes, use) {
  const { folder, limitFile } = memoryGroups();
  const group = path.join(folder, `rollgate-test-${process.pid}`);
  fs.mkdirSync(group);
  try {
    fs.writeFileSync(path.join(group, limitFile), String(bytes));
    const procs = path.join(group, 'cgroup.procs');
    fs.accessSync(procs, fs.constants.W_OK);
    return use(procs);
  } finally {
    fs.rmdirSync(group);
  }
}

function whyNoMemoryLimit() {
  if (noMounts) return noMounts;
  if (process.env.ROLLGATE_SANITIZED) return 'sanitizers take more memory than that';
  if (!memoryGroups()) return 'there is no memory controller of cgroups';
  try {
    withMemoryLimit(300 * MEBI, () => {});
    return '';
  } catch ({ message }) {
    return `no memory cgroup can be made (${message})`;
  }
}

/** A test that runs where `missing` is empty, and otherwise is skipped with that as the reason. */
const testUnless = (missing) => (name, run) =>
  missing ? test.skip(`${name}: skipped, ${missing}`, run) : test(name, run);

describe('a /dev/shm of 64 MB, as in a container', () => {
  const testHere = testUnless(noMounts);
  const DAY = 86_400_000;

  for (const options of [
    { maxInInterval: 200 },
    { maxInInterval: 100, interval: DAY, blockFor: [1000, 2000] },
    { maxInInterval: 1e9, algorithm: 'sliding-window-counter' },
  ]) {
    testHere(`has room for the default: ${JSON.stringify(options)}`, () => {
      expect(call('64m', options).timeLeft).toBe(0);
    });
  }

  testHere('refuses what does not fit, leaves nothing, and takes what the error proposes', () => {
    const refused = call('64m', { maxKeys: 1_000_000 });
    expect(refused).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_SYSTEM', files: [] });
    const [, needed, left, asked, keys] = refused.message.match(
      /needs (\d+) bytes .* but (\d+) bytes are left in the file system of \/dev\/shm; lower maxKeys from (\d+) to about (\d+), or lower maxInInterval\. Docker sets the size of \/dev\/shm with --shm-size$/,
    );
    expect([Number(asked), Number(left)]).toEqual([1_000_000, 64 * MEBI]);
    expect(Number(needed)).toBeGreaterThan(600 * MEBI * 0.95);
    const result = call('64m', { maxKeys: Number(keys) });
    expect(result.timeLeft).toBe(0);
    expect(result.bytes).toBeGreaterThan(0.9 * Number(left));
  });
});

testUnless(whyNoMemoryLimit())(
  'a memory limit of 300 MB, as of a container, is an error before it kills',
  () => {
    const run = (options) =>
      withMemoryLimit(300 * MEBI, (procs) => call('1g', options, `echo $$ > ${procs}`));
    expect(run({}).timeLeft).toBe(0);
    const refused = run({ maxKeys: 1_000_000 });
    expect(refused).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_SYSTEM', files: [] });
    expect(refused.message).toContain(`the container's memory limit of ${300 * MEBI} bytes`);
    const [, keys] = refused.message.match(/lower maxKeys from 1000000 to about (\d+)/);
    expect(Number(keys)).toBeGreaterThan(300_000);
    expect(run({ maxKeys: Number(keys) }).timeLeft).toBe(0);
  },
);
