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
      if (!rule.outside.test(name))
        findings.push(`${place}: src/${layer} must not include <${name}>`);
    }
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

const { imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const libFiles = filesBelow('lib', /\.(js|mjs)$/);

/** What a file requires or imports, in any form, with the lines. */
function* specifiersOf(path) {
  const text = readFileSync(join(root, path), 'utf8').replace(
    /\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g,
    (comment) => comment.replace(/[^\n]/g, ''),
  );
  for (const form of [
    /\b(?:require|import)\s*\(\s*(['"`])(.*?)\1/g,
    /\b(?:from|import)\s*(['"])(.*?)\1/g,
  ]) {
    for (const { 2: specifier, index } of text.matchAll(form)) {
      yield [`${path}:${text.slice(0, index).split('\n').length}`, specifier];
    }
  }
}

/** Built files, which may be missing, and require nothing. */
const built = /^lib\/native\/wasm\/(rollgate\.wasm|embedded\.js)$/;

/** The files that a specifier can mean, whatever the platform: none for packages and modules of Node. */
function targetsOf(specifier, path, place) {
  if (specifier.startsWith('#') && imports[specifier] !== undefined) {
    return Object.values(imports[specifier]).map(posix.normalize);
  }
  if (/^(node:)?[\w@][\w@/.-]*$/.test(specifier)) return [];
  const target = posix.join(posix.dirname(path), specifier.replace(/[?].*/, ''));
  if (built.test(target) || built.test(`${target}.js`) || target === 'package.json') return [];
  const found = [target, `${target}.js`, `${target}/index.js`].find((file) =>
    libFiles.includes(file),
  );
  if (found === undefined) findings.push(`${place}: '${specifier}' is no file of lib`);
  return found === undefined ? [] : [found];
}

/** The files of lib that each one requires. */
const required = new Map(libFiles.map((path) => [path, []]));

for (const path of libFiles.filter((file) => !built.test(file))) {
  if (levelOf(path) === -1) findings.push(`${path}: is in no layer; see scripts/check-layers.mjs`);
  for (const [place, specifier] of specifiersOf(path)) {
    if (path !== 'lib/native/addon.js' && /^node-gyp-build|\.node$/.test(specifier)) {
      findings.push(`${place}: only lib/native/addon.js may load the addon`);
    }
    for (const target of targetsOf(specifier, path, place)) {
      required.get(path).push(target);
      if (levelOf(target) >= levelOf(path)) continue;
      const [[from], [to]] = [libLayers[levelOf(path)], libLayers[levelOf(target)]];
      findings.push(`${place}: ${from} must not require ${target}, which is in ${to}, above it`);
    }
  }
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
