// Cross-builds for Linux on arm64 with Debian's packages, and runs the tests under QEMU.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { prebuildOf, treeOf } from '../../build.mjs';
import { kept } from '../../caches.mjs';
import { unpackPackages, writeProgram } from '../debian-packages.mjs';
import { crossBuild, nodeFor, runFor } from './build.mjs';

/** The prefix of the cross compiler's tools. */
export const toolPrefix = 'aarch64-linux-gnu-';
/** Starts a program of arm64: the command and its arguments follow. */
const qemu = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'];

/** Left out, because it takes minutes and does not depend on the processor: the exploration of simulated memory. */
const slow = '*Model.*';

/** A folder with hiredis for arm64, from this system's own package sources. */
function sysroot() {
  const system = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  return kept('sysroots', `arm64-${system}`, (folder) =>
    unpackPackages(folder, ['download', 'libhiredis-dev'], {
      'APT::Architecture': 'arm64',
      'APT::Architectures': 'arm64',
    }),
  );
}

/** Builds parts of build.mjs for arm64. The compiler is required; QEMU is not. */
export function buildArm64(parts, options) {
  const settings = [
    `-DCMAKE_FIND_ROOT_PATH=${sysroot()}`,
    `-DNODE_INCLUDE_DIR=${join(nodeFor('linux-arm64'), 'include/node')}`,
    '-DROLLGATE_HIREDIS=ON',
  ];
  crossBuild('arm64', parts, { ...options, settings });
}

/**
 * A program that runs the arm64 Node under QEMU.
 * Node starts child processes by process.execPath, and Linux cannot start an arm64 program by itself:
 * there, execPath is this program too.
 */
function emulatedNode() {
  const folder = prebuildOf('arm64');
  const program = join(folder, 'node');
  const preload = join(folder, 'exec-path.cjs');
  mkdirSync(folder, { recursive: true });
  writeFileSync(preload, `process.execPath = ${JSON.stringify(program)};\n`);
  const command = [...qemu, join(nodeFor('linux-arm64'), 'bin/node'), '--require', preload];
  return writeProgram(program, command);
}

function cpp(layer) {
  const program = join(treeOf('arm64'), `${layer}_test`);
  return (log) => runFor(log, [...qemu, program, `--gtest_filter=-${slow}`]);
}

function jest(...args) {
  // Without the transformation of sources, Jest starts a minute earlier here.
  const options = ['--runInBand', '--verbose', '--transform={}'];
  const env = {
    PREBUILDS_ONLY: '1', // prebuilds/linux-arm64, not the addon of this machine
    ROLLGATE_TESTS: 'all', // every store
    ROLLGATE_SANITIZED: '1', // as slow as with a sanitizer: fewer rounds, longer timeouts
  };
  const program = 'node_modules/jest/bin/jest.js';
  return (log) => runFor(log, [emulatedNode(), program, ...options, ...args], env);
}

export const steps = {
  prebuild: (log) => runFor(log, [process.execPath, 'scripts/prebuild.mjs', '--arch=arm64']),
  build: (output) => buildArm64(['tests'], { output }),
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
