// Builds for Linux on arm64 and runs the tests under QEMU: npm run arm64 [-- --only=jest]
// --only: the steps whose names contain this
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root, treeOf } from './build.mjs';
import { buildArm64, emulatedNode, qemu } from './lib/arm64.mjs';

const MINUTES_PER_STEP = 15;
const logs = join(root, 'build/logs');

// Left out, because they take minutes: the exploration of simulated memory and the longest comparison
// with the oracle. Neither depends on the processor.
const slow = '*Model.*:*.ARefundUnderCountedRefusalsNeverLetsMoreThrough/*';

function run(log, [command, ...args], env) {
  const { error, status, signal } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', log, log],
    env: { ...process.env, ...env },
    timeout: MINUTES_PER_STEP * 60_000,
    killSignal: 'SIGKILL',
  });
  if (status !== 0) throw new Error(error?.message ?? `ended with ${signal ?? status}`);
}

function cpp(layer) {
  const program = join(treeOf('arm64'), `${layer}_test`);
  return (log) => run(log, [...qemu, program, `--gtest_filter=-${slow}`]);
}

function jest(...args) {
  // Without the transformation of sources, Jest starts a minute earlier here.
  const options = ['--runInBand', '--verbose', '--testTimeout=120000', '--transform={}'];
  const env = {
    PREBUILDS_ONLY: '1', // prebuilds/linux-arm64, not the addon of this machine
    ROLLGATE_TESTS: 'all', // every store
    ROLLGATE_SANITIZED: '1', // as slow as with a sanitizer: fewer rounds, longer timeouts
  };
  const program = 'node_modules/jest/bin/jest.js';
  return (log) => run(log, [emulatedNode(), program, ...options, ...args], env);
}

const steps = {
  prebuild: (log) => run(log, [process.execPath, 'scripts/prebuild.mjs', '--arch=arm64']),
  build: (output) => buildArm64(['tests'], { output }),
  traces: (log) =>
    run(log, [process.execPath, 'test/conformance/write-traces.js', 'build/traces.txt']),
  core: cpp('core'),
  memory: cpp('memory'),
  redis: cpp('redis'),
  shared: cpp('shared'),
  'jest-behaviours': jest(
    'test/conformance/behaviours',
    '--testNamePattern=^(memory|shared memory|Redis, native) (sliding-window-log|gcra) ',
  ),
  'jest-calls': jest('test/lib/(calls|lifetime)'),
  'jest-stores': jest('test/(shared/regions|redis/(native-)?calls)'),
};

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } });
const names = Object.keys(steps).filter((name) => name.includes(values.only));
if (names.length === 0) {
  console.error(
    `arm64: --only takes a part of ${Object.keys(steps).join(', ')}, not ${values.only}`,
  );
  process.exit(2);
}

mkdirSync(logs, { recursive: true });
let failed = 0;
for (const name of names) {
  const file = join(logs, `arm64-${name}.log`);
  const log = openSync(file, 'w');
  const started = Date.now();
  let reason;
  try {
    steps[name](log);
  } catch (error) {
    reason = error.message;
    failed += 1;
  }
  closeSync(log);
  const text = readFileSync(file, 'utf8');
  const count = /^(\[ {2}PASSED {2}\]|Tests:) +(.+)/m.exec(text)?.[2] ?? '';
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  console.log(
    `${reason ? 'FAILED' : 'passed'}  ${name.padEnd(16)} ${seconds.padStart(4)} s  ${count}`,
  );
  if (reason)
    console.log(`${text.split('\n').slice(-60).join('\n')}\n${reason}; all of it: ${file}`);
}
console.log(`${names.length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
