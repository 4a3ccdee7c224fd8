// What the cross-builds share: CMake's arguments, Node for other systems, a time limit for steps.
import { join } from 'node:path';
import { build, root } from '../../build.mjs';
import { npmFolder } from '../../caches.mjs';
import { run } from '../step.mjs';

const NODE_VERSION = '20.20.2';
const MINUTES_PER_STEP = 15;

/** The folder of Node for another system, such as linux-arm64. */
export function nodeFor(system) {
  const name = `node-${system}`;
  const folder = npmFolder(name, { [name]: NODE_VERSION }, ['--force']); // it is for another machine
  return join(folder, 'node_modules', name);
}

/** Builds parts of build.mjs for a target, by cmake/cross-<target>.cmake. */
export function crossBuild(target, parts, { settings, ...options }) {
  const common = [
    `-DCMAKE_TOOLCHAIN_FILE=${join(root, `cmake/cross-${target}.cmake`)}`,
    '-DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=/usr/src/googletest', // of Debian's googletest
    '-DCMAKE_POLICY_DEFAULT_CMP0135=NEW', // without it, CMake warns about a download that does not happen
  ];
  build(parts, { ...options, variant: target, settings: [...common, ...settings] });
}

/** Runs a command of a step with a time limit. */
export function runFor(log, [command, ...args], env) {
  const timeout = MINUTES_PER_STEP * 60_000;
  run(command, args, log, { env: { ...process.env, ...env }, timeout, killSignal: 'SIGKILL' });
}
