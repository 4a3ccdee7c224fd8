// Runs every suite, even if one fails, and sums up: npm test [-- --only=core|jest|types] [-- --fast]
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { build, root, treeOf } from './build.mjs';
import { scriptsAreCurrent } from './embed-scripts.mjs';

const node = (...args) =>
  spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' }).status === 0;

/** What --fast runs in place of everything: a minute that meets each store. */
const FAST_CTEST = ['--exclude-regex', '^shared[.](BrokenModel|Model|SharedRace|SharedThreads)'];
const FAST_JEST = [
  'test/lib/(algorithms|attempt|callable|ids|methods|refund|wait|worker-threads)[.]',
  'test/middleware/(rate-limit|headers|rules)[.]',
  'test/redis/(behaviour|native-tls|native-lifetime|on-error)[.]',
  'test/shared/(regions|together)[.]',
];

const suites = {
  core: () => {
    build(['tests']);
    const chosen = values.fast ? FAST_CTEST : [];
    const { status } = spawnSync('ctest', ['--output-on-failure', '--parallel', '2', ...chosen], {
      cwd: treeOf('release'),
      stdio: 'inherit',
    });
    return status === 0;
  },
  jest: () => {
    if (!scriptsAreCurrent()) return false;
    build(['addon']);
    return node('node_modules/jest/bin/jest.js', ...(values.fast ? FAST_JEST : []));
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

const { values } = parseArgs({
  options: { only: { type: 'string' }, fast: { type: 'boolean', default: false } },
});
const all = values.fast ? ['core', 'jest'] : Object.keys(suites);
const chosen = values.only ? [values.only] : all;
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
