// Builds the binary for the package, and checks that it can run on other systems: npm run prebuilds.
//   node scripts/prebuild.mjs [--into=<folder>]   prebuilds/<platform>-<arch>/rollgate[.<libc>].node
//     --unchecked    for this machine only, without the check
//     --arch=arm64   the binary for arm64, cross-built on Debian
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { addonOf, build, root, treeOf } from './build.mjs';
import { main, must } from './lib/commands.mjs';
import { buildArm64, toolPrefix } from './lib/cross/arm64.mjs';
import { findingsIn, needsOf } from './lib/portability.mjs';

/** The tag by which node-gyp-build distinguishes them. */
function libcTag() {
  if (process.platform !== 'linux') return '';
  return existsSync('/etc/alpine-release') ? '.musl' : '.glibc';
}

function buildWithRedis() {
  const addon = addonOf('release');
  const hasRedis = () => {
    const program = `process.exitCode = require(${JSON.stringify(addon)}).createRedisClient ? 0 : 1`;
    return spawnSync(process.execPath, ['-e', program]).status === 0;
  };
  build(['addon']);
  if (!hasRedis()) {
    rmSync(treeOf('release'), { recursive: true }); // hiredis may have come later
    build(['addon']);
  }
  if (hasRedis()) return addon;
  throw new Error('the addon has no native Redis client: hiredis was not found (see above)');
}

function crossBuild(arch) {
  if (process.platform !== 'linux' || arch !== 'arm64') {
    throw new Error(`--arch takes ${process.arch}, or arm64 on Linux, not ${arch}`);
  }
  const setup = [join(root, 'scripts/setup.mjs'), '--for=prebuild-arm64'];
  must(process.execPath, setup, { stdio: 'inherit' });
  buildArm64(['addon']);
  return addonOf('arm64');
}

function strip(file, tool) {
  if (process.platform === 'win32') return;
  const args = process.platform === 'darwin' ? ['-x', file] : ['--strip-unneeded', file];
  must(tool, args);
}

function make(folder, { arch, unchecked }) {
  const crossed = arch !== process.arch;
  const addon = crossed ? crossBuild(arch) : buildWithRedis();
  const tools = crossed ? toolPrefix : '';
  const file = join(folder, `${process.platform}-${arch}`, `rollgate${libcTag()}.node`);
  mkdirSync(dirname(file), { recursive: true });
  copyFileSync(addon, file);
  strip(file, `${tools}strip`);
  const needs = needsOf(file, tools);
  const symbols = createRequire(import.meta.url)('node-api-headers').symbols;
  const findings = unchecked ? [] : findingsIn(needs, symbols);
  if (findings.length > 0) {
    rmSync(file);
    throw new Error(`the binary would not run everywhere:\n  ${findings.join('\n  ')}`);
  }
  describe(file, needs);
}

function describe(file, needs) {
  const glibc = needs?.glibc ? `, needs glibc ${needs.glibc}` : '';
  const libraries = needs ? ` and ${needs.libraries.join(', ')}` : '';
  const size = Math.round(statSync(file).size / 1000);
  console.log(`prebuild: ${relative(root, file)}, ${size} kB${glibc}${libraries}`);
}

const { values } = parseArgs({
  options: {
    into: { type: 'string', default: join(root, 'prebuilds') },
    unchecked: { type: 'boolean' },
    arch: { type: 'string', default: process.arch },
  },
});
await main('prebuild', () => make(resolve(values.into), values));
