// Applies each mutation of the lists in test/mutants to a copy of the project, runs the tests that should fail until one
// does, and prints the mutations that survive:
//   npm run mutants [-- --jobs=2] [--only=gcra] [--from=stores:20]
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './build.mjs';
import { forEach, main, must } from './lib/commands.mjs';
import { isTest } from './lib/files.mjs';
import { runGroup } from './lib/process-group.mjs';
import { linkPackages } from './lib/revision.mjs';

const LISTS = join(root, 'test/mutants');
const COPIED = ['src', 'lib', 'test', 'cmake', 'scripts', 'examples', 'bench', 'docs'];
const COPIED_FILES = ['package.json', 'CMakeLists.txt', 'jest.config.js', 'README.md'];
/** For one command. A mutation that makes tests wait for ever is found. */
const TIMEOUT_MS = 600_000;
/** For one test, which takes less without a mutation; times ROLLGATE_PATIENCE. */
const TEST_TIMEOUT_MS = 60_000;
/** An assertion or a fault in C++ ends Jest by one of these. */
const CRASHES = ['SIGABRT', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE'];

/** A line is: file ## old code ==> new code ## test files that fail then. */
function parse(line, place) {
  const [file, change, tests] = line.split(' ## ');
  const [before, after] = change?.split(' ==> ') ?? [];
  const isComplete = after !== undefined && tests?.split(' ').every(isTest);
  if (!isComplete)
    throw new Error(`${place} lacks a part, or names a file that is no test: ${line}`);
  return { place, line, file, before, after, tests: tests.split(' ') };
}

/** All mutations; the place of one is its list and its line there. */
function readMutations() {
  const lines = readdirSync(LISTS).flatMap((file) => {
    const text = readFileSync(join(LISTS, file), 'utf8');
    return text.split('\n').map((line, i) => [line, `${basename(file, '.txt')}:${i + 1}`]);
  });
  return lines.filter(([line]) => line && !line.startsWith('#')).map((one) => parse(...one));
}

function chooseMutations({ only, from }) {
  const all = readMutations();
  const first = from === undefined ? 0 : all.findIndex(({ place }) => place === from);
  if (first < 0) throw new Error(`--from takes the place of a mutation, such as ${all[0].place}`);
  const wanted = all.slice(first).filter(({ line }) => line.includes(only));
  if (wanted.length === 0) throw new Error('no mutation is chosen');
  return wanted;
}

/** The copy of a job. It is kept between runs, so that only what a mutation changes is compiled. */
function makeCopy(job) {
  const copy = join(root, 'build', job === 0 ? 'mutants' : `mutants-${job + 1}`);
  mkdirSync(copy, { recursive: true });
  // A file that an earlier run has restored is newer than what was built of its mutation.
  const filter = (from, to) =>
    statSync(from).isDirectory() || !existsSync(to) || !readFileSync(from).equals(readFileSync(to));
  for (const name of [...COPIED, ...COPIED_FILES]) {
    cpSync(join(root, name), join(copy, name), { recursive: true, filter });
  }
  linkPackages(copy);
  return copy;
}

const BUILD = ['scripts/build.mjs', '--debug'];

const JEST_FLAGS = [
  '--bail',
  '--forceExit', // a failed test may leave a server
  '--testEnvironment=./test/support/first-failure.js',
];

/** The commands that test these files in this order. */
function commandsFor(files, patience) {
  const ofJest = files.filter((file) => !file.endsWith('.cc'));
  const flags = [...JEST_FLAGS, `--testTimeout=${TEST_TIMEOUT_MS * patience}`];
  const jest = ['node_modules/jest/bin/jest.js', ...flags, '--runTestsByPath', ...ofJest];
  return [
    ...files.filter((file) => file.endsWith('.cc')).map((file) => ['scripts/test.mjs', file]),
    ...(ofJest.length > 0 ? [BUILD, jest] : []),
  ];
}

/** Runs the tests in a copy until one fails. */
async function outcomeOf(files, { cwd, env, timeoutMs = TIMEOUT_MS }) {
  const ofJest = { ROLLGATE_PREBUILD: join(cwd, 'build/debug'), ROLLGATE_TESTS: 'all' };
  for (const command of commandsFor(files, Number(env.ROLLGATE_PATIENCE))) {
    const options = { cwd, env: command.includes('--bail') ? { ...env, ...ofJest } : env };
    const run = [process.execPath, ...command];
    const { code, signal, isLate, text } = await runGroup(run, { ...options, timeoutMs });
    if (code === 0) continue;
    const isFound = isLate || CRASHES.includes(signal) || code === 1;
    if (command !== BUILD && isFound) return 'killed';
    return `NOT RUN: ${command.join(' ')} ended with ${code ?? signal}\n${text.slice(-2000)}`;
  }
  return 'SURVIVED';
}

const isJavaScript = (path) => /\.m?js$/.test(path);

/** The outcome of the tests with this mutation. Jest would fail, too, without a file or with one that is no program. */
async function tryMutation({ file, before, after, tests }, { cwd, env }) {
  const missing = [file, ...tests].find((name) => !existsSync(join(cwd, name)));
  if (missing) return `NOT RUN: there is no file ${missing}`;
  const path = join(cwd, file);
  const source = readFileSync(path, 'utf8');
  const parts = source.split(before);
  if (parts.length !== 2) return `NOT RUN: "${before}" occurs ${parts.length - 1} times in ${file}`;
  const write = (text) => {
    writeFileSync(path, text);
    if (file.endsWith('.lua')) must(process.execPath, ['scripts/embed-scripts.mjs'], { cwd });
  };
  try {
    write(parts.join(after));
    if (isJavaScript(path)) must(process.execPath, ['--check', path]);
    return await outcomeOf(tests, { cwd, env });
  } catch ({ message }) {
    return `NOT RUN: ${message}`;
  } finally {
    write(source);
  }
}

await main('mutants', async () => {
  const { values } = parseArgs({
    options: {
      jobs: { type: 'string', default: '1' },
      only: { type: 'string', default: '' },
      from: { type: 'string' },
    },
  });
  const jobs = Number(values.jobs);
  if (!(jobs >= 1)) throw new Error('--jobs takes a number from 1 on');
  const wanted = chooseMutations(values);
  const { ROLLGATE_PATIENCE = values.jobs } = process.env; // the machine is busy
  // Some faults are rare under random schedules.
  const env = { ROLLGATE_SCHEDULES: '192', ...process.env, ROLLGATE_PATIENCE };
  const copies = Array.from({ length: jobs }, (_, job) => makeCopy(job));
  const tests = [...new Set(wanted.flatMap((mutation) => mutation.tests))].filter(existsSync);
  const all = { cwd: copies[0], env, timeoutMs: TIMEOUT_MS * Math.ceil(tests.length / 20) };
  const unchanged = await outcomeOf(tests, all);
  if (unchanged === 'killed')
    throw new Error('the tests fail without a mutation, too: no mutation was tried');
  if (unchanged !== 'SURVIVED') throw new Error(unchanged);
  const survivors = [];
  await forEach(wanted, jobs, async (mutation, job) => {
    const outcome = await tryMutation(mutation, { cwd: copies[job], env });
    console.log(`${mutation.place} ${outcome}  ${mutation.line}`);
    if (outcome !== 'killed') survivors.push(mutation);
  });
  console.log(`\nMutations: ${wanted.length - survivors.length} killed, ${survivors.length} not`);
  for (const { place, line } of survivors) console.log(`${place} ${line}`);
  if (survivors.length > 0) process.exitCode = 1;
});
