// Runs the jobs of a benchmark, each in a process of its own and interleaved over rounds, and sums them up.
//
// A benchmark is a module with
//   name, title, question, bias        its words
//   budgetMs                           how long all of its runs may take together
//   jobs({ quick })                    what to run: plain objects { key, rounds, ... }
//   measure(job)                       one run of one job, inside its own process: a flat object of numbers
//   tables(results)                    what to show: [{ title, columns, rows, notes }]
//   comparisons(results)               what rollgate is held against, if anything: see comparisons.js
//   plots(results)                     the pictures, if any: [{ name, alt, svg }]
// where results holds under each job's key { job, runs } and { figure, min, max } per number, or { job, error }.

const { spawn } = require('node:child_process');
const { statOf } = require('./figures');

// Code must stay compiled over the collections that precede a reading of memory.
const NODE_FLAGS = [
  '--expose-gc',
  '--max-old-space-size=8192',
  '--no-flush-bytecode',
  '--no-warnings',
];
const JOB_TIMEOUT_MS = 180_000;

class TimeIsUp extends Error {}

/** Runs one job in a fresh process. Resolves to its numbers, rejects with what went wrong. */
function runInChild(file, job, timeoutMs) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...NODE_FLAGS, file, '--job', JSON.stringify(job)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      // Processes of its own may hold the pipes for a moment longer; nobody waits for them.
      child.stdout.destroy();
      child.stderr.destroy();
      reject(new TimeIsUp(`no result within ${Math.ceil(timeoutMs / 1000)} s`));
    }, timeoutMs);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (code !== 0) {
        reject(new Error(firstErrorLine(err) || `ended with ${signal ?? code}`));
        return;
      }
      try {
        resolve(JSON.parse(out.trim().split('\n').pop()));
      } catch (error) {
        reject(error);
      }
    });
  });
}

function firstErrorLine(stderr) {
  return (
    stderr.split('\n').find((line) => /^\w*Error\b/.test(line)) ?? stderr.trim().split('\n')[0]
  );
}

/** The child's side: measures the job named on the command line and prints one line of JSON. */
async function answerParent(benchmark, job) {
  const numbers = await benchmark.measure(job);
  process.stdout.write(`${JSON.stringify(numbers)}\n`, () => process.exit(0)); // the peers' timers would keep it
}

/**
 * Runs every job of a benchmark as many times as it has rounds, one of each per round, every round
 * starting with another job. Nothing runs past the budget: a round that would not fit into what is
 * left of it is left out, but for the first, and what runs at its end is ended. `onProgress` gets
 * { done, total, key, expectedMs }, the last being what the runs to come will take.
 */
async function runBenchmark(
  file,
  benchmark,
  {
    quick = false,
    budgetMs = benchmark.budgetMs,
    onProgress = () => {},
    run = runInChild,
    now = () => performance.now(),
  } = {},
) {
  const jobs = benchmark.jobs({ quick });
  const runs = new Map(jobs.map((job) => [job.key, []]));
  const took = new Map();
  const failures = new Map();
  const deadline = now() + budgetMs;
  const leftMs = () => deadline - now();
  const rounds = Math.max(...jobs.map((job) => job.rounds));
  const ofRound = (round) => {
    const due = jobs.filter((job) => round < job.rounds && !failures.has(job.key));
    return due.map((_, i) => due[(i + round) % due.length]);
  };
  let total = jobs.reduce((sum, job) => sum + job.rounds, 0);
  let done = 0;

  /** As long as each job took the last time, and those that never ran as long as the others. */
  const expectedMs = (due) => {
    const known = [...took.values()];
    const usual = known.reduce((sum, ms) => sum + ms, 0) / Math.max(known.length, 1);
    return due.reduce((sum, job) => sum + (took.get(job.key) ?? usual), 0);
  };
  const toCome = (due, round) => {
    const later = Array.from({ length: rounds - round - 1 }, (_, i) => ofRound(round + 1 + i));
    return Math.min(expectedMs([...due, ...later.flat()]), leftMs());
  };

  for (let round = 0; round < rounds; round++) {
    const due = ofRound(round);
    if (round > 0 && expectedMs(due) > leftMs()) {
      total -= due.length;
      continue; // a later round may have fewer jobs
    }
    for (const [i, job] of due.entries()) {
      const start = now();
      const key = job.key;
      onProgress({ done: ++done, total, key, expectedMs: toCome(due.slice(i), round) });
      const timeoutMs = Math.min(JOB_TIMEOUT_MS, deadline - start);
      try {
        if (timeoutMs <= 0) throw new TimeIsUp('no time was left for it');
        runs.get(key).push(await run(file, job, timeoutMs));
        took.set(key, now() - start);
      } catch (error) {
        // Not seen from the time that is left: a timer may be a moment early.
        const isCut = error instanceof TimeIsUp && timeoutMs < JOB_TIMEOUT_MS;
        if (!isCut || runs.get(key).length === 0) failures.set(key, error.message);
      }
    }
  }
  const results = {};
  for (const job of jobs) {
    const error = failures.get(job.key);
    const ran = runs.get(job.key);
    results[job.key] = error ? { job, error } : { job, runs: ran.length, ...summarise(ran) };
  }
  return results;
}

function summarise(runs) {
  const names = Object.keys(runs[0]);
  return Object.fromEntries(
    names.map((name) => [
      name,
      statOf(
        name,
        runs.map((run) => run[name]),
      ),
    ]),
  );
}

/** Makes a benchmark file runnable by itself: as the child of a run, or alone with its tables printed. */
async function main(file, benchmark) {
  const [flag, job] = process.argv.slice(2);
  if (flag === '--job') return answerParent(benchmark, JSON.parse(job));
  const { progressLine, tableText } = require('./report');
  const results = await runBenchmark(file, benchmark, {
    quick: flag === '--quick',
    onProgress: progressLine(benchmark.name),
  });
  for (const table of benchmark.tables(results)) console.log(tableText(table));
}

module.exports = { TimeIsUp, main, runBenchmark };
