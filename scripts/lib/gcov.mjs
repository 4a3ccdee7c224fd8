// The lines of C++ that ran in the build that counts them.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root, treeOf } from '../build.mjs';
import { filesBelow } from './files.mjs';

export const VARIANT = 'coverage';
const tree = treeOf(VARIANT);

const countFiles = () =>
  filesBelow(relative(root, tree), /\.gcda$/).map((file) => join(root, file));

/** Programs that end from now on are counted from 0. */
export function forgetCounts() {
  for (const file of countFiles()) rmSync(file);
}

/** How often each line of each source ran, summed over all objects, because many contain a header. */
export function countedLines() {
  const counts = new Map();
  for (const file of countFiles()) {
    const { stdout } = spawnSync('gcov', ['--json-format', '--stdout', file], {
      cwd: tree,
      encoding: 'utf8',
      maxBuffer: 2 ** 30,
    });
    for (const { file: path, lines } of JSON.parse(stdout).files) {
      const name = relative(root, join(path.startsWith('/') ? '' : tree, path));
      if (!name.startsWith('src/')) continue;
      const known = counts.get(name) ?? new Map();
      counts.set(name, known);
      for (const { line_number: line, count } of lines) {
        known.set(line, (known.get(line) ?? 0) + count);
      }
    }
  }
  return counts;
}
