// The packed package on a machine without compiler, CMake, hiredis and registry.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { startRedis } = require('../support/redis-server');
const {
  install,
  packRollgate,
  pathWithoutTools,
  removeFolders,
  runNode,
} = require('../support/tarball');

const MEGABYTE = 1_000_000;

/** What `require` may load, so that it stays quick: a limiter in memory, and node-gyp-build. */
const MOST_MODULES = 30;

// On Windows PATH cannot be emptied by links, and npm is found elsewhere.
const describeHere = process.platform === 'win32' ? describe.skip : describe;

describeHere('the packed package, with a binary for this machine', () => {
  let tarball;
  let installed;
  let PATH;

  const run = async (source, type = 'commonjs', env = {}) => {
    const args = [`--input-type=${type}`, '--eval', source];
    const options = { cwd: installed.app, env: { PATH, ...env } };
    const { code, stdout, stderr } = await runNode(args, options);
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout);
  };

  beforeAll(async () => {
    PATH = pathWithoutTools();
    tarball = await packRollgate({ prebuilt: true });
    installed = await install(tarball, { PATH });
  }, 240_000);

  afterAll(removeFolders);

  test('is below three megabytes', () => {
    expect(fs.statSync(tarball.file).size).toBeLessThan(3 * MEGABYTE);
  });

  test('holds what it needs, sources included, and nothing of tests or builds', () => {
    const folders = new Set(tarball.contents.map((name) => name.split('/')[0]));
    expect([...folders].sort()).toEqual([
      'ARCHITECTURE.md',
      'CHANGELOG.md',
      'CMakeLists.txt',
      'CONTRIBUTING.md',
      'LICENSE',
      'README.md',
      'cmake',
      'docs',
      'examples',
      'lib',
      'package.json',
      'prebuilds',
      'scripts',
      'src',
    ]);
    expect(tarball.contents.filter((name) => name.startsWith('scripts/'))).toEqual([
      'scripts/build.mjs',
      'scripts/install.mjs',
      'scripts/lib/native-tools.mjs',
    ]);
    const binaries = tarball.contents.filter((name) => name.endsWith('.node'));
    expect(binaries).toEqual([
      expect.stringContaining(`prebuilds/${process.platform}-${process.arch}/rollgate.`),
    ]);
  });

  test('installs, and builds nothing', () => {
    expect(installed).toMatchObject({ code: 0 });
    const rollgate = path.join(installed.app, 'node_modules/rollgate');
    expect(fs.existsSync(path.join(rollgate, 'build'))).toBe(false);
    const installedNames = fs.readdirSync(path.join(installed.app, 'node_modules'));
    expect(installedNames.filter((name) => !name.startsWith('.'))).toEqual([
      'node-addon-api',
      'node-gyp-build',
      'rollgate',
    ]);
  });

  test('works required', async () => {
    const found = await run(`
      const RateLimiter = require('rollgate');
      const limiter = RateLimiter({ interval: 60_000, maxInInterval: 2, clock: () => 0 });
      console.log(JSON.stringify([
        limiter('a'), limiter('a'), limiter('a'),
        typeof RateLimiter.rateLimit({ limit: 5 }),
        RateLimiter.ipKeyGenerator('2001:db8::1'),
        typeof require('rollgate/fastify'), typeof require('rollgate/store'),
      ]));
    `);
    expect(found).toEqual([0, 0, 60_000, 'function', '2001:db8::/56', 'function', 'function']);
  });

  test('works imported', async () => {
    const found = await run(
      `
      import RateLimiter, { InMemoryRateLimiter, rateLimit } from 'rollgate';
      import fastify from 'rollgate/fastify';
      import Store from 'rollgate/store';
      const limiter = new InMemoryRateLimiter({ interval: 60_000, maxInInterval: 1, clock: () => 0 });
      console.log(JSON.stringify([
        limiter('a'), limiter('a'), limiter instanceof RateLimiter,
        typeof rateLimit(), typeof fastify, typeof Store,
      ]));
    `,
      'module',
    );
    expect(found).toEqual([0, 60_000, true, 'function', 'function', 'function']);
  });

  test('has the native Redis client', async () => {
    const server = await startRedis();
    const found = await run(
      `
      import RateLimiter from 'rollgate';
      const limiter = RateLimiter({
        redis: process.env.REDIS, namespace: 'packed', interval: 600_000, maxInInterval: 2,
      });
      const waits = [await limiter('a'), await limiter('a'), await limiter('a')];
      console.log(JSON.stringify(waits.map((wait) => wait > 0)));
    `,
      'module',
      { REDIS: server.url },
    );
    expect(found).toEqual([false, false, true]);
  });

  test('installs its binary, whatever the addon of the application is', async () => {
    const script = path.join(installed.app, 'node_modules/rollgate/scripts/install.mjs');
    for (const name of ['ROLLGATE_ADDON', 'ROLLGATE_PREBUILD']) {
      const env = { PATH, [name]: path.join(installed.app, 'none') };
      expect(await runNode([script], { cwd: installed.app, env })).toMatchObject({ code: 0 });
    }
  });

  test('names a build in it that does not load, and removes it by the command of the message', async () => {
    const rollgate = path.join(installed.app, 'node_modules/rollgate');
    const build = path.join(rollgate, 'build/Release');
    fs.mkdirSync(build, { recursive: true });
    fs.writeFileSync(path.join(build, 'rollgate.node'), 'text');
    const limits = '{ interval: 1000, maxInInterval: 1 }';
    const message = await run(`
      try { require('rollgate')(${limits}); } catch ({ message }) { console.log(JSON.stringify(message)); }
    `);
    expect(message).toContain(`\n- ${rollgate}: build/Release/rollgate.node: `);
    const script = path.join(rollgate, 'scripts/install.mjs');
    expect(message).toContain(`run 'node ${script}'`);
    await runNode([script], { cwd: installed.app, env: { PATH } });
    expect(await run(`console.log(require('rollgate')(${limits})('a'));`)).toBe(0);
  });

  test('loads no more than a limiter in memory takes', async () => {
    const loaded = await run(`
      require('rollgate');
      console.log(JSON.stringify(Object.keys(require.cache)));
    `);
    expect(loaded.length).toBeLessThanOrEqual(MOST_MODULES);
    expect(
      loaded.filter((file) => /[/\\](redis|kv|remote|middleware|shared|wait)[/\\]/.test(file)),
    ).toEqual([]);
  });
});
