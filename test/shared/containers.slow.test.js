// Shared memory under the bounds of containers: a small /dev/shm, a memory limit, a boot id of their own.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { patient } = require('../support/tiers');

const ROOT = path.join(__dirname, '..', '..');
const MEBI = 2 ** 20;

/** Runs shell commands with mounts of their own; what they mount nobody else sees. */
function runApart(commands, { env = {} } = {}) {
  return spawnSync('unshare', ['--mount', 'sh', '-ec', commands], {
    cwd: ROOT,
    env: { ...process.env, ...env, NODE: process.execPath },
    encoding: 'utf8',
    timeout: patient(60_000),
  });
}

/** A command that calls a limiter once and prints what came of it as JSON, with what is in /dev/shm. */
function commandOf(options) {
  const program = `
    const RateLimiter = require('rollgate');
    const limiter = RateLimiter({ interval: 60_000, maxInInterval: 100, ...${JSON.stringify(options)} });
    let result;
    try {
      result = { timeLeft: limiter('a'), bytes: limiter.stats().bytes };
    } catch ({ code, message }) {
      result = { code, message };
    }
    console.log(JSON.stringify({ ...result, files: require('node:fs').readdirSync('/dev/shm') }));
  `;
  return `"$NODE" --input-type=commonjs --eval '${program.replaceAll("'", `'\\''`)}'`;
}

function resultsOf({ error, status, signal, stdout, stderr }) {
  if (error || status !== 0) {
    throw new Error(`the program ended with ${error ?? signal ?? status}: ${stderr}`);
  }
  return stdout.trim().split('\n').map(JSON.parse);
}

const mountSmall = 'mount -t tmpfs -o size=64m tmpfs /dev/shm;';
const mountLarge = 'mount -t tmpfs -o size=1g tmpfs /dev/shm;';
const noMounts = runApart(mountSmall).status === 0 ? '' : 'mounting needs CAP_SYS_ADMIN';

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
      const [result] = resultsOf(runApart(mountSmall + commandOf({ shared: 'api', ...options })));
      expect(result.timeLeft).toBe(0);
    });
  }

  testHere('refuses what does not fit, leaves nothing, and takes what the error proposes', () => {
    const tooMany = commandOf({ shared: 'api', maxKeys: 1_000_000 });
    const [refused] = resultsOf(runApart(mountSmall + tooMany));
    expect(refused).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_SYSTEM', files: [] });
    const [, needed, left, asked, keys] = refused.message.match(
      /needs (\d+) bytes .* but (\d+) bytes are left in the file system of \/dev\/shm; lower maxKeys from (\d+) to about (\d+), or lower maxInInterval\. Docker sets the size of \/dev\/shm with --shm-size$/,
    );
    expect([Number(asked), Number(left)]).toEqual([1_000_000, 64 * MEBI]);
    expect(Number(needed)).toBeGreaterThan(600 * MEBI * 0.95);
    const proposed = commandOf({ shared: 'api', maxKeys: Number(keys) });
    const [result] = resultsOf(runApart(mountSmall + proposed));
    expect(result.timeLeft).toBe(0);
    expect(result.bytes).toBeGreaterThan(0.9 * Number(left));
  });

  testHere('refuses a log that is too long for it', () => {
    const [refused] = resultsOf(
      runApart(mountSmall + commandOf({ shared: 'api', maxInInterval: 100_000, maxKeys: 1 })),
    );
    expect(refused).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_SYSTEM', files: [] });
    expect(refused.message).toMatch(/not even one id fits: lower maxInInterval/);
  });
});

describe('a memory limit of 300 MB, as of a container', () => {
  const testHere = testUnless(whyNoMemoryLimit());
  const run = (options) =>
    withMemoryLimit(300 * MEBI, (procs) =>
      resultsOf(runApart(`${mountLarge} echo $$ > ${procs}; exec ${commandOf(options)}`)),
    );

  testHere('has room for the default', () => {
    expect(run({ shared: 'api' })).toMatchObject([{ timeLeft: 0 }]);
  });

  testHere('refuses what does not fit instead of a kill, and takes what the error proposes', () => {
    const [refused] = run({ shared: 'api', maxKeys: 1_000_000 });
    expect(refused).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_SYSTEM', files: [] });
    expect(refused.message).toContain(`the container's memory limit of ${300 * MEBI} bytes`);
    const [, keys] = refused.message.match(/lower maxKeys from 1000000 to about (\d+)/);
    expect(Number(keys)).toBeGreaterThan(300_000);
    expect(run({ shared: 'api', maxKeys: Number(keys) })).toMatchObject([{ timeLeft: 0 }]);
  });
});

describe('containers that share a directory and have a boot id each', () => {
  testUnless(noMounts)('count together while one of them lives', () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-test-'));
    try {
      fs.writeFileSync(path.join(folder, 'boot_id'), '22222222-2222-2222-2222-222222222222\n');
      const shared = { name: 'api', directory: folder, maxKeys: 100 };
      const options = { interval: 60_000, maxInInterval: 2, shared };
      const ask = `require('rollgate')(${JSON.stringify(options)}).attempt('a').actionsLeft`;
      const other = `"$NODE" --eval "console.log(JSON.stringify(${ask.replaceAll('"', '\\"')}))"`;
      const inOther = `mount --bind ${folder}/boot_id /proc/sys/kernel/random/boot_id; ${other}`;
      const limiter = require('../..')(options);
      expect(limiter.attempt('a').actionsLeft).toBe(1);
      expect(resultsOf(runApart(inOther))).toEqual([0]);
      expect(limiter.attempt('a').allowed).toBe(false);
      limiter.close();
      expect(resultsOf(runApart(inOther))).toEqual([1]);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });
});
