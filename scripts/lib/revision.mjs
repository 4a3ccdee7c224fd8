// Builds another revision of the project in a clone of its own, once for each commit.
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../build.mjs';
import { kept } from '../caches.mjs';
import { must } from './commands.mjs';

/** The full commit hash of a revision. Throws if there is none. */
export function commitOf(revision) {
  try {
    const args = ['rev-parse', '--verify', '--end-of-options', `${revision}^{commit}`];
    const stdio = ['ignore', 'pipe', 'ignore'];
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio }).trim();
  } catch {
    throw new Error(`there is no revision '${revision}' in this clone`);
  }
}

/** The folder of the revision, built as a release: its addon and, if it has one, its WebAssembly module. */
export function builtRevision(revision) {
  const commit = commitOf(revision);
  const folder = kept('revisions', commit, (unfinished) => {
    must('git', ['clone', '--quiet', '--shared', '--no-checkout', root, unfinished]);
    must('git', ['checkout', '--quiet', '--detach', commit], { cwd: unfinished });
    linkPackages(unfinished);
    build(unfinished);
  });
  linkPackages(folder);
  return folder;
}

/** The clone shares the packages of this one; of a clone that is gone, the link is replaced. */
export function linkPackages(folder) {
  const link = join(folder, 'node_modules');
  if (existsSync(link)) return;
  rmSync(link, { force: true });
  symlinkSync(join(root, 'node_modules'), link, 'junction');
}

/** By its own scripts, so that it gets the flags of its time. */
function build(folder) {
  must(process.execPath, ['scripts/build.mjs'], { cwd: folder });
  try {
    must(process.execPath, ['scripts/build-wasm.mjs'], { cwd: folder });
  } catch {} // no script or no clang for WebAssembly: the cell of wasm prints a dash
}
