// The tests of Redis on other servers, from Debian's releases: npm run servers [-- redis-8.0 valkey-9.1]
// Prints the table of docs/redis.md. The servers are kept; npm run caches -- --clear=programs makes room for newer ones.
import { spawnSync } from 'node:child_process';
import { root } from '../build.mjs';
import { scriptsAreCurrent } from '../embed-scripts.mjs';
import { must } from '../lib/commands.mjs';
import { debianProgram } from '../lib/debian-packages.mjs';

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

/** Of the table. */
const rows = [];

/** Runs Jest with a server; gives its exit code and what it says. */
function jest(program, args) {
  return spawnSync(process.execPath, ['node_modules/jest/bin/jest.js', '--runInBand', ...args], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    env: { ...process.env, ROLLGATE_REDIS_SERVER: program },
  });
}

/** How many tests passed or failed, from the summary. */
const countOf = (what, reports) =>
  reports
    .map(({ stderr }) => new RegExp(`^Tests: .*?(\\d+) ${what}`, 'm').exec(stderr)?.[1] ?? 0)
    .reduce((sum, count) => sum + Number(count), 0);

export const names = Object.keys(SERVERS);

export function setUp() {
  if (!scriptsAreCurrent()) throw new Error('the scripts are not embedded');
}

/** Notes the row of the table. */
export async function run({ name }) {
  const [packageName, ...suites] = SERVERS[name];
  const program = debianProgram(packageName, suites);
  const [, product, version] = /^(\w+) server v=(\S+)/.exec(must(program, ['--version']));
  const reports = RUNS.map((args) => jest(program, args));
  const [passed, failed] = ['passed', 'failed'].map((what) => countOf(what, reports));
  rows.push(`| ${product} ${version} | ${suites.at(-1)} | ${passed} | ${failed} |`);
  const wrong = reports.filter(({ status }) => status !== 0);
  if (wrong.length === 0) return `${passed} tests`;
  const titles = wrong.flatMap(({ stderr }) => stderr.match(/^ +● .+$/gm) ?? stderr.slice(-1000));
  throw new Error([...new Set(titles)].join('\n'));
}

export function report() {
  const head = '| server | from Debian | passed | failed |\n|---|---|---|---|';
  console.log(`\n${[head, ...rows].join('\n')}`);
}
