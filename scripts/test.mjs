// Runs the tests, all suites even if one fails, and prints a summary.
//   npm test [-- FILE...]                         the fast tests, or these test files (.cc or .js)
//   npm run test:all [-- --only=core,jest,...]    everything, or these suites
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { build, prebuildOf, root, treeOf } from './build.mjs';
import { installedClang, wasmIsCurrent } from './build-wasm.mjs';
import { scriptsAreCurrent } from './embed-scripts.mjs';
import { isTest } from './lib/files.mjs';

/** Without optimisation and with assertions; test:all runs Jest on the addon of the package. */
const DEVELOPMENT = 'debug';
/** C++ suites that take more than a few seconds; sanitized builds do not contain the models. */
const SLOW_CTEST = '^shared[.](.*/)?((Held)?Model|SharedRace|SharedSlow)';
/** In all suites, the other C++ tests run with sanitizers alone; these have more cases without. */
const PLAIN_CTEST = '^shared[.]';
/** Run by the suite `races`, on optimised code. */
const RACES = '^shared[.]SharedRace';
const SLOW_JEST = '[.](slow|serial)[.]test[.]js$';
/** These suites must run alone. */
const SERIAL_JEST = '[.]serial[.]test[.]js$';
/** Suites that are not built with the sanitizers, that measure, or whose subject is JavaScript or Lua alone. */
const NOT_SANITIZED = '/test/((package|bench|examples|soak|wasm|middleware|corpus)/|redis/slots-)';
/** Run by the suite `jest-wasm`. */
const WASM_JEST = '/test/wasm/';
/** What runs on the module besides, in all suites and in the fast ones. */
const JEST_ON_WASM = ['lib', 'conformance', 'kv', 'slots'];
const FAST_JEST_ON_WASM = ['conformance/traces'];
/** The factors for bounds in real time: in general, and with a sanitized addon. */
const PATIENCE = Number(process.env.ROLLGATE_PATIENCE || 1);
const SANITIZED_PATIENCE = 3 * PATIENCE;
/** In seconds, for one C++ test. */
const CTEST_TIMEOUT = 300 * PATIENCE;

/** The exit code if tests could not run, for example after a compiler error; 1 if a test failed. */
const CANNOT_RUN = 2;

function run(command, args, options) {
  const { error, status } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options });
  if (error) console.error(`${command}: ${error.message}`); // it did not start, or took too long
  return status === 0;
}

const node = (script, args = [], options = {}) =>
  run(process.execPath, [join(root, script), ...args], options);

function ctest(variant, args = [], { prefix = [], env = {}, target } = {}) {
  build(['tests'], { variant, target });
  const flags = ['--output-on-failure', '--parallel', '2', '--timeout', String(CTEST_TIMEOUT)];
  const [command, ...rest] = [...prefix, 'ctest', ...flags];
  const options = { cwd: treeOf(variant), env: { ...process.env, ...env } };
  return run(command, [...rest, ...args], options);
}

/** The names of the tests that failed, for the end of the output: what is above it is long. */
const failedTests = [];

function jest(variant, args, env = {}) {
  if (!scriptsAreCurrent()) return false;
  build(['addon'], { variant });
  const addon = variant === 'release' ? {} : { ROLLGATE_PREBUILD: prebuildOf(variant) };
  const results = join(root, 'build/jest-results.json');
  rmSync(results, { force: true });
  const passed = node(
    'node_modules/jest/bin/jest.js',
    ['--json', `--outputFile=${results}`, ...args],
    { env: { ...process.env, ...addon, ...env } },
  );
  if (!passed && existsSync(results)) noteFailures(JSON.parse(readFileSync(results, 'utf8')));
  return passed;
}

function noteFailures({ testResults }) {
  for (const { name, status, message, assertionResults } of testResults) {
    if (status !== 'failed') continue;
    const failed = assertionResults.filter((each) => each.status === 'failed');
    const names = failed.map(({ fullName }) => fullName);
    failedTests.push(`${relative(root, name)}: ${names.join('; ') || message.split('\n')[0]}`);
  }
}

const ignoring = (...patterns) => ['--testPathIgnorePatterns', '/node_modules/', ...patterns];

/** With WebAssembly in place of the addon. Where its tools cannot be had, there is nothing to test. */
function jestOnWasm(variant, names, args, env) {
  if (!wasmIsCurrent()) {
    if (installedClang() === undefined) {
      console.log('not tested: the WebAssembly module needs tools that this system lacks');
      return true;
    }
    if (!node('scripts/build-wasm.mjs')) return false;
  }
  const patterns = ['wasm', ...names].map((name) => `/test/${name}[/.]`);
  return jest(variant, [...args, '--testPathPatterns', ...patterns], {
    ROLLGATE_BINDING: 'wasm',
    ...env,
  });
}

function types() {
  const args = ['--typings', 'lib/types/index.d.ts', '--files', 'test/types/*.test-d.ts'];
  return node('node_modules/tsd/dist/cli.js', args);
}

/**
 * Node itself is not sanitized: the runtime is preloaded, and leaks are not reported. Tests wait longer for each other,
 * so four files run at a time.
 */
function jestUnderAsan() {
  const compiler = process.env.CXX ?? 'c++';
  const runtime = spawnSync(compiler, ['-print-file-name=libasan.so'], { encoding: 'utf8' });
  const env = {
    ASAN_OPTIONS: 'detect_leaks=0',
    UBSAN_OPTIONS: 'print_stacktrace=1',
    LD_PRELOAD: runtime.stdout.trim(),
    ROLLGATE_PATIENCE: String(SANITIZED_PATIENCE),
    ROLLGATE_SANITIZED: '1', // tests that start a browser or measure memory skip themselves
    ROLLGATE_TESTS: '',
  };
  return jest('asan', ['--maxWorkers=4', ...ignoring(SLOW_JEST, NOT_SANITIZED)], env);
}

/** An older ThreadSanitizer cannot start with random addresses; a container may forbid setarch. */
function ctestUnderTsan() {
  const canFix = spawnSync('setarch', ['-R', 'true']).status === 0;
  return ctest('tsan', [], { prefix: canFix ? ['setarch', '-R'] : [] });
}

const ALL = { ROLLGATE_TESTS: 'all' };

const fastSuites = {
  core: () => ctest(DEVELOPMENT, ['--exclude-regex', SLOW_CTEST]),
  jest: () => jest(DEVELOPMENT, ignoring(SLOW_JEST, WASM_JEST)),
  'jest-wasm': () => jestOnWasm(DEVELOPMENT, FAST_JEST_ON_WASM, ignoring(SLOW_JEST)),
};

const allSuites = {
  core: () =>
    ctest(DEVELOPMENT, ['--tests-regex', PLAIN_CTEST, '--exclude-regex', RACES], {
      env: ALL,
      target: 'shared_test',
    }),
  races,
  jest: () => jest('release', ignoring(SERIAL_JEST, WASM_JEST), ALL),
  'jest-wasm': () => jestOnWasm('release', JEST_ON_WASM, ignoring(SERIAL_JEST), ALL),
  serial: () => jest('release', ['-i', '--testPathPatterns', SERIAL_JEST], ALL),
  types,
  asan: () => ctest('asan', ['--exclude-regex', SLOW_CTEST]),
  'jest-asan': jestUnderAsan,
  fuzz: () => node('scripts/fuzz.mjs', ['--seconds=10']),
  models: () => node('scripts/models.mjs', ['--small']),
  runtimes: () =>
    ['runtimes', 'hosts'].map((kind) => node('scripts/places.mjs', [kind])).every(Boolean),
  bundlers: () => node('scripts/places.mjs', ['bundlers']),
};

/** Not part of test:all, because not every machine can run it. */
const onRequest = { tsan: ctestUnderTsan };

/** Processes that race in shared memory, with the optimisations that users get. */
function races() {
  if (process.platform !== 'linux') return true; // where there is no store in shared memory
  build(['tests'], { variant: 'release', target: 'race_test' });
  return run(join(treeOf('release'), 'race_test'), [], { timeout: CTEST_TIMEOUT * 1000 });
}

/** Runs the GoogleTest suites of one source file. */
function cppFile(file) {
  const layer = basename(dirname(file));
  build(['tests'], { variant: DEVELOPMENT, target: `${layer}_test` });
  const source = readFileSync(file, 'utf8');
  const suites = [...source.matchAll(/^(?:TYPED_)?TEST(?:_[FP])?\((\w+),/gm)].map(
    ([, name]) => name,
  );
  if (suites.length === 0) throw new Error(`${file} has no tests`);
  const filter = [...new Set(suites)].flatMap((name) => [
    `${name}.*`,
    `${name}/*`,
    `*/${name}.*`,
    `*/${name}/*`,
  ]);
  return run(join(treeOf(DEVELOPMENT), `${layer}_test`), [`--gtest_filter=${filter.join(':')}`]);
}

function suitesOf(files) {
  const missing = files.find((file) => !existsSync(file));
  if (missing) throw new Error(`there is no file ${missing}`);
  const other = files.find((file) => !isTest(file));
  if (other) throw new Error(`${other} is no test: its name would end in .test.js or _test.cc`);
  const sources = files.filter((file) => file.endsWith('.cc'));
  const scripts = files.filter((file) => !file.endsWith('.cc'));
  const suites = Object.fromEntries(sources.map((file) => [file, () => cppFile(file)]));
  return scripts.length > 0
    ? { ...suites, jest: () => jest(DEVELOPMENT, ['--runTestsByPath', ...scripts], ALL) }
    : suites;
}

function chosenSuites({ all, only, files }) {
  if (files.length > 0) return suitesOf(files);
  const suites = all ? { ...allSuites, ...onRequest } : fastSuites;
  const names = only?.split(',') ?? Object.keys(all ? allSuites : fastSuites);
  const wrong = names.find((name) => !Object.hasOwn(suites, name));
  if (wrong !== undefined)
    throw new Error(`--only takes ${Object.keys(suites).join(', ')}, not ${wrong}`);
  return Object.fromEntries(names.map((name) => [name, suites[name]]));
}

/** Installs what is missing; builds it unless these are single files, which need only a part. */
function setUp({ all, files }) {
  const purpose = files.length > 0 ? 'files' : all ? 'all' : 'test';
  return node('scripts/setup.mjs', [`--for=${purpose}`]);
}

function main() {
  const { values, positionals: files } = parseArgs({
    allowPositionals: true,
    options: { all: { type: 'boolean' }, only: { type: 'string' }, setup: { type: 'boolean' } },
  });
  const suites = chosenSuites({ ...values, files });
  if (values.setup && !setUp({ ...values, files })) throw new Error('nothing was tested');
  const lines = [];
  let failed = 0;
  let errors = 0;
  for (const [name, suite] of Object.entries(suites)) {
    console.log(`\n== ${name}`);
    const started = Date.now();
    let passed = false;
    try {
      passed = suite();
    } catch (error) {
      console.error(`${name}: ${error.message}`);
      errors += 1;
    }
    if (!passed) failed += 1;
    const seconds = ((Date.now() - started) / 1000).toFixed(1);
    lines.push(`${passed ? 'passed' : 'FAILED'}  ${name.padEnd(9)} ${seconds} s`);
  }
  if (failedTests.length > 0) console.log(`\nfailed:\n${failedTests.join('\n')}`);
  console.log(`\n${lines.join('\n')}`);
  console.log(`Suites: ${lines.length - failed} passed, ${failed} failed`);
  process.exitCode = errors ? CANNOT_RUN : failed ? 1 : 0;
}

try {
  main();
} catch (error) {
  console.error(`test: ${error.message}`);
  process.exitCode = CANNOT_RUN;
}
