// Setting up a clone on a system whose packages the script cannot install: it names the command.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { emptyFolder, removeFolders, runNode } = require('../support/tarball');

const SETUP = path.join(__dirname, '../../scripts/setup.mjs');

afterAll(removeFolders);

/** Runs the script with nothing on PATH but these commands, none of which works, and these scripts. */
function setUp(purpose, commands, scripts = {}) {
  const PATH = emptyFolder();
  const failing = Object.fromEntries(commands.map((name) => [name, '#!/bin/false\n']));
  for (const [name, text] of Object.entries({ ...failing, ...scripts })) {
    fs.writeFileSync(path.join(PATH, name), text, { mode: 0o755 });
  }
  return runNode([SETUP, `--for=${purpose}`], { cwd: PATH, env: { PATH } });
}

test('on Alpine, prints the apk command with all that is missing', async () => {
  const { code, stderr } = await setUp('test', ['apk']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /run this as root, then try again:\n {2}apk add g\+\+ cmake make .*pkgconf .*chromium redis\n$/,
  );
});

test('without a package manager that it knows, names what is missing', async () => {
  const { code, stderr } = await setUp('start', []);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /please install this, then try again:\n {2}- a C\+\+20 compiler .*\n {2}- CMake/,
  );
});

test('with apt that cannot update its lists, tries to install and names what failed', async () => {
  const { code, stderr } = await setUp('systems', ['apt-get'], {
    env: '#!/bin/sh\nexec /usr/bin/env "$@"\n',
    sudo: '#!/bin/sh\n[ "$2" = true ] || { shift; exec "$@"; }\n',
  });
  expect(code).toBe(1);
  expect(stderr).toMatch(/setup: installing debootstrap with apt-get \(of unknown size\): failed/);
});

test('names the purposes it has when given another', async () => {
  const { code, stderr } = await setUp('lunch', []);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^setup: --for takes start, .*, not lunch\n$/);
});
