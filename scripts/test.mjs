// Runs every suite, even if one fails, and sums up: npm test [-- --only=core|jest|types]
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { build, root, treeOf } from './build.mjs';
import { scriptsAreCurrent } from './embed-scripts.mjs';

const node = (...args) =>
  spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status === 0;

const suites = {
  core: () => {
    build(['tests']);
    const { status } = spawnSync('ctest', ['--output-on-failure', '--parallel', '2'], {
      cwd: treeOf('release'),
      stdio: 'inherit',
    });
    return status === 0;
  },
  jest: () => {
    if (!scriptsAreCurrent()) return false;
    build(['addon']);
    return node('node_modules/jest/bin/jest.js');
  },
  types: () =>
    node(
      'node_modules/tsd/dist/cli.js',
      '--typings',
      'lib/index.d.ts',
      '--files',
      'test/types/*.test-d.ts',
    ),
};

const { values } = parseArgs({ options: { only: { type: 'string' } } });
const chosen = values.only ? [values.only] : Object.keys(suites);
if (!chosen.every((name) => name in suites)) {
  console.error(`test: --only takes ${Object.keys(suites).join(', ')}, not ${values.only}`);
  process.exit(2);
}

const lines = [];
let failed = 0;
for (const name of chosen) {
  console.log(`\n== ${name}`);
  const started = Date.now();
  let passed = false;
  try {
    passed = suites[name]();
  } catch (error) {
    console.error(`${name}: ${error.message}`);
  }
  if (!passed) failed += 1;
  lines.push(
    `${passed ? 'passed' : 'FAILED'}  ${name.padEnd(6)} ${((Date.now() - started) / 1000).toFixed(1)} s`,
  );
}
console.log(`\n${lines.join('\n')}\nSuites: ${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
