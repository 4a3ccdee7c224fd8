// The packed package, installed without network: with a binary, or built from source. test/runtimes uses what it has.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { runProgram } = require('../support/run-program');
const tarballs = require('../support/tarball');
const { patient } = require('../support/tiers');

const { emptyFolder, install, packRollgate, pathWithoutTools, removeFolders, runNode } = tarballs;
const ROOT = path.join(__dirname, '../..');
const MODULES = path.join(ROOT, 'node_modules');
const MEGABYTE = 1_000_000;

/** What `require` may load, so that it stays quick: a limiter in memory, and node-gyp-build. */
const MOST_MODULES = 36;

// On Windows PATH cannot be emptied by links, and npm is found elsewhere.
const describeHere = process.platform === 'win32' ? describe.skip : describe;

jest.setTimeout(patient(900_000)); // a build is among them

let sources;

beforeAll(async () => {
  sources = await packRollgate({ prebuilt: false });
});
afterAll(removeFolders);

/**
 * A copy of the tree with its addon, dated as current: a build here would exchange the file that other tests
 * have loaded, and a build in the copy would only repeat what made that file.
 */
function copyOfTree() {
  const copy = emptyFolder();
  const folders = ['cmake', 'docs', 'examples', 'lib', 'scripts', 'src', 'test/support'];
  const files = fs.readdirSync(ROOT).filter((name) => fs.statSync(path.join(ROOT, name)).isFile());
  for (const name of [...files, ...folders, 'build/Release']) {
    fs.cpSync(path.join(ROOT, name), path.join(copy, name), { recursive: true });
  }
  fs.symlinkSync(MODULES, path.join(copy, 'node_modules'));
  const stamp = path.join(copy, 'build/cmake/release/addon.built');
  fs.mkdirSync(path.dirname(stamp), { recursive: true });
  fs.writeFileSync(stamp, '');
  return copy;
}

describeHere('with a binary for this machine', () => {
  let ofCopy;
  let tarball;
  let installed;
  let rollgate;
  let PATH;

  const run = async (source) => {
    const options = { cwd: installed.app, env: { PATH } };
    const { code, stdout, stderr } = await runNode(['--eval', source], options);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  };

  beforeAll(async () => {
    ofCopy = require(path.join(copyOfTree(), 'test/support/tarball'));
    tarball = await ofCopy.packRollgate({ prebuilt: true });
    PATH = pathWithoutTools();
    installed = await install(tarball, { PATH });
    rollgate = path.join(installed.app, 'node_modules/rollgate');
  });
  afterAll(() => ofCopy.removeFolders());

  test('holds what it needs, sources included, nothing of tests or builds, in 3.3 MB', () => {
    expect(fs.statSync(tarball.file).size).toBeLessThan(3.3 * MEGABYTE);
    const folders = new Set(tarball.contents.map((name) => name.split('/')[0]));
    expect([...folders].sort()).toEqual([
      ...['CHANGELOG.md', 'CMakeLists.txt', 'LICENSE', 'README.md', 'SECURITY.md', 'cmake'],
      ...['docs', 'examples', 'lib', 'package.json', 'prebuilds', 'scripts', 'src'],
    ]);
    expect(tarball.contents.filter((name) => name.startsWith('scripts/'))).toEqual([
      'scripts/build.mjs',
      'scripts/install.mjs',
      'scripts/lib/native-tools.mjs',
    ]);
    const binary = `prebuilds/${process.platform}-${process.arch}/rollgate.`;
    expect(tarball.contents.filter((name) => name.endsWith('.node'))).toEqual([
      expect.stringContaining(binary),
    ]);
  });

  test('installs, and builds nothing', () => {
    expect(installed).toMatchObject({ code: 0 });
    expect(fs.existsSync(path.join(rollgate, 'build'))).toBe(false);
    const names = fs.readdirSync(path.join(installed.app, 'node_modules'));
    const expected = [...tarballs.DEPENDENCIES, 'rollgate'].sort();
    expect(names.filter((name) => !name.startsWith('.'))).toEqual(expected);
  });

  test('installs its binary, whatever the addon of the application is', async () => {
    const script = path.join(rollgate, 'scripts/install.mjs');
    for (const name of ['ROLLGATE_ADDON', 'ROLLGATE_PREBUILD']) {
      const env = { PATH, [name]: path.join(installed.app, 'none') };
      expect(await runNode([script], { cwd: installed.app, env })).toMatchObject({ code: 0 });
    }
  });

  test('names a build in it that does not load, and removes it by the command of the message', async () => {
    const build = path.join(rollgate, 'build/Release');
    fs.mkdirSync(build, { recursive: true });
    fs.writeFileSync(path.join(build, 'rollgate.node'), 'text');
    const limits = '{ interval: 1000, maxInInterval: 1 }';
    const message = await run(`
      process.on('warning', ({ detail }) => console.log(JSON.stringify(detail)));
      require('rollgate')(${limits})('a');
    `);
    expect(message).toContain(`\n- ${rollgate}: build/Release/rollgate.node: `);
    const script = path.join(rollgate, 'scripts/install.mjs');
    expect(message).toContain(`run: node "${script}"`);
    await runNode([script], { cwd: installed.app, env: { PATH } });
    expect(await run(`console.log(require('rollgate')(${limits})('a'));`)).toBe(0);
  });

  test('loads no more than a limiter in memory takes', async () => {
    const loaded = await run(`
      require('rollgate');
      console.log(JSON.stringify(Object.keys(require.cache)));
    `);
    expect(loaded.length).toBeLessThanOrEqual(MOST_MODULES);
    const others = /[/\\](redis|kv|remote|middleware|shared|wait)[/\\]/;
    expect(loaded.filter((file) => others.test(file))).toEqual([]);
  });
});

describeHere('without a binary for this machine', () => {
  /** npm's setting for a folder with Node's headers, wherever the build found them. */
  async function withHeaders() {
    const program = `
      import { findNodeHeaders } from './scripts/build.mjs';
      console.log(findNodeHeaders());
    `;
    const { stdout } = await runProgram(program, { type: 'module' });
    const folder = emptyFolder();
    fs.mkdirSync(path.join(folder, 'include'));
    fs.symlinkSync(stdout.trim(), path.join(folder, 'include/node'));
    return { npm_config_nodedir: folder };
  }

  /** The compiler of this machine without its optimizations, which take most of its time. */
  function quickCompiler() {
    const file = path.join(emptyFolder(), 'c++');
    const compiler = process.env.CXX || 'c++';
    fs.writeFileSync(file, `#!/bin/sh\nexec ${compiler} "$@" -O0 -fno-lto\n`, { mode: 0o755 });
    return file;
  }

  const RUNS_AS_WASM = 'rollgate: it runs as WebAssembly here';

  /** npm prints what a script has printed if it fails, or if it is asked to. */
  const SHOWN = { npm_config_foreground_scripts: 'true' };

  test('runs as WebAssembly where it cannot be built, and says so', async () => {
    const PATH = pathWithoutTools();
    const env = { ...(await withHeaders()), ...SHOWN };
    const { code, stdout, stderr, app } = await install(sources, { PATH, env });
    const printed = stdout + stderr;
    expect({ code, printed }).toMatchObject({ code: 0 });
    for (const words of ['no prebuilt binary loads here', 'a C++20 compiler', RUNS_AS_WASM]) {
      expect(printed).toContain(words);
    }
    const program = `
      const codes = [];
      process.on('warning', ({ code }) => codes.push(code));
      const { rateLimit } = require('rollgate');
      const express = require(${JSON.stringify(path.join(MODULES, 'express'))});
      const app = express();
      app.get('/', rateLimit({ limit: 2 }), (_req, res) => res.end('ok'));
      app.get('/other', rateLimit({ limit: 1 }), (_req, res) => res.end('ok'));
      const server = app.listen(0, '127.0.0.1', async () => {
        const url = 'http://127.0.0.1:' + server.address().port;
        const statuses = [];
        for (const place of ['/', '/', '/', '/other', '/other']) statuses.push((await fetch(url + place)).status);
        server.close();
        server.closeAllConnections();
        console.log(JSON.stringify({ statuses, codes }));
      });
    `;
    const used = await runNode(['--eval', program], { cwd: app, env: { PATH } });
    expect(JSON.parse(used.stdout)).toEqual({
      statuses: [200, 200, 429, 200, 429],
      codes: ['ROLLGATE_WASM'],
    });
  });

  const RUNTIME = `(${process.platform}-${process.arch}, Node ${process.versions.node})`;

  test.each([
    [{ npm_config_build_from_source: 'true' }],
    [{ ROLLGATE_BINDING: 'native' }, RUNTIME, 'rollgate: No native build was found'],
  ])('is not installed without the addon with %j, and names what to install', async (...row) => {
    const [asked, ...more] = row;
    const env = { ...(await withHeaders()), ...asked };
    const { code, stderr } = await install(sources, { PATH: pathWithoutTools(), env });
    expect(code).not.toBe(0);
    expect(stderr).not.toContain(RUNS_AS_WASM);
    for (const words of [...more, 'a C++20 compiler', 'CMake 3.18 or newer']) {
      expect(stderr).toContain(words);
    }
    expect(stderr).toMatch(/apt-get install -y --no-install-recommends g\+\+ cmake make/);
  });

  test('is built, without hiredis too, and says on use what it lacks', async () => {
    const { code, stderr, app } = await install(sources, {
      PATH: process.env.PATH,
      env: { ...(await withHeaders()), CXX: quickCompiler(), PKG_CONFIG_LIBDIR: '/nowhere' },
    });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const program = `
      const RateLimiter = require('rollgate');
      const limits = { interval: 60_000, maxInInterval: 1 };
      const limiter = RateLimiter({ ...limits, clock: () => 0 });
      console.log(limiter('a'), limiter('a'));
      try {
        RateLimiter({ ...limits, redis: 'redis://127.0.0.1', namespace: 'n' });
      } catch (error) {
        console.log(error.code, error.message);
      }
    `;
    const { stdout } = await runNode(['--eval', program], { cwd: app });
    expect(stdout).toMatch(/^0 60000\nERR_ROLLGATE_UNSUPPORTED .*install hiredis/);
    const build = fs.readdirSync(path.join(app, 'node_modules/rollgate/build'));
    expect(build).toContain('Release');
  });
});
