// Measures which lines the tests reach, in C++ and JavaScript: npm run coverage [-- <Jest's arguments>]
// The others are in coverage/cpp.txt and coverage/js/index.html.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build, prebuildOf, root, treeOf } from './build.mjs';
import { filesBelow } from './lib/files.mjs';

const REPORT = join(root, 'coverage');
const tree = treeOf('coverage');

const run = (command, args, options) =>
  spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options }).status === 0;

function jest() {
  const args = [
    'node_modules/jest/bin/jest.js',
    ...process.argv.slice(2), // first, because a list argument would take them
    '--coverage',
    '--coverageProvider=v8',
    '--collectCoverageFrom=lib/**/*.js',
    `--coverageDirectory=${join(REPORT, 'js')}`,
    ...['--coverageReporters=html', '--coverageReporters=text-summary'],
    ...['--testPathIgnorePatterns', '/node_modules/', '/test/package/'],
  ];
  return run(process.execPath, args, {
    env: { ...process.env, ROLLGATE_PREBUILD: prebuildOf('coverage') },
  });
}

const countFiles = () => filesBelow(relative(root, tree), /\.gcda$/);

/** How often each line of each source ran, summed over all objects, because many contain a header. */
function countedLines() {
  const counts = {};
  for (const file of countFiles()) {
    const args = ['--json-format', '--stdout', join(root, file)];
    const { stdout } = spawnSync('gcov', args, { cwd: tree, encoding: 'utf8', maxBuffer: 2 ** 30 });
    for (const { file: path, lines } of JSON.parse(stdout).files) {
      const name = relative(root, join(path.startsWith('/') ? '' : tree, path));
      if (!name.startsWith('src/')) continue;
      counts[name] ??= {};
      for (const { line_number: line, count } of lines) {
        counts[name][line] = (counts[name][line] ?? 0) + count;
      }
    }
  }
  return counts;
}

/** Writes the lines of each source that were not reached, and prints how many were, by folder. */
function reportCpp() {
  const missed = [];
  const sums = {};
  for (const [file, counts] of Object.entries(countedLines())) {
    const lines = Object.keys(counts);
    const unreached = lines.filter((line) => counts[line] === 0);
    if (unreached.length > 0) missed.push(`${file}: ${unreached.join(' ')}\n`);
    for (const name of ['all', dirname(file)]) {
      const [reached, all] = sums[name] ?? [0, 0];
      sums[name] = [reached + lines.length - unreached.length, all + lines.length];
    }
  }
  writeFileSync(join(REPORT, 'cpp.txt'), missed.sort().join(''));
  for (const [name, [reached, all]] of Object.entries(sums)) {
    const share = `${((100 * reached) / all).toFixed(1)} %`;
    console.log(`  ${name.padEnd(16)} ${share.padStart(8)}  ${reached} of ${all} lines`);
  }
}

rmSync(REPORT, { recursive: true, force: true });
mkdirSync(REPORT, { recursive: true });
build(['tests', 'addon'], { variant: 'coverage' });
for (const file of countFiles()) rmSync(join(root, file)); // of earlier runs
const passed = [run('ctest', ['--output-on-failure', '--parallel', '2'], { cwd: tree }), jest()];
reportCpp();
process.exitCode = passed.every(Boolean) ? 0 : 1;
