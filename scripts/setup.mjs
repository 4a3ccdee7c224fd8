// Gets a machine ready for npm start, test, bench or lint: installs and builds what is missing.
//   node scripts/setup.mjs [--for=start|test|soak|bench|lint|cross|arm64|fuzz]
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, isCurrent, onPath, root } from './build.mjs';
import { buildTools, header, nativeTools } from './lib/native-tools.mjs';

const chromium = () =>
  process.env.CHROME_PATH
    ? existsSync(process.env.CHROME_PATH)
    : onPath('chromium', 'google-chrome', 'google-chrome-stable', 'chromium-browser');

// System packages, beside those of lib/native-tools.mjs. found() must be cheap: it runs before every
// start. A `service` is what Debian would start at once and at every boot.
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
const clang = { what: 'clang', apt: 'clang', found: () => onPath('clang++') };
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
    return (
      folder &&
      existsSync(folder) &&
      readdirSync(folder).some((name) => name.startsWith('libclang_rt.fuzzer'))
    );
  },
};
const crossCompiler = {
  what: 'a cross compiler for arm64 (aarch64-linux-gnu-g++)',
  apt: 'crossbuild-essential-arm64',
  found: () => onPath('aarch64-linux-gnu-g++'),
};
const qemu = {
  what: 'QEMU for programs of arm64 (qemu-aarch64-static)',
  apt: 'qemu-user-static',
  found: () => onPath('qemu-aarch64-static'),
};
const gtestSources = {
  what: 'the sources of GoogleTest',
  apt: 'googletest',
  found: () => existsSync('/usr/src/googletest'),
};
const luacheck = { what: 'luacheck', apt: 'lua-check', found: () => onPath('luacheck') };
const redis = {
  what: 'Redis (redis-server on PATH)',
  apt: 'redis-server',
  service: 'redis-server',
  found: () => onPath('redis-server'),
};

const purposes = {
  start: { system: nativeTools, parts: ['addon'] },
  test: { system: [...nativeTools, gtest, browser, redis], parts: ['addon', 'tests'] },
  soak: { system: [...nativeTools, redis], parts: ['addon'] },
  bench: { system: [...nativeTools, benchmark, redis], parts: ['addon', 'bench'] },
  lint: { system: [...nativeTools, clangFormat, clangTidy, luacheck], parts: [] },
  cross: { system: [...nativeTools, crossCompiler], parts: [] },
  arm64: { system: [...nativeTools, crossCompiler, qemu, gtestSources, redis], parts: [] },
  fuzz: { system: [clang, fuzzer, ...buildTools], parts: [] },
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

/** What stands before a command to run it as root; undefined where that is not allowed. */
function rootPrefix() {
  if (process.getuid() === 0) return [];
  const allowed = onPath('sudo') && spawnSync('sudo', ['-n', 'true']).status === 0;
  return allowed ? ['sudo', '-n'] : undefined;
}

function aptInstall(needs, prefix) {
  const names = needs.map((need) => need.apt).join(', ');
  step(`installing ${names} with apt-get`, 'apt', (log) => {
    const asRoot = (...command) => {
      const [name, ...args] = [...prefix, ...command];
      run(name, args, log);
    };
    const apt = (...args) => {
      const settings = ['DEBIAN_FRONTEND=noninteractive', 'apt-get', '-o'];
      asRoot('env', ...settings, 'DPkg::Lock::Timeout=300', ...args);
    };
    const install = () =>
      apt('install', '-y', '--no-install-recommends', ...needs.map((need) => need.apt));
    const lists = '/var/lib/apt/lists';
    const listed =
      existsSync(lists) && readdirSync(lists).some((name) => name.includes('_Packages'));
    try {
      if (!listed) throw new Error('apt-get knows no packages yet');
      install();
    } catch {
      apt('update'); // the lists may be old
      install();
    }
    for (const { service } of needs.filter((need) => need.service)) {
      asRoot('update-rc.d', service, 'disable');
      asRoot('invoke-rc.d', service, 'stop');
    }
  });
}

function installSystemPackages(system) {
  const apt = onPath('apt-get');
  const missing = system.filter((need) => !need.found() && (apt || !need.cmakeFetches));
  if (missing.length === 0) return;
  const needed = missing.filter((need) => !need.without);
  const wanted = missing.filter((need) => need.without);
  const prefix = apt && rootPrefix();
  if (needed.length > 0 && !apt) {
    const names = missing.map((need) => need.what).join(', ');
    throw new Error(`please install ${names}, then run this again`);
  }
  if (needed.length > 0 && !prefix) {
    const names = missing.map((need) => need.apt).join(' ');
    throw new Error(
      'some system packages are missing. Please run this as root, then try again:\n' +
        `  apt-get update && apt-get install -y --no-install-recommends ${names}`,
    );
  }
  if (needed.length > 0) aptInstall(needed, prefix);
  if (wanted.length > 0 && prefix) {
    try {
      aptInstall(wanted, prefix);
    } catch (error) {
      console.warn(`setup: ${error.message}`);
    }
  }
  for (const { what, without, found } of wanted) {
    if (!found()) console.log(`setup: no ${what}, so ${without}`);
  }
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
