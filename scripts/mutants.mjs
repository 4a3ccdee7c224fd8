// Applies each mutation of test/mutants.txt to a copy of the project, runs the tests that should fail,
// and prints the mutations that survive:
//   npm run mutants [-- --only=gcra] [--from=20]
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './build.mjs';

/** Kept between runs, so that only what a mutation changes is compiled. */
const copy = join(root, 'build/mutants');
const COPIED = ['src', 'lib', 'test', 'cmake', 'scripts', 'examples', 'bench', 'docs'];
const COPIED_FILES = ['package.json', 'CMakeLists.txt', 'jest.config.js', 'README.md'];
/** For compiling and testing. */
const TIMEOUT_MS = 600_000;
const CODES = { 0: 'SURVIVED', 1: 'killed' };

/** A line is: file ## old code ==> new code ## test files that fail then. */
function parse(line, index) {
  const [file, change, tests] = line.split(' ## ');
  const [before, after] = change?.split(' ==> ') ?? [];
  if (after === undefined || !tests)
    throw new Error(`mutation ${index + 1} is not complete: ${line}`);
  return { number: index + 1, line, file, before, after, tests: tests.split(' ') };
}

function readMutations() {
  const text = readFileSync(join(root, 'test/mutants.txt'), 'utf8');
  const lines = text.split('\n').filter((line) => line && !line.startsWith('#'));
  return lines.map(parse);
}

function makeCopy() {
  mkdirSync(copy, { recursive: true });
  // A file that an earlier run has restored is newer than what was built of its mutation.
  const filter = (from, to) =>
    statSync(from).isDirectory() || !existsSync(to) || !readFileSync(from).equals(readFileSync(to));
  for (const name of [...COPIED, ...COPIED_FILES]) {
    cpSync(join(root, name), join(copy, name), { recursive: true, filter });
  }
  const modules = join(copy, 'node_modules');
  if (!existsSync(modules)) symlinkSync(join(root, 'node_modules'), modules);
}

/** The exit code of the tests; a timeout counts as a failure, so the mutation is found. */
function runTests(files) {
  const { pid, status, signal } = spawnSync(process.execPath, ['scripts/test.mjs', ...files], {
    cwd: copy,
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true, // with all that it starts
    timeout: TIMEOUT_MS,
  });
  if (signal) process.kill(-pid, 'SIGKILL');
  return signal ? 1 : status;
}

/** The exit code of the tests with this mutation. */
function tryMutation({ file, before, after, tests }) {
  const path = join(copy, file);
  const source = readFileSync(path, 'utf8');
  const parts = source.split(before);
  if (parts.length !== 2)
    throw new Error(`"${before}" occurs ${parts.length - 1} times in ${file}`);
  writeFileSync(path, parts.join(after));
  try {
    if (file.endsWith('.lua'))
      spawnSync(process.execPath, ['scripts/embed-scripts.mjs'], { cwd: copy });
    return runTests(tests);
  } finally {
    writeFileSync(path, source);
    if (file.endsWith('.lua'))
      spawnSync(process.execPath, ['scripts/embed-scripts.mjs'], { cwd: copy });
  }
}

const { values } = parseArgs({
  options: { only: { type: 'string' }, from: { type: 'string', default: '1' } },
});
const wanted = readMutations().filter(
  ({ line, number }) => number >= Number(values.from) && line.includes(values.only ?? ''),
);
if (wanted.length === 0) throw new Error('no mutation is chosen');
makeCopy();
const survivors = [];
for (const mutation of wanted) {
  let outcome;
  try {
    outcome = CODES[tryMutation(mutation)] ?? 'NOT RUN';
  } catch (error) {
    outcome = `NOT RUN: ${error.message}`;
  }
  console.log(`${mutation.number} ${outcome}  ${mutation.line}`);
  if (outcome !== 'killed') survivors.push(mutation);
}
console.log(`Mutations: ${wanted.length - survivors.length} killed, ${survivors.length} not`);
process.exitCode = survivors.length > 0 ? 1 : 0;
