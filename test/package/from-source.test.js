// The packed package where no binary in it fits: built from source, or told what that takes.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const {
  emptyFolder,
  install,
  packRollgate,
  pathWithoutTools,
  removeFolders,
  runNode,
} = require('../support/tarball');

const ROOT = path.join(__dirname, '../..');

const describeHere = process.platform === 'win32' ? describe.skip : describe;

describeHere('the packed package, without a binary for this machine', () => {
  let tarball;

  beforeAll(async () => {
    tarball = await packRollgate({ prebuilt: false });
  });

  afterAll(removeFolders);

  /** npm's setting for a folder with Node's headers, wherever the build found them. */
  async function withHeaders() {
    const program = `
      import { findNodeHeaders } from './scripts/build.mjs';
      console.log(findNodeHeaders());
    `;
    const { stdout } = await runNode(['--input-type=module', '--eval', program], { cwd: ROOT });
    const folder = emptyFolder();
    fs.mkdirSync(path.join(folder, 'include'));
    fs.symlinkSync(stdout.trim(), path.join(folder, 'include/node'));
    return { npm_config_nodedir: folder };
  }

  test('names what to install where it cannot be built', async () => {
    const { code, stderr } = await install(tarball, {
      PATH: pathWithoutTools(),
      env: await withHeaders(),
    });
    expect(code).not.toBe(0);
    expect(stderr).toContain(
      `(${process.platform}-${process.arch}, Node ${process.versions.node})`,
    );
    expect(stderr).toMatch(/- .*rollgate: No native build was found/);
    expect(stderr).toContain('a C++20 compiler');
    expect(stderr).toContain('CMake 3.18 or newer');
    expect(stderr).toMatch(/apt-get install -y --no-install-recommends g\+\+ cmake make/);
  });

  test('says how to go on when npm was not let to run its script', async () => {
    const options = { PATH: pathWithoutTools(), flags: ['--ignore-scripts'] };
    const { code, app } = await install(tarball, options);
    expect(code).toBe(0);
    const program =
      "try { require('rollgate')({ interval: 1, maxInInterval: 1 }) } catch (e) { console.error(e.code, e.message) }";
    const { stderr } = await runNode(['--eval', program], { cwd: app });
    expect(stderr).toMatch(/^ERR_ROLLGATE_ADDON /);
    const script = path.join(app, 'node_modules/rollgate/scripts/install.mjs');
    expect(stderr).toContain(`node ${script}`);
  });

  test('is built, without hiredis too, and says on use what it lacks', async () => {
    const { code, stderr, app } = await install(tarball, {
      PATH: process.env.PATH,
      env: { ...(await withHeaders()), PKG_CONFIG_LIBDIR: '/nowhere' },
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
    expect(fs.readdirSync(path.join(app, 'node_modules/rollgate/build'))).toEqual(
      expect.arrayContaining(['Release']),
    );
  }, 300_000);
});
