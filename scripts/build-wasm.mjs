// Builds the core as WebAssembly, for hosts that the addon does not fit: npm run build:wasm.
//   lib/native/wasm/rollgate.wasm   the module
//   lib/native/wasm/embedded.js     the same as text, for hosts that read no files
// The same compiler makes the same bytes from the same sources.
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { newestChange, onPath, root } from './build.mjs';
import { endOf, forEach, main } from './lib/commands.mjs';
import { filesBelow } from './lib/files.mjs';

/** The versions of clang that can build it, the preferred ones first: named as in Debian's packages. */
export const CLANG_VERSIONS = [19, 18, 17, 16];

const libraryOf = (version) => `/usr/lib/llvm-${version}`;
const headersOf = (version) => `${libraryOf(version)}/include/wasm32-wasi/c++/v1`;
const builtinsOf = (version) =>
  `${libraryOf(version)}/lib/clang/${version}/lib/wasi/libclang_rt.builtins-wasm32.a`;
const systemLibraries = '/usr/lib/wasm32-wasi';

/** The version of clang that is installed with all that it needs. */
export function installedClang() {
  if (!onPath('wasm-opt') || !existsSync(join(systemLibraries, 'libc.a'))) return undefined;
  return CLANG_VERSIONS.find(
    (version) =>
      onPath(`clang++-${version}`) &&
      onPath(`wasm-ld-${version}`) &&
      existsSync(headersOf(version)) &&
      existsSync(builtinsOf(version)),
  );
}

const MODULE = join(root, 'lib/native/wasm/rollgate.wasm');
const EMBEDDED = join(root, 'lib/native/wasm/embedded.js');
const LAYERS = ['src/core', 'src/memory', 'src/wasm'];

/** Whether the module was built from the current files; by their times. */
export function wasmIsCurrent() {
  if (!existsSync(MODULE) || !existsSync(EMBEDDED)) return false;
  const inputs = [...LAYERS, 'scripts/build-wasm.mjs'].map((input) => join(root, input));
  return statSync(EMBEDDED).mtimeMs > newestChange(inputs);
}

/** What runs in each check is compiled for speed; the rest is most of the module, and seldom runs. */
const HOT = ['table.cc', 'sub_table.cc', 'chunk.cc', 'identity.cc', 'exchange.cc'];
const HOT_IN = 'src/wasm/memory_limiter.cc';

const isHot = (source) => HOT.includes(basename(source)) || source === HOT_IN;

function compilerFlags(version, source) {
  return [
    '--target=wasm32-wasi',
    '-std=c++20',
    isHot(source) ? '-Os' : '-Oz',
    '-DNDEBUG',
    '-DROLLGATE_COMPACT',
    '-D_LIBCPP_HAS_NO_THREADS',
    '-fwasm-exceptions',
    '-fno-rtti',
    '-fvisibility=hidden',
    '-ffunction-sections',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-nostdinc++',
    ...['-isystem', headersOf(version)],
    '-Isrc', // relative, so that the folder does not matter
  ];
}

/** The stores for speed come first: the linker takes the first of several equal functions. */
function linkerFlags(version, objects) {
  const first = objects.filter((object) => object.includes('wasm-memory_limiter'));
  return [
    ...['--no-entry', '--strip-all', '--gc-sections', '-O2'],
    ...['--stack-first', '-z', 'stack-size=65536'], // so that an overflow is a trap
    ...first,
    ...objects.filter((object) => !first.includes(object)),
    ...[`-L${libraryOf(version)}/lib/wasm32-wasi`, '-lc++'],
    ...[`-L${systemLibraries}`, '-lc'],
    builtinsOf(version),
  ];
}

/** What every host of the last years has. */
const FEATURES = [
  'exception-handling',
  'bulk-memory',
  'sign-ext',
  'mutable-globals',
  'nontrapping-float-to-int',
].map((name) => `--enable-${name}`);

async function run(command, args) {
  const end = await endOf(command, args, { cwd: root });
  if (end !== 0) throw new Error(`${command} ended with ${end}`);
}

async function build() {
  const version = installedClang();
  if (version === undefined) {
    throw new Error(
      `the module needs clang ${CLANG_VERSIONS.join(', ')} with its WebAssembly library, wasi-libc and binaryen`,
    );
  }
  const tree = join(root, 'build/wasm');
  rmSync(tree, { recursive: true, force: true });
  mkdirSync(tree, { recursive: true });
  const sources = LAYERS.flatMap((layer) => filesBelow(layer, /\.cc$/));
  const objectOf = (source) => join('build/wasm', `${source.replaceAll('/', '-')}.o`);
  await forEach(sources, 2, (source) =>
    run(`clang++-${version}`, [
      ...compilerFlags(version, source),
      ...['-c', source, '-o', objectOf(source)],
    ]),
  );
  const linked = join(tree, 'linked.wasm');
  const objects = sources.map(objectOf).sort();
  await run(`wasm-ld-${version}`, [...linkerFlags(version, objects), '-o', linked]);
  await run('wasm-opt', ['-Os', ...FEATURES, linked, '-o', MODULE]);
  const text = readFileSync(MODULE).toString('base64');
  writeFileSync(
    EMBEDDED,
    `// rollgate.wasm, written by scripts/build-wasm.mjs.\n'use strict';\n\nmodule.exports = '${text}';\n`,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main('build-wasm', () => wasmIsCurrent() || build());
}
