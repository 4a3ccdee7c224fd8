// Prepares a machine for npm start, test, bench or lint: installs and builds what is missing.
//   node scripts/setup.mjs [--for=start|test|...], one of the purposes below
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, isCurrent, makeStale, nativeRedisOf, onPath, root } from './build.mjs';
import { CLANG_VERSIONS, installedClang, wasmIsCurrent } from './build-wasm.mjs';
import { main } from './lib/commands.mjs';
import { WINE } from './lib/cross/windows.mjs';
import { buildTools, everywhere, header, nativeTools } from './lib/native-tools.mjs';
import { npm } from './lib/npm.mjs';
import { run, step } from './lib/step.mjs';
import { installSystemPackages } from './lib/system-packages.mjs';

const DEVELOPMENT_NODE = 20;

// System packages in addition to lib/native-tools.mjs. found() must be cheap: it runs before every
// start. Debian starts a `service` at once and at every boot, unless that is prevented.

/** A tool that is a program on PATH, with its package by package manager. */
const program = (name, packages, more) => ({
  what: `${name} (on PATH)`,
  ...packages,
  found: () => onPath(name),
  ...more,
});

/** A library that CMake downloads where the system has none. */
const library = (what, apt, file) => ({ what, apt, found: header(file), cmakeFetches: true });

/** What is at this path once its package is installed. */
const atPath = (what, apt, path) => ({ what, apt, found: () => existsSync(path) });

const gtest = library('GoogleTest', 'libgtest-dev', 'gtest/gtest.h');
const benchmark = library('Google Benchmark', 'libbenchmark-dev', 'benchmark/benchmark.h');
const browser = {
  what: 'Chromium or Chrome (on PATH, or its path in CHROME_PATH)',
  ...everywhere('chromium'),
  found: () =>
    process.env.CHROME_PATH
      ? existsSync(process.env.CHROME_PATH)
      : onPath('chromium', 'google-chrome', 'google-chrome-stable', 'chromium-browser'),
};
const clangTools = { apk: 'clang-extra-tools', dnf: 'clang-tools-extra' };
const clangFormat = program('clang-format', { apt: 'clang-format', ...clangTools });
const clangTidy = program('clang-tidy', { apt: 'clang-tidy', ...clangTools });
const clang = program('clang++', everywhere('clang'));
const fuzzer = {
  what: "clang's libFuzzer",
  /** Named after the version of clang that the system has. */
  get apt() {
    const { stdout } = spawnSync('apt-cache', ['depends', 'clang'], { encoding: 'utf8' });
    return `libclang-rt-${/Depends: clang-(\d+)/.exec(stdout ?? '')?.[1] ?? 14}-dev`;
  },
  found: () => {
    const { stdout } = spawnSync('clang++', ['-print-runtime-dir'], { encoding: 'utf8' });
    const folder = stdout?.trim();
    const names = folder && existsSync(folder) ? readdirSync(folder) : [];
    return names.some((name) => name.startsWith('libclang_rt.fuzzer'));
  },
};
const crossCompiler = program('aarch64-linux-gnu-g++', { apt: 'crossbuild-essential-arm64' });
const qemu = program('qemu-aarch64-static', { apt: 'qemu-user-static' });
const mingw = program('x86_64-w64-mingw32-g++-posix', { apt: 'g++-mingw-w64-x86-64-posix' });
const wine = atPath('Wine (wine64)', 'wine64', WINE);
const gtestSources = atPath('the sources of GoogleTest', 'googletest', '/usr/src/googletest');
const spin = program('spin', { apt: 'spin', brew: 'spin' });
/** Spin writes C and calls this preprocessor, whatever the compiler of the addon is. */
const gcc = program('gcc', { apt: ['gcc', 'libc6-dev'] });
const luacheck = program('luacheck', { apt: 'lua-check' });
const debootstrap = program('debootstrap', { apt: 'debootstrap' });
/** On other systems, the tests of the module are left out. */
const wasmTools = {
  what: "clang's library for WebAssembly, wasi-libc and binaryen",
  get apt() {
    const candidates = CLANG_VERSIONS.map((version) => `libc++-${version}-dev-wasm32`);
    const { stdout } = spawnSync('apt-cache', ['policy', ...candidates], { encoding: 'utf8' });
    const version =
      /libc\+\+-(\d+)-dev-wasm32:\n.*\n {2}Candidate: \d/.exec(stdout ?? '')?.[1] ?? 16;
    const parts = ['clang', 'lld'].map((name) => `${name}-${version}`);
    const libraries = ['libc++', 'libc++abi'].map((name) => `${name}-${version}-dev-wasm32`);
    const builtins = `libclang-rt-${version}-dev-wasm32`;
    return [...parts, ...libraries, builtins, 'wasi-libc', 'binaryen'];
  },
  found: () => installedClang() !== undefined,
  without: 'the WebAssembly module is neither built nor tested',
};
const redisNames = { apt: 'redis-server', apk: 'redis', dnf: 'redis', brew: 'redis' };
const redis = program('redis-server', redisNames, { service: 'redis-server' });
const openssl = program('openssl', { ...everywhere('openssl'), brew: 'openssl' });

const base = [...nativeTools, wasmTools];
const testTools = [...base, gtest, redis, openssl];
const modelTools = [spin, gcc];
const module = ['addon', 'wasm'];

/** By purpose: the system packages, and the parts that are built. */
const purposes = {
  start: { system: nativeTools, parts: ['addon'] },
  build: { system: nativeTools, parts: ['addon'] },
  prebuilds: { system: base, parts: module },
  test: { system: testTools, parts: ['addon', 'tests', 'wasm'], variant: 'debug' },
  files: { system: testTools, parts: ['wasm'] }, // these build what else they need
  all: { system: [...testTools, browser, clang, fuzzer, ...modelTools], parts: module },
  systems: { system: [debootstrap], parts: [] },
  soak: { system: [...base, redis], parts: module },
  corpus: { system: [...base, redis], parts: module },
  hosts: { system: [...base, browser], parts: module },
  bench: { system: [...base, benchmark, redis], parts: [...module, 'bench'] },
  wasm: { system: [{ ...wasmTools, without: undefined }], parts: [] },
  lint: { system: [...nativeTools, clang, clangFormat, clangTidy, luacheck], parts: [] },
  'prebuild-arm64': { system: [...nativeTools, crossCompiler], parts: [] },
  'cross-arm64': {
    system: [...nativeTools, crossCompiler, qemu, gtestSources, redis, openssl],
    parts: [],
  },
  'cross-windows': { system: [...buildTools, mingw, wine, gtestSources], parts: [] },
  docs: { system: [], parts: [] },
  fuzz: { system: [clang, fuzzer, ...buildTools], parts: [] },
  models: { system: modelTools, parts: [] },
};

const titles = { addon: 'the native addon', tests: 'the C++ tests', bench: 'the C++ benchmarks' };

/** The npm packages that npm start needs, without those for development. */
const startFolder = join(root, 'examples/start');

const lockIn = (folder, file) => JSON.parse(readFileSync(join(folder, file))).packages;

/**
 * Whether the folder's node_modules has the packages of its package-lock.json; those for development
 * only with `dev`. npm keeps a list of installed packages.
 */
function npmPackagesAreCurrent(folder, { dev }) {
  if (!existsSync(join(folder, 'node_modules/.package-lock.json'))) return false;
  const wanted = lockIn(folder, 'package-lock.json');
  const installed = lockIn(folder, 'node_modules/.package-lock.json');
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '' || (entry.dev && !dev)) return true; // the project itself
    const there = installed[path];
    return there
      ? there.version === entry.version && there.integrity === entry.integrity
      : entry.optional;
  });
}

function installNpmPackages(folders) {
  const stale = folders.filter(({ folder, dev }) => !npmPackagesAreCurrent(folder, { dev }));
  if (stale.length === 0) return;
  step('installing npm packages', 'npm', (log) => {
    for (const { folder, dev } of stale) {
      const args = ['ci', dev ? '--include=dev' : '--omit=dev', '--no-audit', '--no-fund'];
      npm(args, { cwd: folder, stdio: ['ignore', log, log] });
    }
  });
}

/** The folders in which npm installs packages for a purpose. */
function npmFoldersFor(name) {
  const hasAll = npmPackagesAreCurrent(root, { dev: true });
  if (name !== 'start' || hasAll) return [{ folder: root, dev: true }];
  return [
    { folder: root, dev: false },
    { folder: startFolder, dev: false },
  ];
}

/** Why the addon has no native Redis client; undefined if it has one. */
function missingRedisClient(variant) {
  return /^none: (.*)/.exec(nativeRedisOf(variant))?.[1];
}

function buildNative({ parts, variant = 'release' }) {
  // The libraries for the native Redis client may have been installed since the last build.
  const reasonBefore = missingRedisClient(variant);
  if (parts.includes('addon') && reasonBefore && nativeTools.every((tool) => tool.found())) {
    makeStale('addon', variant);
  }
  const stale = parts.filter((part) => part !== 'wasm' && !isCurrent(part, variant));
  if (stale.length === 0) return;
  step(`building ${stale.map((part) => titles[part]).join(' and ')}`, 'build', (output) =>
    build(stale, { variant, output }),
  );
  const reason = missingRedisClient(variant);
  if (stale.includes('addon') && reason) {
    console.log(`setup: the addon is built without its own Redis client: ${reason}`);
  }
}

await main('setup', () => {
  const options = { for: { type: 'string', default: 'start' } };
  const name = parseArgs({ options }).values.for;
  const purpose = purposes[name];
  if (!purpose) throw new Error(`--for takes ${Object.keys(purposes).join(', ')}, not ${name}`);
  if (name !== 'start' && Number.parseInt(process.versions.node, 10) < DEVELOPMENT_NODE) {
    const needs = `development needs Node.js ${DEVELOPMENT_NODE} or newer`;
    throw new Error(`${needs}, this is ${process.version} (npm start runs with 18)`);
  }
  installSystemPackages(purpose.system);
  installNpmPackages(npmFoldersFor(name));
  buildNative(purpose);
  if (purpose.parts.includes('wasm') && installedClang() !== undefined && !wasmIsCurrent()) {
    const args = [join(root, 'scripts/build-wasm.mjs')];
    step('building the WebAssembly module', 'wasm', (log) => run(process.execPath, args, log));
  }
});
