// The applications of test/hosts, bundled with the packed package, on hosts without modules of Node:
//   npm run hosts [-- workerd browser]
// Their program (test/hosts/program.mjs) must return there what it returns on Node with the addon.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { root } from '../build.mjs';
import { installedClang } from '../build-wasm.mjs';
import { chosen } from '../lib/chosen.mjs';
import { npmFolder } from '../lib/npm-folder.mjs';
import { runGroup } from '../lib/process-group.mjs';

const require = createRequire(import.meta.url);
const { launchBrowser } = require('../../test/support/browser');
const { DEPENDENCIES, emptyFolder, packRollgate } = require('../../test/support/tarball');

const VERSIONS = {
  esbuild: '0.28.2',
  webpack: '5.112.2',
  workerd: 'npm:@cloudflare/workerd-linux-64@1.20261117.1',
};
const TIMEOUT_MS = 60_000;
/** More than any application answers. */
const CALLS = 8;

const UNSUPPORTED = Array(3).fill('ERR_ROLLGATE_UNSUPPORTED');

/** The applications in an empty folder, where the package is installed from its tarball. */
function installApplications(tarball) {
  const folder = emptyFolder();
  const installed = join(folder, 'node_modules/rollgate');
  mkdirSync(installed, { recursive: true });
  mustRun('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  for (const name of DEPENDENCIES) {
    const place = join('node_modules', name);
    cpSync(join(root, place), join(folder, place), { recursive: true });
  }
  cpSync(join(root, 'test/hosts'), folder, { recursive: true });
  cpSync(join(root, 'examples/frameworks/workerd.mjs'), join(folder, 'recipe.mjs'));
  return folder;
}

/** Functions that bundle a file of a folder; they return the folder of the bundle. */
const createBundlers = (modules, from) => ({
  esbuild(file, options = []) {
    const to = emptyFolder();
    const program = join(modules, 'esbuild/bin/esbuild');
    const common = ['--bundle', '--format=esm', '--platform=browser', '--log-level=warning'];
    const output = [`--outdir=${to}`, '--out-extension:.js=.mjs'];
    mustRun(process.execPath, [program, file, ...common, ...output, ...options], { cwd: from });
    return to;
  },

  async webpack(file) {
    const to = emptyFolder();
    const compile = promisify(require(join(modules, 'webpack')));
    const output = { path: to, filename: file };
    const stats = await compile({ context: from, entry: `./${file}`, mode: 'production', output });
    if (stats.hasErrors()) throw new Error(stats.toString('errors-only'));
    return to;
  },
});

function mustRun(command, args, options) {
  const { error, status, stderr } = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (error ?? status !== 0) throw new Error(`${command} ended with ${status}: ${error ?? stderr}`);
}

async function ask(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

const askOften = (url) => Promise.all(Array.from({ length: CALLS }, () => ask(url)));
const count = (answers) => answers.filter(Boolean).length;

async function inTime(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done in ${TIMEOUT_MS / 1000} s`)), TIMEOUT_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** As wrangler does it: the .wasm file is a module of its own. */
const FOR_WORKERD = [
  '--conditions=workerd,worker,browser',
  '--loader:.wasm=copy',
  '--asset-names=[name]',
];

async function onWorkerd({ bundlers, modules, expected }) {
  const folder = bundlers.esbuild('worker.mjs', ['recipe.mjs', ...FOR_WORKERD]);
  cpSync(join(root, 'test/hosts/workerd.capnp'), join(folder, 'workerd.capnp'));
  const program = join(modules, 'workerd/bin/workerd');
  chmodSync(program, 0o755);
  const serving = [program, 'serve', 'workerd.capnp', '--control-fd=3'];
  const { answer = 'workerd ended too early', text } = await runGroup(serving, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    timeoutMs: 2 * TIMEOUT_MS,
    until: (_signal, child) => checkAll(child, expected).catch(({ message }) => message),
  });
  if (answer !== PASSED) throw new Error(`${answer}\n${text}`);
}

const PASSED = 'passed';

async function checkAll(child, expected) {
  const { recipe, ...workers } = await urlsOf(child);
  for (const url of Object.values(workers)) await checkWorker(url, expected);
  await checkRecipe(recipe);
  return PASSED;
}

const SOCKETS = 3;

/** The address of each socket by its name, which workerd reports once it listens. */
async function urlsOf(child) {
  const urls = {};
  for await (const line of createInterface({ input: child.stdio[3] })) {
    const { event, socket, port } = JSON.parse(line);
    if (event === 'listen') urls[socket] = `http://127.0.0.1:${port}`;
    if (Object.keys(urls).length === SOCKETS) return urls;
  }
  throw new Error('workerd ended before it served');
}

async function checkWorker(url, expected) {
  for (const path of ['/fetch', '/memory', '/kv', '/room', '/room/kv']) {
    assert.equal(count(await askOften(url + path)), 2, path);
  }
  assert.equal(count(await askOften(`${url}/room/wait`)), CALLS);
  assert.deepEqual(await ask(`${url}/unsupported`), UNSUPPORTED);
  assert.deepEqual(await ask(`${url}/program`), expected);
}

/** Ten requests of a client pass, the eleventh is refused. */
async function checkRecipe(url) {
  const askFrom = async (ip) => {
    const headers = { 'cf-connecting-ip': ip };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    await response.text();
    return response;
  };
  const answers = [];
  for (let i = 0; i < 11; i += 1) answers.push(await askFrom('192.0.2.1'));
  const statuses = answers.map(({ status }) => status);
  assert.deepEqual(statuses, [...Array(10).fill(200), 429]);
  assert.match(answers[0].headers.get('ratelimit'), /^"10-in-1min"; r=9; t=\d+$/);
  assert.match(answers[10].headers.get('retry-after'), /^\d+$/);
  assert.equal((await askFrom('192.0.2.2')).status, 200);
}

/** The Content-Security-Policy of each page. */
const PAGES = {
  '/': undefined,
  '/allowed': "script-src 'self' 'wasm-unsafe-eval'",
  '/forbidden': "script-src 'self'",
};

const PAGE = '<!doctype html><script type="module" src="/page.mjs"></script>';

async function servePages(folder) {
  const server = createServer(({ url }, response) => {
    const isScript = url === '/page.mjs';
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
    if (PAGES[url]) response.setHeader('content-security-policy', PAGES[url]);
    response.end(isScript ? readFileSync(join(folder, url)) : PAGE);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

async function inBrowser({ bundlers, expected }) {
  const browser = await launchBrowser();
  try {
    for (const [name, bundle] of Object.entries(bundlers)) {
      await checkPages(browser, await bundle('page.mjs'), expected).catch((error) => {
        throw new Error(`bundled by ${name}: ${error.message}`);
      });
    }
  } finally {
    await browser.close();
  }
}

async function checkPages(browser, folder, expected) {
  const server = await servePages(folder);
  /** The result of a function of the page. */
  const askPage = async (path, name) => {
    const page = await browser.newPage();
    await page.goto(server.url + path);
    const answer = await inTime(page.evaluate((called) => globalThis.rollgatePage[called](), name));
    await page.close();
    return answer;
  };
  try {
    for (const path of ['/', '/allowed']) {
      assert.deepEqual(await askPage(path, 'run'), expected, path);
      assert.deepEqual(await askPage(path, 'unsupported'), UNSUPPORTED);
    }
    const { name, code, message } = await askPage('/forbidden', 'errorOfLimiter');
    assert.deepEqual([name, code], ['Error', 'ERR_ROLLGATE_WASM']);
    assert.match(message, /Content Security Policy/);
  } finally {
    server.close();
  }
}

const HOSTS = { workerd: onWorkerd, browser: inBrowser };

async function runOnNode() {
  process.env.ROLLGATE_BINDING = 'native';
  process.removeAllListeners('warning'); // the program makes a limiter drop ids
  const { run: runProgram } = await import('../../test/hosts/program.mjs');
  return JSON.parse(JSON.stringify(await runProgram(require('../..'))));
}

export const options = {};

export const casesOf = (_values, names) =>
  chosen(names, Object.keys(HOSTS), 'hosts').map((name) => ({ name }));

export const unavailable = () =>
  installedClang() === undefined && 'the WebAssembly module cannot be built here';

export async function setUp() {
  const { file } = await packRollgate({ prebuilt: false });
  const modules = join(npmFolder('hosts', VERSIONS), 'node_modules');
  const bundlers = createBundlers(modules, installApplications(file));
  return { bundlers, modules, expected: await runOnNode() };
}

export const run = ({ name }, context) => HOSTS[name](context);
