// Builds the native parts with CMake; ships in the package, so it imports only Node's own modules.
//   node scripts/build.mjs [--tests] [--debug]
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);

/** The parts: CMake's option and target, and the source folders in addition to src. */
const parts = {
  addon: { option: 'ROLLGATE_ADDON', target: 'addon', folders: [] },
  tests: { option: 'ROLLGATE_TESTS', target: 'tests', folders: ['test'] },
  bench: { option: 'ROLLGATE_BENCH', target: 'benchmarks', folders: ['bench'] },
  fuzz: { option: 'ROLLGATE_FUZZ', target: 'fuzzers', folders: ['test'] },
};

/** The variants of a build, with what they have in place of the usual. */
const variants = {
  release: { buildType: 'Release' },
  debug: {},
  asan: { sanitize: 'address,undefined' },
  tsan: { sanitize: 'thread' },
  fuzz: { sanitize: 'address,undefined', compiler: 'clang++' },
  coverage: { coverage: 'ON' },
  arm64: { buildType: 'Release' },
  windows: {},
};

/** The folder of CMake's own files of a variant: executables and ctest's list are in it. */
export const treeOf = (variant) => join(root, 'build/cmake', variant);

/** The value of ROLLGATE_PREBUILD for the addon of this variant. */
export const prebuildOf = (variant) =>
  variant === 'release' ? root : join(root, 'build', variant);

/** The full path of the first of these commands that is on PATH. */
export function onPath(...names) {
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  for (const name of names) {
    for (const folder of folders) {
      const file = join(folder, name + suffix);
      try {
        accessSync(file, constants.X_OK);
        if (statSync(file).isFile()) return file;
      } catch {} // not in this folder
    }
  }
}

/** The time of the newest change of these files and folders that can affect a build, in ms. */
export function newestChange(paths) {
  let newest = 0;
  for (const path of paths) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat) continue;
    newest = Math.max(newest, stat.mtimeMs); // a folder's time shows removed files
    if (stat.isDirectory()) {
      const inside = readdirSync(path, { withFileTypes: true }).filter(
        (entry) => entry.isDirectory() || /\.(cc|h|lua|cmake|txt)$/.test(entry.name),
      );
      newest = Math.max(newest, newestChange(inside.map((entry) => join(path, entry.name))));
    }
  }
  return newest;
}

/** The file of the addon of this variant. */
export const addonOf = (variant) => join(prebuildOf(variant), 'build/Release/rollgate.node');

// Its time is the start of the last successful build of the part.
const stampOf = (variant, part) => join(treeOf(variant), `${part}.built`);

/** Whether this part was built from the current files; by their times. */
export function isCurrent(part, variant = 'release') {
  const stamp = statSync(stampOf(variant, part), { throwIfNoEntry: false });
  if (!stamp || (part === 'addon' && !existsSync(addonOf(variant)))) return false;
  const inputs = ['CMakeLists.txt', 'cmake', 'src', ...parts[part].folders];
  return stamp.mtimeMs > newestChange(inputs.map((input) => join(root, input)));
}

/** Makes the next build of the part complete, even if its sources have not changed. */
export function makeStale(part, variant = 'release') {
  rmSync(stampOf(variant, part), { force: true });
}

/** The addon's native Redis client: "hiredis <version>", or "none: " and the reason. */
export function nativeRedisOf(variant = 'release') {
  const file = join(treeOf(variant), 'native-redis.txt');
  return existsSync(file) ? readFileSync(file, 'utf8') : 'none: the addon was not built here';
}

/** The folder of an installed npm package, for development or for npm start. */
function packageFolder(name) {
  const paths = [root, join(root, 'examples/start')];
  return dirname(require.resolve(`${name}/package.json`, { paths }));
}

/** The first of the places that has this file. */
function firstWith(file, places) {
  for (const place of places) {
    try {
      const folder = place();
      if (folder && existsSync(join(folder, file))) return folder;
    } catch {} // the package is not installed
  }
}

/** The folder of Node's headers, without a download: npm's nodedir, next to node, or the package. */
export function findNodeHeaders() {
  return firstWith('node_api.h', [
    () => process.env.npm_config_nodedir && join(process.env.npm_config_nodedir, 'include/node'),
    () => join(dirname(process.execPath), '../include/node'),
    () => join(packageFolder('node-api-headers'), 'include'), // the only one on Windows
  ]);
}

/** The folder of the headers of node-addon-api. */
export function findAddonApi() {
  return firstWith('napi.h', [() => packageFolder('node-addon-api')]);
}

/** CMake's arguments for the folders of the addon's headers. */
function headerArguments() {
  const folders = [
    ['NODE_INCLUDE_DIR', findNodeHeaders(), "Node's headers", 'node-api-headers'],
    ['NODE_ADDON_API_DIR', findAddonApi(), 'the headers of node-addon-api', 'node-addon-api'],
  ];
  return folders.map(([variable, folder, what, name]) => {
    if (folder) return `-D${variable}=${folder}`;
    throw new Error(`${what} were not found; \`npm ci\` installs the package ${name}`);
  });
}

function run(command, args, output) {
  const { error, status } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', output, output],
  });
  if (error) throw new Error(`${command}: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args[0]} failed`);
}

function configure(tree, args, output) {
  const cached = existsSync(join(tree, 'CMakeCache.txt'));
  const ninja = process.platform !== 'win32' && onPath('ninja'); // on Windows, it would not use MSVC
  const first = cached ? [] : ['-DROLLGATE_ADDON=OFF', ...(ninja ? ['-G', 'Ninja'] : [])];
  try {
    run('cmake', ['-S', root, '-B', tree, ...first, ...args], output);
  } catch (error) {
    if (!cached) throw error;
    rmSync(tree, { recursive: true }); // of another place, compiler or generator
    configure(tree, args, output);
  }
}

/**
 * Builds the wanted parts that are not current. Throws if a tool fails.
 * output: for the tools' output: 'inherit' or a file descriptor.
 * settings: more arguments for CMake, which override those of the variant.
 * target: builds only this one, also if the parts are current; does not make them current.
 */
export function build(wanted, options = {}) {
  const { variant = 'release', output = 'inherit', settings = [], target } = options;
  const stale = wanted.filter((part) => !isCurrent(part, variant));
  if (stale.length === 0 && !target) return;
  const started = new Date();
  const tree = treeOf(variant);
  const { buildType = 'Debug', sanitize = '', coverage = 'OFF', compiler } = variants[variant];
  // A part stays on once it was built: without tests, ctest's list would be empty.
  const args = [
    `-DCMAKE_BUILD_TYPE=${buildType}`,
    `-DROLLGATE_SANITIZE=${sanitize}`,
    `-DROLLGATE_COVERAGE=${coverage}`,
    ...(compiler ? [`-DCMAKE_CXX_COMPILER=${onPath(compiler)}`] : []),
    ...stale.map((part) => `-D${parts[part].option}=ON`),
  ];
  if (stale.includes('addon')) {
    args.push(`-DROLLGATE_ADDON_OUTPUT_DIR=${dirname(addonOf(variant))}`);
    args.push(...headerArguments());
  }
  configure(tree, [...args, ...settings], output);
  const targets = target ? [target] : stale.map((part) => parts[part].target);
  const parallel = String(os.availableParallelism?.() ?? os.cpus().length);
  run(
    'cmake',
    ['--build', tree, '--config', buildType, '--parallel', parallel, '--target', ...targets],
    output,
  );
  if (target) return;
  for (const part of stale) {
    writeFileSync(stampOf(variant, part), '');
    utimesSync(stampOf(variant, part), started, started);
  }
}

function main() {
  const options = { tests: { type: 'boolean' }, debug: { type: 'boolean' } };
  const { tests, debug } = parseArgs({ options }).values;
  build(tests ? ['addon', 'tests'] : ['addon'], { variant: debug ? 'debug' : 'release' });
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  try {
    main();
  } catch (error) {
    console.error(`build: ${error.message}`);
    process.exitCode = 1;
  }
}
