// Fails if a file includes or requires a file of a layer that is not below its own (see ARCHITECTURE.md).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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

for (const path of filesBelow('lib', /\.(js|mjs|cjs)$/)) {
  if (path === 'lib/native.js') continue;
  for (const [place, line] of linesOf(path)) {
    if (/['"](node-gyp-build|[^'"]*\.node)['"]/.test(line)) {
      findings.push(`${place}: only lib/native.js may load the addon`);
    }
  }
}

for (const finding of findings) console.error(finding);
process.exitCode = findings.length ? 1 : 0;
