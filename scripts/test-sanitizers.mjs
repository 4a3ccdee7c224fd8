// Runs the C++ tests and Jest under ASan and UBSan: npm run test:sanitizers [-- --tsan]
// --tsan runs the C++ tests under ThreadSanitizer as well.
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { build, prebuildOf, root, treeOf } from './build.mjs';

if (process.platform !== 'linux') {
  console.log('The sanitized tests run on Linux only.');
  process.exit(0);
}

const compiler = process.env.CXX ?? 'c++';
const run = (command, args, options) =>
  spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options }).status === 0;
// With random addresses an older ThreadSanitizer cannot start on a newer kernel;
// a container may forbid setarch.
const fixedAddresses = () =>
  spawnSync('setarch', ['-R', 'true']).status === 0 ? ['setarch', '-R'] : [];
function ctest(variant, prefix = []) {
  const [command, ...args] = [...prefix, 'ctest', '--output-on-failure', '--parallel', '2'];
  return run(command, args, { cwd: treeOf(variant) });
}

function jest() {
  // Node itself is not sanitized, so the runtime must be loaded before it, and its own leaks are not ours.
  const runtime = spawnSync(compiler, ['-print-file-name=libasan.so'], {
    encoding: 'utf8',
  }).stdout.trim();
  const env = {
    ...process.env,
    ASAN_OPTIONS: 'detect_leaks=0',
    UBSAN_OPTIONS: 'print_stacktrace=1',
    LD_PRELOAD: runtime,
    ROLLGATE_PREBUILD: prebuildOf('asan'),
    ROLLGATE_SANITIZED: '1', // tests that start a browser or weigh memory skip themselves
  };
  // What is packed is not sanitized.
  const skipped = [
    '--testPathIgnorePatterns',
    ...['/node_modules/', '/test/examples/', '/test/package/'],
  ];
  return run(
    process.execPath,
    ['node_modules/jest/bin/jest.js', '-i', '--testTimeout=120000', ...skipped],
    { env },
  );
}

const { values } = parseArgs({ options: { tsan: { type: 'boolean' } } });
const failed = [];
const suite = (title, variant, parts, test) => {
  console.log(`\n== ${title}`);
  try {
    build(parts, { variant });
    if (!test()) failed.push(title);
  } catch (error) {
    console.error(error.message);
    failed.push(title);
  }
};
suite('C++ under ASan and UBSan', 'asan', ['tests'], () => ctest('asan'));
suite('Jest under ASan and UBSan', 'asan', ['addon'], jest);
if (values.tsan) suite('C++ under TSan', 'tsan', ['tests'], () => ctest('tsan', fixedAddresses()));
console.log(failed.length ? `\nFAILED: ${failed.join('; ')}` : '\nNo sanitizer found anything.');
process.exitCode = failed.length ? 1 : 0;
