// Explores the Spin models of test/models: npm run models [-- --small] [--only=leases-broken,slots-one]
// --small leaves out what takes gigabytes. build/models/<run>/steps.txt has the steps of a violation.
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { RUNS } from '../test/models/runs.mjs';
import { root } from './build.mjs';
import { endOf, forEach, main } from './lib/commands.mjs';

/** The factor for bounds in real time. */
const PATIENCE = Number(process.env.ROLLGATE_PATIENCE || 1);
/** How runs are made, and what each may take. Large runs bring their own bound on memory. */
const SMALL = { atOnce: 2, optimisation: '-O1', megabytes: 900, seconds: 120 * PATIENCE };
const LARGE = { atOnce: 1, optimisation: '-O2', seconds: 3600 * PATIENCE };
/** In steps. A search by depth reserves a stack for them. */
const LONGEST_PATH = 2_000_000;
/** The first size of the table of states, as a binary logarithm. It grows. */
const TABLE = 20;
const OPTIONS = [
  '-w',
  '-DSAFETY', // assertions, and states that have no next step
  '-DNOFAIR',
  '-DNOREDUCE', // a model is one process, so no order of steps can be left out
  '-DVECTORSZ=2048',
];

/** Runs a program in a folder with its output in a file; gives its exit code, or the signal that ended it. */
async function run(command, args, { cwd, file, seconds = 60 * PATIENCE }) {
  const output = openSync(join(cwd, file), 'w');
  const stdio = ['ignore', output, output];
  const bound = { timeout: seconds * 1000, killSignal: 'SIGKILL' };
  return endOf(command, args, { cwd, stdio, ...bound }).finally(() => closeSync(output));
}

async function mustRun(command, args, { cwd, file }) {
  const end = await run(command, args, { cwd, file });
  if (end !== 0) throw new Error(`${command} ended with ${end}: see ${join(cwd, file)}`);
}

/** What the program that Spin makes of a model prints at its end. */
function figuresOf(output) {
  const find = (pattern) => pattern.exec(output)?.[1];
  return {
    errors: find(/errors: (\d+)/),
    states: find(/^ *([\d.e+]+) states, stored/m),
    depth: find(/depth reached (\d+)/),
    seconds: find(/elapsed time ([\d.e+]+) seconds/),
    megabytes: find(/([\d.]+)\s+total actual memory usage/),
    isViolated: /assertion violated/.test(output),
    isComplete: !/not completed|depth too small|MEMLIM|out of memory/.test(output),
  };
}

function judge({ errors, isViolated, isComplete }, isBroken) {
  if (errors === undefined) return 'FAILED: no result';
  if (isViolated) return isBroken ? 'found' : 'FAILED: violated';
  if (errors !== '0') return 'FAILED: a fault in the model';
  if (!isComplete) return 'FAILED: incomplete';
  return isBroken ? 'FAILED: not found' : 'holds';
}

/** Broken variants are searched by breadth, which finds the shortest way to a violation. */
async function explore([name, { model, settings, isBroken, megabytes }], most) {
  const cwd = join(root, 'build/models', name);
  rmSync(cwd, { recursive: true, force: true });
  mkdirSync(cwd, { recursive: true });
  const source = join(root, 'test/models', `${model}.pml`);
  const definitions = Object.entries(settings).map(([key, value]) => `-D${key}=${value}`);
  await mustRun('spin', ['-a', ...definitions, source], { cwd, file: 'spin.txt' });
  const options = [most.optimisation, ...OPTIONS, `-DMEMLIM=${megabytes ?? most.megabytes}`];
  if (isBroken) options.push('-DBFS');
  await mustRun('gcc', [...options, '-o', 'explore', 'pan.c'], { cwd, file: 'gcc.txt' });

  const limits = [`-m${LONGEST_PATH}`, `-w${TABLE}`];
  await run('./explore', limits, { cwd, file: 'result.txt', seconds: most.seconds });
  const figures = figuresOf(readFileSync(join(cwd, 'result.txt'), 'utf8'));
  if (figures.errors > 0) {
    const replay = ['-k', `${model}.pml.trail`, '-t', '-p', '-g', ...definitions, source];
    await run('spin', replay, { cwd, file: 'steps.txt' });
  }
  return { name, verdict: judge(figures, isBroken), ...figures };
}

const HEADINGS = {
  name: 'run',
  verdict: 'result',
  errors: 'errors',
  states: 'states',
  depth: 'depth',
  seconds: 's',
  megabytes: 'MB',
};

function lineOf({ name, verdict, ...figures }) {
  const columns = ['errors', 'states', 'depth', 'seconds', 'megabytes'];
  const numbers = columns.map((column) => (figures[column] ?? '-').padStart(9)).join('');
  return `${name.padEnd(28)}${numbers}  ${verdict}`;
}

const isSmall = ([, { megabytes }]) => megabytes === undefined;

await main('models', async () => {
  const options = { small: { type: 'boolean' }, only: { type: 'string', default: '' } };
  const { small, only } = parseArgs({ options }).values;
  const wanted = only.split(',');
  const all = small ? RUNS.filter(isSmall) : RUNS;
  const runs = all.filter(([name]) => wanted.some((text) => name.startsWith(text)));
  if (!wanted.every((text) => runs.some(([name]) => name.startsWith(text)))) {
    throw new Error(`--only takes the beginnings of ${all.map(([name]) => name).join(', ')}`);
  }
  console.log(lineOf(HEADINGS));
  const exploreAll = (some, how) =>
    forEach(some, how.atOnce, async (one) => {
      const result = await explore(one, how);
      console.log(lineOf(result));
      if (result.verdict.startsWith('FAILED')) process.exitCode = 1;
    });
  await exploreAll(runs.filter(isSmall), SMALL);
  await exploreAll(
    runs.filter((one) => !isSmall(one)),
    LARGE,
  );
});
