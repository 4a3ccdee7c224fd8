// Lists the files that changed since the branch left main; on main itself, since the previous commit.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../build.mjs';

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.split('\n').filter(Boolean) : [];
}

function base() {
  const [head] = git('rev-parse', 'HEAD');
  for (const main of ['origin/main', 'main']) {
    const [fork] = git('merge-base', 'HEAD', main);
    if (fork && fork !== head) return fork;
  }
  return git('rev-parse', 'HEAD~1')[0] ?? head; // in a shallow clone, only uncommitted changes
}

/** The files below a folder that were changed or added, as paths from the project's root. */
export function changedFiles(folder) {
  const from = base();
  if (from === undefined) return []; // no repository
  const changed = git('diff', '--name-only', from, '--', folder);
  const added = git('ls-files', '--others', '--exclude-standard', '--', folder);
  return [...changed, ...added].filter((file) => existsSync(join(root, file)));
}
