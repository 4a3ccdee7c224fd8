// The check that a prebuilt binary runs on other machines than this one, on the addon of this build
// and on what it must refuse.
'use strict';

const path = require('node:path');
const { symbols } = require('node-api-headers');
const { runNode } = require('../support/tarball');

const ROOT = path.join(__dirname, '../..');
const ADDON = path.join(ROOT, 'build/Release/rollgate.node');
const DECENT = {
  exports: ['napi_register_module_v1'],
  imports: ['napi_create_function', 'uv_close', 'memcpy'],
  libraries: ['libc.so.6', 'libgcc_s.so.1'],
  glibc: '2.17',
};

/** Calls one of the check's functions, which are a module of the build's. */
async function check(name, ...args) {
  const program = `
    import * as portability from './scripts/lib/portability.mjs';
    const [name, ...args] = JSON.parse(process.argv[1]);
    console.log(JSON.stringify(portability[name](...args)));
  `;
  const given = JSON.stringify([name, ...args]);
  const { stdout, stderr } = await runNode(['--input-type=module', '--eval', program, given], {
    cwd: ROOT,
  });
  if (stderr) throw new Error(stderr);
  return JSON.parse(stdout);
}

const testOnLinux = process.platform === 'linux' ? test : test.skip;

/** Whether a binary of this system may be asked to run on old ones: newer headers ask for more. */
function buildsForOldSystems() {
  const { glibcVersionRuntime = '2.0' } = process.report.getReport().header;
  return Number(glibcVersionRuntime.split('.')[1]) <= 36;
}

testOnLinux(
  'the addon shows what Node looks for alone, and needs no libstdc++ beside it',
  async () => {
    const needs = await check('needsOf', ADDON);
    expect(needs.exports.sort()).toEqual([
      'napi_register_module_v1',
      'node_api_module_get_api_version_v1',
    ]);
    expect(needs.imports).toContain('napi_create_function');
    expect(needs.libraries.filter((name) => name.includes('stdc++'))).toEqual([]);
    if (buildsForOldSystems()) expect(await check('findingsIn', needs, symbols)).toEqual([]);
  },
);

test.each([
  ['nothing in a decent one', {}, []],
  [
    'a symbol of hiredis that others would see',
    { exports: [...DECENT.exports, 'redisConnect'] },
    ['it exports redisConnect'],
  ],
  [
    'a library of the build machine',
    { libraries: ['libhiredis.so.1.1.0', 'libc.so.6'] },
    ['it needs libhiredis.so.1.1.0'],
  ],
  ['a newer glibc', { glibc: '2.34' }, ['it needs glibc 2.34, not 2.17']],
  ['a glibc that is older, though not by its letters', { glibc: '2.4' }, []],
  [
    'a newer Node-API',
    { imports: ['node_api_create_buffer_from_arraybuffer'] },
    ['it calls node_api_create_buffer_from_arraybuffer, which Node-API 8 has not got'],
  ],
  ['no entry', { exports: [] }, ['it does not export napi_register_module_v1']],
])('finds %s', async (_, change, expected) => {
  expect(await check('findingsIn', { ...DECENT, ...change }, symbols)).toEqual(expected);
});
