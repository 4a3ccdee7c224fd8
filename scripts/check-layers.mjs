// Fails if a file includes or requires a file of a layer that is not below its own (see ARCHITECTURE.md).
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { root } from './build.mjs';
import { filesBelow } from './lib/files.mjs';

/** For each layer: the layers whose headers it may include, and the headers from outside the project. */
const standardHeader = /^([a-z_]+|[a-z]*intrin\.h)$/; // or the compiler's own intrinsics
const noNode = /^(?!(napi|node_api|js_native_api|node|v8|uv)(\.h|-)).*$/;
const layers = {
  core: { uses: ['core'], outside: standardHeader },
  memory: { uses: ['core', 'memory'], outside: noNode },
  shared: { uses: ['core', 'shared'], outside: noNode },
  redis: { uses: ['core', 'redis'], outside: noNode },
  wasm: { uses: ['core', 'memory', 'wasm'], outside: noNode },
  binding: { uses: ['core', 'memory', 'shared', 'redis', 'binding'], outside: /./ },
};

const read = (path) => readFileSync(join(root, path), 'utf8');
const findings = [];

for (const path of filesBelow('src', /\.(cc|h)$/)) {
  const layer = path.split('/')[1];
  const { uses, outside } = layers[layer] ?? { uses: [], outside: /^$/ };
  for (const [, bracket, name] of read(path).matchAll(/^\s*#\s*include\s*([<"])([^>"]+)[>"]/gm)) {
    const isOwn = bracket === '"' && !name.includes('..') && uses.includes(name.split('/')[0]);
    if (isOwn || (bracket === '<' && outside.test(name))) continue;
    findings.push(
      `${path}: src/${layer} must not include ${name}; it may use ${uses.join(', ') || 'nothing'}`,
    );
  }
}

/** The layers of lib, from the top; the first pattern that fits a file is its layer. A file requires no layer above. */
const libLayers = [
  ['entries', /^lib\/[^/]+$/],
  ['adapters', /^lib\/adapters\/(?!middleware\/)/],
  ['adapters/middleware', /^lib\/adapters\/middleware\//],
  ['concurrency', /^lib\/concurrency\//],
  ['limiter', /^lib\/limiter\//],
  ['stores', /^lib\/stores\/[^/]+(?<!\/(local|holds)\.js)$/],
  ['stores/redis, kv, shared', /^lib\/stores\/(redis|kv|shared)\//],
  ['stores/remote', /^lib\/stores\/remote\//],
  ['stores/local.js, holds.js', /^lib\/stores\/(local|holds)\.js$/],
  ['native', /^lib\/native\//],
  ['options', /^lib\/options\//],
  ['base', /^lib\/base\//],
];
const levelOf = (path) => libLayers.findIndex(([, pattern]) => pattern.test(path));

const { imports } = JSON.parse(read('package.json'));
const libFiles = filesBelow('lib', /\.(js|mjs)$/);

/** Built files, which may be missing, and require nothing. */
const built = /^lib\/native\/wasm\/(rollgate\.wasm|embedded\.js)$/;

/** The files that a specifier can mean, whatever the platform: none for packages and modules of Node. */
function targetsOf(specifier, path) {
  if (specifier.startsWith('#') && imports[specifier] !== undefined) {
    return Object.values(imports[specifier]).map(posix.normalize);
  }
  if (/^(node:)?[\w@][\w@/.-]*$/.test(specifier)) return [];
  const target = posix.join(posix.dirname(path), specifier.replace(/[?].*/, ''));
  const names = [target, `${target}.js`, `${target}/index.js`];
  if (target === 'package.json' || names.some((name) => built.test(name))) return [];
  const found = names.filter((name) => libFiles.includes(name));
  if (found.length === 0) findings.push(`${path}: '${specifier}' is no file of lib`);
  return found;
}

for (const path of libFiles.filter((file) => !built.test(file))) {
  if (levelOf(path) === -1) findings.push(`${path}: is in no layer; see scripts/check-layers.mjs`);
  for (const { fileName: specifier } of ts.preProcessFile(read(path), true, true).importedFiles) {
    if (path !== 'lib/native/addon.js' && /^node-gyp-build|\.node$/.test(specifier)) {
      findings.push(`${path}: only lib/native/addon.js may load the addon`);
    }
    for (const target of targetsOf(specifier, path)) {
      if (levelOf(target) >= levelOf(path)) continue;
      const [[from], [to]] = [libLayers[levelOf(path)], libLayers[levelOf(target)]];
      findings.push(`${path}: ${from} must not require ${target}, which is in ${to}, above it`);
    }
  }
}

for (const finding of findings) console.error(finding);
process.exitCode = findings.length ? 1 : 0;
