// Fails if a file includes or requires a file of a layer that is not below its own (see ARCHITECTURE.md).
import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
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

/** The only file outside of the binding that may include uv.h. */
const eventLoop = /^src\/redis\/event_loop/;

function* linesOf(path) {
  for (const [index, line] of readFileSync(join(root, path), 'utf8').split('\n').entries()) {
    yield [`${path}:${index + 1}`, line];
  }
}

const findings = [];

for (const path of filesBelow('src', /\.(cc|h)$/)) {
  const layer = path.split('/')[1];
  const rule = layers[layer];
  if (!rule) {
    findings.push(`${path}: ${layer} is no layer; add it to scripts/check-layers.mjs`);
    continue;
  }
  for (const [place, line] of linesOf(path)) {
    const [, bracket, name] = /^\s*#\s*include\s*([<"])([^>"]+)[>"]/.exec(line) ?? [];
    if (bracket === '"') {
      if (name.includes('..') || !rule.uses.includes(name.split('/')[0])) {
        findings.push(
          `${place}: src/${layer} must not include "${name}"; it may use ${rule.uses.join(', ')}`,
        );
      }
    } else if (bracket === '<') {
      const allowed = rule.outside.test(name) || (name === 'uv.h' && eventLoop.test(path));
      if (!allowed) findings.push(`${place}: src/${layer} must not include <${name}>`);
    }
  }
}

/** The layers of lib, from the top; the first pattern that fits a file is its layer. A file requires no layer above. */
const libLayers = [
  ['entries', /^lib\/[^/]+$/],
  ['adapters', /^lib\/adapters\/(?!middleware\/)/],
  ['adapters/middleware', /^lib\/adapters\/middleware\//],
  ['limiter', /^lib\/limiter\//],
  ['stores', /^lib\/stores\/[^/]+(?<!local\.js)$/],
  ['stores/redis, kv, shared', /^lib\/stores\/(redis|kv|shared)\//],
  ['stores/remote', /^lib\/stores\/remote\//],
  ['stores/local.js', /^lib\/stores\/local\.js$/],
  ['native', /^lib\/native\//],
  ['options', /^lib\/options\//],
  ['base', /^lib\/base\//],
];
const levelOf = (path) => libLayers.findIndex(([, pattern]) => pattern.test(path));

const { imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const libFiles = filesBelow('lib', /\.(js|mjs)$/);

/** The files that a specifier can mean, whatever the platform; undefined for packages and modules of Node. */
function targetsOf(specifier, path) {
  if (specifier.startsWith('#')) return Object.values(imports[specifier]).map(posix.normalize);
  if (!specifier.startsWith('.')) return undefined;
  const target = posix.join(posix.dirname(path), specifier);
  const found = [target, `${target}.js`, `${target}/index.js`].filter((file) =>
    libFiles.includes(file),
  );
  return found.length > 0 ? found : undefined;
}

/** The files of lib that each one requires, with the line. */
const required = new Map(libFiles.map((path) => [path, []]));

for (const path of libFiles) {
  for (const [place, line] of linesOf(path)) {
    if (path !== 'lib/native/addon.js' && /['"](node-gyp-build|[^'"]*\.node)['"]/.test(line)) {
      findings.push(`${place}: only lib/native/addon.js may load the addon`);
    }
    const [, specifier] = /\b(?:require\(|from |import )'([^']+)'/.exec(line) ?? [];
    for (const target of (specifier && targetsOf(specifier, path)) ?? []) {
      required.get(path).push(target);
      if (levelOf(target) >= levelOf(path)) continue;
      const [[from], [to]] = [libLayers[levelOf(path)], libLayers[levelOf(target)]];
      findings.push(`${place}: ${from} must not require ${target}, which is in ${to}, above it`);
    }
  }
  if (levelOf(path) === -1) findings.push(`${path}: is in no layer; see scripts/check-layers.mjs`);
}

/** Adds the circles that are found from a file; files in `done` are in none. */
function findCircles(path, trail, done) {
  if (trail.includes(path)) {
    findings.push(`a circle: ${[...trail.slice(trail.indexOf(path)), path].join(' > ')}`);
  } else if (!done.has(path)) {
    for (const target of required.get(path) ?? []) findCircles(target, [...trail, path], done);
    done.add(path);
  }
}
const done = new Set();
for (const path of libFiles) findCircles(path, [], done);

for (const finding of findings) console.error(finding);
process.exitCode = findings.length ? 1 : 0;
