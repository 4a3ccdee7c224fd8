// Runs the benchmarks, all or those named, prints their tables, and writes build/bench/results.json, docs/benchmarks.md and its plots.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './build.mjs';
import { compareWith } from './lib/against.mjs';
import { main } from './lib/commands.mjs';

const require = createRequire(import.meta.url);
const { CELLS } = require('../bench/against/cells');
const { DEFAULT_LIMIT } = require('../bench/against/options');
const { runBenchmark } = require('../bench/js/harness');
const { page } = require('../bench/js/page');
const { clockText, progressLine, tableText } = require('../bench/js/report');
const { checkAll } = require('../bench/js/plain-js-check');

const NAMES = [
  'throughput',
  'memory',
  'stall',
  'attack',
  'floods',
  'redis',
  'redis-algorithms',
  'redis-connections',
  'costs',
  'slots',
  'quotas',
  'leases',
  'shared',
  'middleware',
  'load',
  'core',
];
const PEERS = [
  'express-rate-limit',
  'rate-limiter-flexible',
  'rolling-rate-limiter-0.1',
  'rolling-rate-limiter',
];
const MINUTE = 60_000;

const moduleOf = (name) => require(`../bench/js/${name}.js`);
const budgetOf = (names) => names.reduce((sum, name) => sum + moduleOf(name).budgetMs, 0);
const LIMIT_MINUTES = Math.ceil(budgetOf(NAMES) / MINUTE);

const HELP = `npm run bench -- [options] [benchmark ...]
npm run bench -- --against=REVISION [--limit=RATIO] [cell ...]

Runs all benchmarks, or those named, and writes docs/benchmarks.md and its plots in docs/images.
All of them take ${LIMIT_MINUTES} minutes at most; what is not built yet is built before that.

  --time-budget=MINUTES  how long the runs may take together, in place of what each benchmark is given
  --quick                shows that everything works; its figures go to build/bench/quick.md
  --draw                 writes page and plots from build/bench/results.json, without measuring
  --against=REVISION     compares this tree with another revision, in four minutes; fails if a cell became slower
  --limit=RATIO          how many times as long as before a cell may take, in place of ${DEFAULT_LIMIT}
  --help                 this text

${NAMES.map((name) => `  ${name.padEnd(18)} ${clockText(moduleOf(name).budgetMs).padStart(5)} min  ${moduleOf(name).title}`).join('\n')}

Cells of --against, those named ('one' names both that begin with 'one-') or all without a star:
${CELLS.map(({ name, title, isByNameOnly }) => `${isByNameOnly ? '*' : ' '} ${name.padEnd(18)} ${title}`).join('\n')}`;

const ARGUMENTS = {
  options: {
    quick: { type: 'boolean', default: false },
    draw: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
    against: { type: 'string' },
    limit: { type: 'string' },
    'time-budget': { type: 'string' },
  },
  allowPositionals: true,
};

/** Why these arguments are wrong; undefined if they are not. */
function refusalOf({ against, limit, 'time-budget': minutes, ...flags }, names) {
  const needless = ['quick', 'draw'].find((name) => flags[name]) ?? (minutes && 'time-budget');
  if (against !== undefined) return needless && `--${needless} has no effect with --against.`;
  if (limit !== undefined) return '--limit belongs to --against=REVISION.';
  const unknown = names.find((name) => !NAMES.includes(name));
  if (unknown) return `There is no benchmark '${unknown}'. There are: ${NAMES.join(', ')}.`;
  if (minutes !== undefined && !(Number(minutes) > 0)) {
    return `--time-budget takes minutes, such as 20, not '${minutes}'.`;
  }
}

/** Gives the exit code. */
async function bench() {
  const { values: options, positionals } = parseArgs(ARGUMENTS);
  const { against, limit, 'time-budget': minutes } = options;
  if (options.help) {
    console.log(HELP);
    return 0;
  }
  const refusal = refusalOf(options, positionals);
  if (refusal) {
    console.error(refusal);
    return 2;
  }
  if (against !== undefined) return compareWith(against, { limit, words: positionals });
  if (options.draw) return redraw(options);
  return run(positionals.length > 0 ? positionals : NAMES, { quick: options.quick, minutes });
}

/** A quick run only shows that everything works; its figures are not written to the documentation. */
function placesOf({ quick }) {
  const build = path.join(root, 'build/bench');
  return quick
    ? { results: path.join(build, 'quick.json'), page: path.join(build, 'quick.md') }
    : { results: path.join(build, 'results.json'), page: path.join(root, 'docs/benchmarks.md') };
}

async function run(names, { quick, minutes }) {
  for (const line of checkAll(quick ? { traces: 50 } : {})) console.log(line);

  const places = placesOf({ quick });
  const report = { environment: environment(), benchmarks: {} };
  const earlier = existsSync(places.results) ? read(places.results) : null;
  if (JSON.stringify(earlier?.environment) === JSON.stringify(report.environment)) {
    report.benchmarks = earlier.benchmarks;
  }

  const toRun = names.filter((name) => {
    const reason = moduleOf(name).skip?.();
    if (reason) console.log(`\n${name} left out: ${reason}`);
    return !reason;
  });
  const start = performance.now();
  const deadline = start + (minutes ? minutes * MINUTE : budgetOf(toRun));
  let failed = 0;
  for (const [i, name] of toRun.entries()) {
    const benchmark = moduleOf(name);
    const date = new Date().toISOString().slice(0, 16).replace('T', ' ');
    const load = os.loadavg()[0].toFixed(1);
    // The remaining benchmarks share the time that earlier ones did not use.
    const leftMs = Math.max(0, deadline - performance.now());
    const later = budgetOf(toRun.slice(i + 1));
    const budgetMs = (leftMs * benchmark.budgetMs) / (benchmark.budgetMs + later);
    const whole = (expectedMs) => {
      const now = performance.now();
      const rest = Math.min(expectedMs + later, deadline - now);
      const times = `${clockText(now - start)} of at most ${clockText(deadline - start)}`;
      return `[${i + 1}/${toRun.length}, ${times}, about ${clockText(rest)} left] `;
    };
    const onProgress = progressLine(name, whole);
    const file = path.join(root, 'bench/js', `${name}.js`);
    const results = await runBenchmark(file, benchmark, { quick, budgetMs, onProgress });
    failed += Object.values(results).filter(({ error }) => error).length;
    for (const table of benchmark.tables(results)) console.log(tableText(table));
    const versions = benchmark.versions?.();
    report.benchmarks[name] = { date, load, command: commandLine(), versions, results };
    mkdirSync(path.dirname(places.results), { recursive: true });
    writeFileSync(places.results, `${JSON.stringify(report, null, 1)}\n`);
  }

  write(report, places);
  console.log(`It took ${clockText(performance.now() - start)} minutes.`);
  if (failed > 0) console.error(`${failed} subjects failed; see the notes below the tables.`);
  return failed > 0 ? 1 : 0;
}

function redraw({ quick }) {
  const places = placesOf({ quick });
  if (!existsSync(places.results)) {
    console.error(
      `There is no ${path.relative(root, places.results)} to draw from: measure first.`,
    );
    return 1;
  }
  write(read(places.results), places);
  return 0;
}

function write(report, places) {
  const { markdown, plots } = page(report, NAMES.map(moduleOf), { limitMinutes: LIMIT_MINUTES });
  const images = path.join(path.dirname(places.page), 'images');
  mkdirSync(images, { recursive: true });
  for (const { name, svg } of plots) writeFileSync(path.join(images, `${name}.svg`), svg);
  writeFileSync(places.page, markdown);
  const written = [places.page, ...plots.map(({ name }) => path.join(images, `${name}.svg`))];
  console.log(`\nWritten: ${written.map((file) => path.relative(root, file)).join(', ')}`);
}

function read(file) {
  return JSON.parse(readFileSync(file, 'utf8'));
}

function commandLine() {
  const words = process.argv.slice(2);
  return ['npm run bench', ...(words.length > 0 ? ['--', ...words] : [])].join(' ');
}

function environment() {
  const versionOf = (folder) => read(path.join(folder, 'package.json')).version;
  return {
    processor: os.cpus()[0].model.trim(),
    cores: os.cpus().length,
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.type()} ${os.release()}, ${os.arch()}`,
    node: `${process.version} (V8 ${process.versions.v8})`,
    versions: {
      rollgate: versionOf(root),
      ...Object.fromEntries(
        PEERS.map((name) => [name, versionOf(path.join(root, 'node_modules', name))]),
      ),
    },
  };
}

await main('bench', async () => {
  process.exitCode = await bench();
});
