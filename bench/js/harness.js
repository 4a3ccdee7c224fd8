// Runs the jobs of a benchmark, each in a process of its own and interleaved over rounds, and sums them up.
//
// A benchmark is a module with
//   name, title, question, bias        its words
//   budgetMs                           when to stop starting further rounds
//   jobs({ quick })                    what to run: plain objects { key, rounds, ... }
//   measure(job)                       one run of one job, inside its own process: a flat object of numbers
//   tables(results)                    what to show: [{ title, columns, rows, notes }]
// where results holds under each job's key { job, runs } and { median, min, max } per number, or { job, error }.

const { spawn } = require('node:child_process');

// Code must stay compiled over the collections that precede a reading of memory.
const NODE_FLAGS = [
  '--expose-gc',
  '--max-old-space-size=8192',
  '--no-flush-bytecode',
  '--no-warnings',
];
const JOB_TIMEOUT_MS = 180_000;

/** Runs one job in a fresh process. Resolves to its numbers, rejects with what went wrong. */
function runInChild(file, job) {
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
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, JOB_TIMEOUT_MS);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (timedOut) reject(new Error(`no result within ${JOB_TIMEOUT_MS / 1000} s`));
      else if (code !== 0) reject(new Error(firstErrorLine(err) || `ended with ${signal ?? code}`));
      else resolve(JSON.parse(out.trim().split('\n').pop()));
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
 * starting with another job. A round that the budget leaves no time for is left out, the first never.
 */
async function runBenchmark(file, benchmark, { quick = false, onProgress = () => {} } = {}) {
  const jobs = benchmark.jobs({ quick });
  const runs = new Map(jobs.map((job) => [job.key, []]));
  const failures = new Map();
  const total = jobs.reduce((sum, job) => sum + job.rounds, 0);
  let done = 0;
  const start = performance.now();
  for (let round = 0; round < Math.max(...jobs.map((job) => job.rounds)); round++) {
    for (let i = 0; i < jobs.length; i++) {
      const job = jobs[(i + round) % jobs.length];
      if (round >= job.rounds) continue;
      onProgress(++done, total, job.key);
      const isOverBudget = performance.now() - start > benchmark.budgetMs;
      if (failures.has(job.key) || (isOverBudget && round > 0)) continue;
      try {
        runs.get(job.key).push(await runInChild(file, job));
      } catch (error) {
        failures.set(job.key, error.message);
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
  const summary = {};
  for (const name of Object.keys(runs[0])) summary[name] = spread(runs.map((run) => run[name]));
  return summary;
}

function spread(values) {
  const sorted = [...values].sort(ascending);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, min: sorted[0], max: sorted.at(-1) };
}

const ascending = (a, b) => a - b;

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

module.exports = { main, runBenchmark, spread };
