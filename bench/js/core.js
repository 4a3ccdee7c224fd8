// Question: what does a check cost in the C++ core alone, without Node, ids from JavaScript or a clock?
//
// Bias: the executable of bench/core measures itself with Google Benchmark and says what its cases
// are; here each case runs in a process of its own, like the subjects of the other benchmarks.

const { execFileSync } = require('node:child_process');
const { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } = require('node:fs');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { main } = require('./harness');
const { failures, figureOf, range, rounds } = require('./report');

const BUILDS = path.join(__dirname, '../../build/cmake');
const NOT_FOR_MEASURING = /debug|asan|tsan|ubsan|sanit|coverage/i;

/** The newest core_bench of an optimised build, or undefined. */
function findExecutable() {
  if (!existsSync(BUILDS)) return undefined;
  const folders = readdirSync(BUILDS).filter((name) => !NOT_FOR_MEASURING.test(name));
  const places = folders.flatMap((name) =>
    ['', 'bin', 'bench', 'bench/core', 'Release'].flatMap((sub) =>
      ['core_bench', 'core_bench.exe'].map((file) => path.join(BUILDS, name, sub, file)),
    ),
  );
  const found = places.filter((place) => existsSync(place) && statSync(place).isFile());
  return found.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
}

function skip() {
  return findExecutable()
    ? undefined
    : 'the C++ benchmark is not built: there is no core_bench below build/cmake';
}

function jobs({ quick }) {
  const executable = findExecutable();
  const listed = execFileSync(executable, ['--benchmark_list_tests'], { encoding: 'utf8' });
  const names = listed.split('\n').filter((line) => line.trim() !== '');
  const isLarge = (name) => /10M|10000000/.test(name);
  return names
    .filter((name) => !(quick && isLarge(name)))
    .map((name) => ({ key: name, executable, minTime: quick ? 0.02 : 0.2, rounds: quick ? 1 : 5 }));
}

async function measure({ key, executable, minTime }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'core-bench-'));
  const out = path.join(folder, 'out.json');
  const escaped = key.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  try {
    execFileSync(
      executable,
      [
        `--benchmark_filter=^${escaped}$`,
        `--benchmark_min_time=${minTime}`,
        `--benchmark_out=${out}`,
        '--benchmark_out_format=json',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const { benchmarks } = JSON.parse(readFileSync(out, 'utf8'));
    const run = benchmarks.find(({ run_type: type }) => type !== 'aggregate');
    if (run.error_occurred) throw new Error(run.error_message);
    return { cpuNs: perItem(run), iterations: run.iterations };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A case may make many checks per iteration, and then says how many items a second it did. */
function perItem(run) {
  if (run.items_per_second) return 1e9 / run.items_per_second;
  const unitNs = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
  return run.cpu_time * unitNs[run.time_unit];
}

function tables(results) {
  const keys = Object.keys(results);
  return [
    {
      title: 'The core, CPU ns per check',
      columns: ['', 'ns per check', 'min – max', 'rounds'],
      rows: keys.map((key) => {
        const { cpuNs, runs } = results[key];
        const name = key.replace(/\/iterations:\d+$/, '');
        return [name, figureOf(cpuNs), range(cpuNs), rounds({ runs })];
      }),
      notes: failures(keys.map((key) => [key, results[key]])),
    },
  ];
}

module.exports = {
  name: 'core',
  title: 'The C++ core alone',
  question: 'What does a check cost in the C++ core, without Node?',
  bias: [
    'Ids and answers do not pass between JavaScript and C++. So the difference to a check in Node is the cost of the binding. An application does not reach these figures.',
    'Google Benchmark runs each case in a tight loop. bench/core defines the names of the cases. Tables have room for twice the number of ids, except in the case of a full table.',
  ],
  budgetMs: 160_000,
  skip,
  jobs,
  measure,
  tables,
};

if (require.main === module) main(__filename, module.exports);
