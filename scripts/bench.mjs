// Runs the benchmarks, all or those named, prints their tables, and writes build/bench/results.json and docs/benchmarks.md.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const require = createRequire(import.meta.url);
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const { runBenchmark } = require('../bench/js/harness');
const { progressLine, tableMarkdown, tableText } = require('../bench/js/report');
const { checkAll } = require('../bench/js/plain-js-check');

const NAMES = [
  'throughput',
  'memory',
  'stall',
  'attack',
  'floods',
  'redis',
  'redis-algorithms',
  'shared',
  'middleware',
  'core',
];
const PEERS = [
  'express-rate-limit',
  'rate-limiter-flexible',
  'rolling-rate-limiter-0.1',
  'rolling-rate-limiter',
];

const { values: options, positionals } = parseArgs({
  options: { quick: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const unknown = positionals.find((name) => !NAMES.includes(name));
if (unknown) {
  console.error(`There is no benchmark '${unknown}'. There are: ${NAMES.join(', ')}.`);
  process.exit(2);
}
process.exitCode = await run(positionals.length > 0 ? positionals : NAMES, options);

async function run(names, { quick }) {
  for (const line of checkAll(quick ? { traces: 50 } : {})) console.log(line);

  // A quick run only shows that everything works; its figures go nowhere near the documentation.
  const resultsFile = path.join(root, 'build/bench', quick ? 'quick.json' : 'results.json');
  const report = { environment: environment(), benchmarks: {} };
  const earlier = existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : null;
  if (JSON.stringify(earlier?.environment) === JSON.stringify(report.environment)) {
    report.benchmarks = earlier.benchmarks;
  }

  let failed = 0;
  for (const name of names) {
    const file = path.join(root, 'bench/js', `${name}.js`);
    const benchmark = require(file);
    const reason = benchmark.skip?.();
    if (reason) {
      console.log(`\n${name} left out: ${reason}`);
      continue;
    }
    const date = new Date().toISOString().slice(0, 16).replace('T', ' ');
    const load = os.loadavg()[0].toFixed(1);
    const onProgress = progressLine(name);
    const results = await runBenchmark(file, benchmark, { quick, onProgress });
    failed += Object.values(results).filter(({ error }) => error).length;
    for (const table of benchmark.tables(results)) console.log(tableText(table));
    const versions = benchmark.versions?.();
    report.benchmarks[name] = { date, load, command: commandLine(), versions, results };
    mkdirSync(path.dirname(resultsFile), { recursive: true });
    writeFileSync(resultsFile, `${JSON.stringify(report, null, 1)}\n`);
  }

  const page = quick
    ? path.join(root, 'build/bench/quick.md')
    : path.join(root, 'docs/benchmarks.md');
  writeFileSync(page, markdown(report));
  console.log(`\nWritten: ${path.relative(root, resultsFile)}, ${path.relative(root, page)}`);
  if (failed > 0) console.error(`${failed} subjects failed; see the notes below the tables.`);
  return failed > 0 ? 1 : 0;
}

function commandLine() {
  const words = process.argv.slice(2);
  return ['npm run bench', ...(words.length > 0 ? ['--', ...words] : [])].join(' ');
}

function environment() {
  const versionOf = (folder) =>
    JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')).version;
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

function markdown({ environment: env, benchmarks }) {
  const names = NAMES.filter((name) => benchmarks[name]);
  return `${[
    '# Benchmarks',
    '',
    'Written by `npm run bench` from its own results; do not edit. Run it on your machine: absolute figures belong to the machine, the ratios hold better.',
    '',
    '| | |',
    '|---|---|',
    `| Processor | ${env.processor}, ${env.cores} cores |`,
    `| Memory | ${env.memoryGiB} GiB |`,
    `| System | ${env.system} |`,
    `| Node.js | ${env.node} |`,
    `| Versions | ${versionsText(env.versions)} |`,
    '',
    'How it is measured: every subject runs in a process of its own, one of each per round and every round beginning with another, so that a slow moment of the machine meets all. A figure is the median over the rounds, "min – max" its spread, and a ratio that of two medians, above 1 where rollgate needs less. "CPU" is the time of all threads of the process, garbage collection included. The plain JS limiters are in `bench/js/plain-js.js`, written for this comparison and checked against an oracle before each run.',
    '',
    ...names.flatMap((name) => section(require(`../bench/js/${name}.js`), benchmarks[name])),
  ].join('\n')}\n`;
}

function versionsText(versions) {
  return Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
}

function section({ name, title, question, bias, tables }, run) {
  const { date, load, command, versions, results } = run;
  return [
    `## ${title}`,
    '',
    `${question} (\`bench/js/${name}.js\`, \`${command}\`, ${date} UTC, load average before it ${load}.)`,
    '',
    ...(versions ? [`With ${versionsText(versions)}.`, ''] : []),
    ...tables(results).map(tableMarkdown),
    'To be read with it:',
    '',
    ...bias.map((note) => `- ${note}`),
    '',
  ];
}
