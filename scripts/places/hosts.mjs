// The applications of test/hosts, bundled with the packed package, on hosts without modules of Node:
//   npm run hosts [-- workerd browser]
// Their program (test/hosts/program.mjs) must return there what it returns on Node with the addon.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, cpSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { root } from '../build.mjs';
import { installedClang } from '../build-wasm.mjs';
import { npmFolder } from '../caches.mjs';
import { must } from '../lib/commands.mjs';
import { runGroup } from '../lib/process-group.mjs';
import { assertLimitsRequests, unpackPackage } from './package.mjs';

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
  unpackPackage(tarball, folder);
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
    must(process.execPath, [program, file, ...common, ...output, ...options], { cwd: from });
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

async function ask(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

const askOften = (url) => Promise.all(Array.from({ length: CALLS }, () => ask(url)));
const count = (answers) => answers.filter(Boolean).length;

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
  const { answer, text } = await runGroup(serving, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    timeoutMs: 2 * TIMEOUT_MS,
    until: (_signal, child) => checkAll(child, expected),
  });
  if (!answer) throw new Error(`workerd ended too early\n${text}`);
}

async function checkAll(child, expected) {
  const { recipe, ...workers } = await urlsOf(child);
  for (const url of Object.values(workers)) await checkWorker(url, expected);
  await assertLimitsRequests(recipe, 10, 'cf-connecting-ip');
  return true;
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
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

async function inBrowser({ bundlers, expected }) {
  const browser = await launchBrowser();
  const timer = setTimeout(() => browser.close(), 5 * TIMEOUT_MS); // ends a call of a page that hangs
  try {
    for (const [name, bundle] of Object.entries(bundlers)) {
      await checkPages(browser, await bundle('page.mjs'), expected).catch((error) => {
        throw new Error(`bundled by ${name}: ${error.message}`);
      });
    }
  } finally {
    clearTimeout(timer);
    await browser.close();
  }
}

async function checkPages(browser, folder, expected) {
  const server = await servePages(folder);
  /** The result of a function of the page. */
  const askPage = async (path, name) => {
    const page = await browser.newPage();
    await page.goto(server.url + path);
    const answer = await page.evaluate((called) => globalThis.rollgatePage[called](), name);
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

export const names = Object.keys(HOSTS);

export const unavailable = () =>
  installedClang() === undefined && 'the WebAssembly module cannot be built here';

export async function setUp() {
  const { file } = await packRollgate({ prebuilt: false });
  const modules = join(npmFolder('hosts', VERSIONS), 'node_modules');
  const bundlers = createBundlers(modules, installApplications(file));
  return { bundlers, modules, expected: await runOnNode() };
}

export const run = ({ name }, context) => HOSTS[name](context);
