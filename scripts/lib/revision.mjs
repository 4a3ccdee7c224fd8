// Builds another revision of the project in a clone of its own, below the cache folder, once for each commit.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../build.mjs';
import { cacheFolder } from './npm-folder.mjs';

const git = (args, options = {}) =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', ...options }).trim();

/** The full commit hash of a revision. Throws if there is none. */
export function commitOf(revision) {
  try {
    const stdio = ['ignore', 'pipe', 'ignore'];
    return git(['rev-parse', '--verify', '--end-of-options', `${revision}^{commit}`], { stdio });
  } catch {
    throw new Error(`there is no revision '${revision}' in this clone`);
  }
}

/** The folder of the revision, built as a release: its addon and, if it has one, its WebAssembly module. */
export function builtRevision(revision) {
  const commit = commitOf(revision);
  const revisions = join(cacheFolder, 'revisions');
  const folder = join(revisions, commit);
  if (!existsSync(folder)) {
    // Renamed when complete: an interrupted build is repeated, and two at once do not meet.
    const unfinished = `${folder}.${process.pid}`;
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(revisions, { recursive: true });
    removeInterrupted(revisions);
    try {
      git(['clone', '--quiet', '--shared', '--no-checkout', root, unfinished]);
      git(['checkout', '--quiet', '--detach', commit], { cwd: unfinished });
      linkPackages(unfinished);
      build(unfinished);
      if (!existsSync(folder)) renameSync(unfinished, folder);
    } finally {
      rmSync(unfinished, { recursive: true, force: true });
    }
  }
  linkPackages(folder);
  return folder;
}

/** Removes what interrupted builds left: the name ends in the id of a process that is gone. */
export function removeInterrupted(revisions) {
  for (const name of readdirSync(revisions)) {
    const pid = Number(name.split('.')[1]);
    if (pid > 0 && !isRunning(pid)) rmSync(join(revisions, name), { recursive: true, force: true });
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch ({ code }) {
    return code !== 'ESRCH'; // of another user
  }
}

/** The clone shares the packages of this one; of a clone that is gone, the link is replaced. */
function linkPackages(folder) {
  const link = join(folder, 'node_modules');
  if (existsSync(link)) return;
  rmSync(link, { force: true });
  symlinkSync(join(root, 'node_modules'), link, 'junction');
}

/** By its own scripts, so that it gets the flags of its time. */
function build(folder) {
  run(folder, 'build.mjs');
  if (existsSync(join(folder, 'scripts/build-wasm.mjs'))) {
    try {
      run(folder, 'build-wasm.mjs');
    } catch {} // no clang for WebAssembly: the cell of wasm prints a dash
  }
}

function run(folder, script) {
  const args = [join(folder, 'scripts', script)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  if (status === 0) return;
  const output = `${stdout}${stderr}`.split('\n').slice(-50).join('\n');
  throw new Error(`${script} of ${folder} failed:\n${output}`);
}
