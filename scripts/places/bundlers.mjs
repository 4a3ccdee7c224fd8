// The results of the bundlers that build examples/bundling with the packed package, moved to an empty folder, on a real
// Redis: npm run bundlers [-- esbuild webpack rollup ncc sea next]
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root } from '../build.mjs';
import { npmFolder } from '../caches.mjs';
import { forEach } from '../lib/commands.mjs';
import { failureOf, runGroup } from '../lib/process-group.mjs';
import { assertLimitsRequests, unpackPackage } from './package.mjs';

const require = createRequire(import.meta.url);
const { startRedis } = require('../../test/support/redis-server');
const { DEPENDENCIES, emptyFolder, packRollgate } = require('../../test/support/tarball');

const examples = join(root, 'examples/bundling');
const recipes = join(root, 'examples/frameworks/next');
const BUILD_MS = 600_000;
const START_MS = 30_000;

/**
 * The result of each bundler, and the command that starts it; `copied` if the addon is copied by hand. A server answers
 * at the paths of `serves` what other programs print: the waits of its `limiters`. At the paths of `recipes`, it allows a
 * client that many requests.
 */
const bundlers = {
  esbuild: { output: 'dist/esbuild', command: ['node', 'app.js'], copied: true },
  webpack: { output: 'dist/webpack', command: ['node', 'app.js'], copied: true },
  rollup: { output: 'dist/rollup', command: ['node', 'app.mjs'], copied: true },
  ncc: { output: 'dist/ncc', command: ['node', 'index.js'] },
  sea: { output: 'dist/sea', command: ['./app'], copied: true },
  next: {
    output: 'next/.next/standalone',
    command: ['node', 'next/server.js'],
    serves: ['/limits', '/edge'],
    limiters: ['memory', 'redis', 'edge'],
    recipes: { '/hello': 3, '/api/time': 10 },
  },
};

function runProgram([program, ...args], { env, ...options }) {
  const file = program === 'node' ? process.execPath : program;
  return runGroup([file, ...args], { ...options, env: { ...process.env, ...env } });
}

/** The folder with the bundlers, the examples and the package as npm installs it. */
function prepare(tarball) {
  const { rollgate: _, ...dependencies } = require(join(examples, 'package.json')).dependencies;
  const own = DEPENDENCIES.map((name) => [name, require(`${name}/package.json`).version]);
  const folder = npmFolder('bundling', { ...dependencies, ...Object.fromEntries(own) });
  for (const built of ['dist', 'next'])
    rmSync(join(folder, built), { recursive: true, force: true });
  cpSync(examples, folder, {
    recursive: true,
    filter: (path) => !/[/\\](node_modules|dist|\.next)$/.test(path),
  });
  for (const name of ['app', 'proxy.js']) {
    cpSync(join(recipes, name), join(folder, 'next', name), { recursive: true });
  }
  return { folder, installed: unpackPackage(tarball, folder) };
}

/** Builds one bundle and moves the result to an empty folder. */
async function buildWith(name, folder) {
  const started = Date.now();
  const result = await runProgram(['npm', 'run', '--silent', name], {
    cwd: folder,
    env: { NEXT_TELEMETRY_DISABLED: '1' },
    timeoutMs: BUILD_MS,
  });
  const failure = failureOf(result);
  if (failure) throw new Error(`npm run ${name} ${failure}:\n${result.text}`);
  const moved = emptyFolder();
  cpSync(join(folder, bundlers[name].output), moved, { recursive: true });
  return { moved, seconds: (Date.now() - started) / 1000 };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** Repeats the request until there is a response; undefined once the server has ended. */
async function askUntilItServes(url, signal) {
  while (!signal.aborted) {
    try {
      return await (await fetch(url, { signal })).text();
    } catch {
      await sleep(100);
    }
  }
}

/** The output of the program, or the response of its server. */
async function start(name, moved, env) {
  const { command, serves, recipes } = bundlers[name];
  const options = { cwd: moved, env, timeoutMs: START_MS };
  if (!serves) return runProgram(command, options);
  const port = await freePort();
  const result = await runProgram(command, {
    ...options,
    env: { ...env, PORT: String(port), HOSTNAME: '127.0.0.1' },
    until: async (signal) => {
      const url = `http://127.0.0.1:${port}`;
      const answers = await Promise.all(serves.map((path) => askUntilItServes(url + path, signal)));
      for (const [path, limit] of Object.entries(recipes)) {
        await assertLimitsRequests(url + path, limit, 'x-forwarded-for');
      }
      return answers;
    },
  });
  return { ...result, stdout: result.answer?.join('\n') ?? '' };
}

/** Each line of the output has the waits of two attempts, by limiter. */
function assertLimits({ stdout, stderr }, limiters) {
  const waits = {};
  try {
    for (const line of stdout.trim().split('\n')) Object.assign(waits, JSON.parse(line));
  } catch {
    throw new Error(`it did not answer:\n${stdout}${stderr}`);
  }
  for (const name of limiters) {
    const [first, second] = waits[name] ?? [];
    if (first !== 0 || !(second > 0)) throw new Error(`${name}: waits are ${first} and ${second}`);
  }
}

function assertSaysWhatToDo({ code, stderr }) {
  const parts = ['ERR_ROLLGATE_ADDON', 'rollgate.node', 'ROLLGATE_ADDON', 'docs/bundling.md'];
  const missing = parts.filter((part) => !stderr.includes(part));
  if (code !== 0 && missing.length === 0) return;
  throw new Error(
    `without the addon it ended with ${code} and did not name ${missing}:\n${stderr}`,
  );
}

async function check(name, moved, url) {
  const env = { REDIS_URL: url, ROLLGATE_ADDON: '' };
  const { copied, limiters = ['memory', 'redis'] } = bundlers[name];
  assertLimits(await start(name, moved, env), limiters);
  if (!copied) return [...limiters, ...Object.keys(bundlers[name].recipes ?? {})].join(', ');
  const elsewhere = join(emptyFolder(), 'other name.node');
  renameSync(join(moved, 'rollgate.node'), elsewhere);
  assertSaysWhatToDo(await start(name, moved, env));
  assertLimits(await start(name, moved, { ...env, ROLLGATE_ADDON: elsewhere }), limiters);
  return `${limiters.join(', ')}; ROLLGATE_ADDON; message without the addon`;
}

function versionOf(name, folder) {
  if (name === 'sea') return process.versions.node;
  const places = [name, `@vercel/${name}`].map((one) => join(folder, 'node_modules', one));
  const place = places.find((one) => existsSync(one));
  return JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')).version;
}

export const names = Object.keys(bundlers);
export const jobs = 2;

/** Builds all, because no bundle may read the package later; a bundle that fails is a result. */
export async function setUp(cases) {
  const { file } = await packRollgate({ prebuilt: true });
  const { folder, installed } = prepare(file);
  const built = {};
  await forEach(cases, jobs, async ({ name }) => {
    console.log(`${name}: building`);
    built[name] = await buildWith(name, folder).catch((error) => ({ error }));
  });
  rmSync(installed, { recursive: true });
  return { built, folder, server: await startRedis() };
}

export async function run({ name }, { built, folder, server }) {
  const { moved, seconds, error } = built[name];
  if (error) throw error;
  const found = await check(name, moved, server.url);
  return `${versionOf(name, folder).padEnd(8)} ${seconds.toFixed(1)} s  ${found}`;
}

export const tearDown = ({ server }) => server.stop();
