// The tests of Redis on other servers, from Debian's releases: npm run servers [-- redis-8.0 valkey-9.1]
// Prints the table of docs/redis.md. ROLLGATE_CACHE keeps the servers; remove `programs` there for newer ones.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../build.mjs';
import { scriptsAreCurrent } from '../embed-scripts.mjs';
import { chosen } from '../lib/chosen.mjs';
import { debianProgram } from '../lib/debian-program.mjs';
import { must } from '../lib/debian-root.mjs';

/** By name: the package and the suites that it and its libraries come from. */
const SERVERS = {
  'redis-7.0': ['redis-server', 'bookworm'],
  'redis-8.0': ['redis-server', 'trixie'],
  'redis-8.6': ['redis-server', 'sid', 'experimental'],
  'redict-7.3': ['redict-server', 'forky'], // made from Redis 7.2
  'valkey-8.0': ['valkey-server', 'bookworm', 'bookworm-backports'],
  'valkey-8.1': ['valkey-server', 'trixie'],
  'valkey-9.1': ['valkey-server', 'forky'],
};

/** Arguments for Jest: what needs a server, through the clients and with the cases of the fast tier. */
const RUNS = [['test/redis/'], ['test/conformance/', '--testNamePattern', 'Redis,']];

const results = join(root, 'build/servers');

/** Of the table. */
const rows = [];

/** Runs Jest with a server; gives what its report says. */
function jest(program, file, args) {
  rmSync(file, { force: true });
  spawnSync(
    process.execPath,
    ['node_modules/jest/bin/jest.js', '--runInBand', '--json', `--outputFile=${file}`, ...args],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ROLLGATE_REDIS_SERVER: program },
    },
  );
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8'));
  const name = `${args[0]}: Jest ended without a report`;
  return { numPassedTests: 0, testResults: [{ name, status: 'failed', assertionResults: [] }] };
}

/** The sentences of the tests that failed, and the files that could not run. */
function failuresIn({ testResults }) {
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const failed = assertionResults.filter((one) => one.status === 'failed');
    if (failed.length === 0 && status === 'failed') return [name];
    return failed.map(({ fullName }) => fullName);
  });
}

export const options = {};

export const casesOf = (_values, names) =>
  chosen(names, Object.keys(SERVERS), 'servers').map((name) => ({ name }));

export function setUp() {
  if (!scriptsAreCurrent()) throw new Error('the scripts are not embedded');
  mkdirSync(results, { recursive: true });
}

/** Notes the row of the table. */
export async function run({ name }) {
  const [packageName, ...suites] = SERVERS[name];
  const program = debianProgram(packageName, suites);
  const [, product, version] = /^(\w+) server v=(\S+)/.exec(must(program, ['--version']));
  const reports = RUNS.map((args, i) => jest(program, join(results, `${name}-${i}.json`), args));
  const passed = reports.reduce((sum, { numPassedTests }) => sum + numPassedTests, 0);
  const failures = reports.flatMap(failuresIn);
  rows.push(`| ${product} ${version} | ${suites.at(-1)} | ${passed} | ${failures.length} |`);
  if (failures.length > 0) throw new Error(failures.join('\n'));
  return `${passed} tests`;
}

export function report() {
  const head = '| server | from Debian | passed | failed |\n|---|---|---|---|';
  console.log(`\n${[head, ...rows].join('\n')}`);
}
