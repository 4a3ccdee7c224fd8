// Gets a machine ready for npm start, test, bench or lint: installs and builds what is missing.
//   node scripts/setup.mjs [--for=start|test|bench|lint]
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, isCurrent, onPath, root } from './build.mjs';

const header = (name) => () =>
  ['/usr/include', '/usr/local/include', '/opt/homebrew/include'].some((folder) =>
    existsSync(join(folder, name)),
  );
const chromium = () =>
  process.env.CHROME_PATH
    ? existsSync(process.env.CHROME_PATH)
    : onPath('chromium', 'google-chrome', 'google-chrome-stable', 'chromium-browser');

/** System packages. found() must be cheap: it runs before every start. */
const compiler = {
  what: 'a C++20 compiler',
  apt: 'g++',
  found: () => process.env.CXX || onPath('c++', 'g++', 'clang++'),
};
const cmake = { what: 'CMake 3.18 or newer', apt: 'cmake', found: () => onPath('cmake') };
const make = { what: 'make or Ninja', apt: 'make', found: () => onPath('ninja', 'make') };
const gtest = {
  what: 'GoogleTest',
  apt: 'libgtest-dev',
  found: header('gtest/gtest.h'),
  cmakeFetches: true,
};
const benchmark = {
  what: 'Google Benchmark',
  apt: 'libbenchmark-dev',
  found: header('benchmark/benchmark.h'),
  cmakeFetches: true,
};
const browser = {
  what: 'Chromium or Chrome (on PATH, or its path in CHROME_PATH)',
  apt: 'chromium',
  found: chromium,
};
const clangFormat = {
  what: 'clang-format',
  apt: 'clang-format',
  found: () => onPath('clang-format'),
};
const clangTidy = { what: 'clang-tidy', apt: 'clang-tidy', found: () => onPath('clang-tidy') };

const purposes = {
  start: { system: [compiler, cmake, make], parts: ['addon'] },
  test: { system: [compiler, cmake, make, gtest, browser], parts: ['addon', 'tests'] },
  bench: { system: [compiler, cmake, make, benchmark], parts: ['addon', 'bench'] },
  lint: { system: [clangFormat, clangTidy], parts: [] },
};

const titles = { addon: 'the native addon', tests: 'the C++ tests', bench: 'the C++ benchmarks' };

/** Runs one step with its tools' text in a log file, which is shown only if the step fails. */
function step(title, name, action) {
  console.log(`setup: ${title}`);
  mkdirSync(join(root, 'build/logs'), { recursive: true });
  const file = join(root, 'build/logs', `${name}.log`);
  const log = openSync(file, 'w');
  try {
    action(log);
  } catch (error) {
    console.error(readFileSync(file, 'utf8').split('\n').slice(-200).join('\n'));
    throw new Error(`${title}: failed (${error.message}); the whole log is in ${file}`);
  } finally {
    closeSync(log);
  }
}

function run(command, args, log, options = {}) {
  const { error, status } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', log, log],
    ...options,
  });
  if (error || status !== 0) throw new Error(error?.message ?? `${command} ended with ${status}`);
}

function installSystemPackages(system) {
  let missing = system.filter((need) => !need.found());
  if (!onPath('apt-get')) missing = missing.filter((need) => !need.cmakeFetches);
  if (missing.length === 0) return;
  const names = missing.map((need) => need.apt);
  if (!onPath('apt-get')) {
    throw new Error(
      `please install ${missing.map((need) => need.what).join(', ')}, then run this again`,
    );
  }
  const isRoot = process.getuid() === 0;
  if (!isRoot && (!onPath('sudo') || spawnSync('sudo', ['-n', 'true']).status !== 0)) {
    throw new Error(
      'some system packages are missing. Please run this as root, then try again:\n' +
        `  apt-get update && apt-get install -y --no-install-recommends ${names.join(' ')}`,
    );
  }
  step(`installing ${names.join(', ')} with apt-get`, 'apt', (log) => {
    const apt = (...args) => {
      const command = [
        'env',
        'DEBIAN_FRONTEND=noninteractive',
        'apt-get',
        '-o',
        'DPkg::Lock::Timeout=300',
        ...args,
      ];
      if (!isRoot) command.unshift('sudo', '-n');
      run(command[0], command.slice(1), log);
    };
    const install = () => apt('install', '-y', '--no-install-recommends', ...names);
    const lists = '/var/lib/apt/lists';
    if (existsSync(lists) && readdirSync(lists).some((name) => name.includes('_Packages'))) {
      try {
        return install();
      } catch {} // the lists may be old
    }
    apt('update');
    install();
  });
}

/** Whether node_modules holds what package-lock.json says; npm notes what it installed in a lock file of its own. */
function npmPackagesAreCurrent() {
  const noted = join(root, 'node_modules/.package-lock.json');
  if (!existsSync(noted)) return false;
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'))).packages;
  const installed = JSON.parse(readFileSync(noted)).packages;
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '') return true; // the project itself
    const there = installed[path];
    return there
      ? there.version === entry.version && there.integrity === entry.integrity
      : entry.optional;
  });
}

function installNpmPackages() {
  if (npmPackagesAreCurrent()) return;
  step('installing npm packages', 'npm', (log) => {
    const args = ['ci', '--include=dev', '--no-audit', '--no-fund'];
    const npm = process.env.npm_execpath; // set when npm started this script
    if (npm?.endsWith('.js')) run(process.execPath, [npm, ...args], log);
    else run('npm', args, log, { shell: process.platform === 'win32' });
  });
}

function buildNative(parts) {
  const stale = parts.filter((part) => !isCurrent(part));
  if (stale.length === 0) return;
  step(`building ${stale.map((part) => titles[part]).join(' and ')}`, 'build', (output) =>
    build(stale, { output }),
  );
}

const { values } = parseArgs({ options: { for: { type: 'string', default: 'start' } } });
const purpose = purposes[values.for];
try {
  if (!purpose)
    throw new Error(`--for takes ${Object.keys(purposes).join(', ')}, not ${values.for}`);
  installSystemPackages(purpose.system);
  installNpmPackages();
  buildNative(purpose.parts);
} catch (error) {
  console.error(`setup: ${error.message}`);
  process.exitCode = 1;
}
