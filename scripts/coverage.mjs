// Measures which lines the tests reach, in C++ and JavaScript: npm run coverage [-- <Jest's arguments>]
// The others are in coverage/cpp.txt and coverage/js/index.html.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build, prebuildOf, root, treeOf } from './build.mjs';
import { countedLines, forgetCounts, VARIANT } from './lib/gcov.mjs';

const REPORT = join(root, 'coverage');

const run = (command, args, options) =>
  spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options }).status === 0;

function jest() {
  const reporters = ['html', 'json-summary'].map((name) => `--coverageReporters=${name}`);
  const args = [
    'node_modules/jest/bin/jest.js',
    ...process.argv.slice(2), // first, because a list argument would take them
    '--coverage',
    '--coverageProvider=v8',
    '--collectCoverageFrom=lib/**/*.js',
    `--coverageDirectory=${join(REPORT, 'js')}`,
    ...reporters,
    '--testTimeout=120000',
    ...['--testPathIgnorePatterns', '/node_modules/', '/test/package/'],
  ];
  return run(process.execPath, args, {
    env: { ...process.env, ROLLGATE_PREBUILD: prebuildOf(VARIANT) },
  });
}

/** [folder, reached lines, all lines] of each folder of src, and the lines that were not reached. */
function cppRows() {
  const rows = new Map();
  const missed = [];
  for (const [file, lines] of [...countedLines()].sort()) {
    const folder = file.split('/').slice(0, 2).join('/');
    const reached = [...lines.values()].filter((count) => count > 0).length;
    const [, before = 0, all = 0] = rows.get(folder) ?? [];
    rows.set(folder, [folder, before + reached, all + lines.size]);
    const unreached = [...lines].filter(([, count]) => count === 0).map(([line]) => line);
    if (unreached.length > 0) missed.push(`${file}: ${unreached.sort((a, b) => a - b).join(' ')}`);
  }
  writeFileSync(join(REPORT, 'cpp.txt'), `${missed.join('\n')}\n`);
  return [...rows.values()];
}

function jsRows() {
  const rows = new Map();
  const summary = JSON.parse(readFileSync(join(REPORT, 'js/coverage-summary.json'), 'utf8'));
  for (const [path, { lines }] of Object.entries(summary)) {
    if (path === 'total') continue;
    const [, folder, rest] = relative(root, path).split('/');
    const name = rest === undefined ? 'lib' : `lib/${folder}`;
    const [, reached = 0, all = 0] = rows.get(name) ?? [];
    rows.set(name, [name, reached + lines.covered, all + lines.total]);
  }
  return [...rows.values()].sort();
}

function print(title, rows) {
  const sum = (i) => rows.reduce((total, row) => total + row[i], 0);
  console.log(`\n${title}`);
  for (const [name, reached, all] of [...rows, ['all', sum(1), sum(2)]]) {
    const share = `${((100 * reached) / all).toFixed(1)} %`;
    console.log(`  ${name.padEnd(16)} ${share.padStart(8)}  ${reached} of ${all} lines`);
  }
}

rmSync(REPORT, { recursive: true, force: true });
mkdirSync(REPORT, { recursive: true });
build(['tests', 'addon'], { variant: VARIANT });
forgetCounts();
const passed = [
  run('ctest', ['--output-on-failure', '--parallel', '2'], { cwd: treeOf(VARIANT) }),
  jest(),
];
print('C++', cppRows());
print('JavaScript', jsRows());
process.exitCode = passed.every(Boolean) ? 0 : 1;
