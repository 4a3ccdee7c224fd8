// What scripts/setup.mjs says where it cannot install packages.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { emptyFolder, removeFolders, runNode } = require('../support/tarball');

const ROOT = path.join(__dirname, '../..');
afterAll(removeFolders);

describe('scripts/setup.mjs, where it cannot install packages', () => {
  /** Runs the script with nothing on PATH but these scripts; one of no text fails. */
  function setUp(purpose, scripts) {
    const PATH = emptyFolder();
    for (const [name, text] of Object.entries(scripts)) {
      fs.writeFileSync(path.join(PATH, name), text || '#!/bin/false\n', { mode: 0o755 });
    }
    const script = path.join(ROOT, 'scripts/setup.mjs');
    return runNode([script, `--for=${purpose}`], { cwd: PATH, env: { PATH } });
  }

  const env = '#!/bin/sh\nexec /usr/bin/env "$@"\n';
  const sudo = '#!/bin/sh\n[ "$2" = true ] || { shift; exec "$@"; }\n';
  const onAlpine =
    /run this as root, then try again:\n {2}apk add g\+\+ cmake make .*pkgconf .*redis openssl\n$/;
  const unknown = /please install this, then try again:\n {2}- a C\+\+20 compiler .*\n {2}- CMake/;
  const failed = /setup: installing debootstrap with apt-get: failed/;

  test.each([
    ['prints the apk command with all that is missing on Alpine', 'test', { apk: '' }, onAlpine],
    ['names what is missing without a package manager that it knows', 'start', {}, unknown],
    ['names what failed with apt', 'systems', { 'apt-get': '', env, sudo }, failed],
    ['names its purposes', 'lunch', {}, /^setup: --for takes start, .*, not lunch\n$/],
  ])('%s', async (_what, purpose, scripts, message) => {
    const { code, stderr } = await setUp(purpose, scripts);
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
  });
});
