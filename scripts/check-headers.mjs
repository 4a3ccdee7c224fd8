// Fails if a header does not compile alone with clang, which builds nothing else, or gets its integer types from another
// header.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findAddonApi, findNodeHeaders, root } from './build.mjs';
import { forEach } from './lib/commands.mjs';
import { filesBelow } from './lib/files.mjs';

/** Older standard libraries include these headers everywhere, newer ones do not. */
const DIRECT_INCLUDES = [
  { header: '<cstdint>', use: /\bstd::u?int(_fast|_least)?(8|16|32|64|max|ptr)_t\b/ },
  { header: '<cstddef>', use: /\bstd::(size_t|ptrdiff_t|byte|max_align_t)\b/ },
];

const headers = filesBelow('src', /\.h$/);

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

const FLAGS = ['-std=c++20', '-fsyntax-only', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-Isrc'];
const SYSTEM = [findNodeHeaders(), findAddonApi()].filter(Boolean);

async function compileAlone(path) {
  const folders = SYSTEM.flatMap((folder) => ['-isystem', folder]);
  const args = [...FLAGS, ...folders, '-include', path, '-x', 'c++', '/dev/null'];
  await promisify(execFile)('clang++', args, { cwd: root }).catch(({ message }) =>
    findings.push(`${path}: does not compile alone:\n${message}`),
  );
}

await forEach(headers, os.cpus().length, compileAlone);

for (const finding of findings) console.error(finding);
process.exitCode = findings.length ? 1 : 0;
