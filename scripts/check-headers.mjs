// Fails if a header does not compile alone with g++ or clang, or gets its integer types from another header.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { findAddonApi, findNodeHeaders, root } from './build.mjs';
import { filesBelow } from './lib/files.mjs';

const COMPILERS = ['g++', 'clang++'];

/** Older standard libraries include these headers everywhere, newer ones do not. */
const DIRECT_INCLUDES = [
  { header: '<cstdint>', use: /\bstd::u?int(_fast|_least)?(8|16|32|64|max|ptr)_t\b/ },
  { header: '<cstddef>', use: /\bstd::(size_t|ptrdiff_t|byte|max_align_t)\b/ },
];

const headers = filesBelow('src', /\.h$/);

/** Every build with g++ compiles such a header alone: it is the first that its source includes. */
function isFirstInItsSource(header) {
  const source = join(root, header.replace(/h$/, 'cc'));
  if (!existsSync(source)) return false;
  const [, first] = /#include [<"](.*)[>"]/.exec(readFileSync(source, 'utf8')) ?? [];
  return `src/${first}` === header;
}

const findings = [];

for (const path of [...headers, ...filesBelow('test', /\.h$/)]) {
  const text = readFileSync(join(root, path), 'utf8');
  for (const { header, use } of DIRECT_INCLUDES) {
    const [name] = use.exec(text) ?? [];
    if (name && !text.includes(`#include ${header}`)) {
      findings.push(`${path}: uses ${name} and does not include ${header}`);
    }
  }
}

async function compileAlone(compiler, path) {
  const flags = ['-std=c++20', '-fsyntax-only', '-Wall', '-Wextra', '-Wpedantic', '-Werror'];
  const system = [findNodeHeaders(), findAddonApi()].filter(Boolean);
  const folders = ['-Isrc', ...system.flatMap((folder) => ['-isystem', folder])];
  const args = [...flags, ...folders, '-include', path, '-x', 'c++', '/dev/null'];
  const child = spawn(compiler, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const [code] = await once(child, 'close').catch(({ message }) => {
    output = `${message}; node scripts/setup.mjs --for=lint installs it`;
    return [1];
  });
  if (code !== 0) findings.push(`${path}: does not compile alone with ${compiler}:\n${output}`);
}

const waiting = COMPILERS.flatMap((compiler) =>
  headers
    .filter((path) => compiler !== 'g++' || !isFirstInItsSource(path))
    .map((path) => [compiler, path]),
);
async function compileNext() {
  for (let next = waiting.pop(); next; next = waiting.pop()) await compileAlone(...next);
}
await Promise.all(os.cpus().map(compileNext));

for (const finding of findings) console.error(finding);
process.exitCode = findings.length ? 1 : 0;
