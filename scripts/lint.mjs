// Checks format, JavaScript, Lua, layers, headers, merges, workflows and changed C++: npm run lint [-- --tidy];
// npm run format repairs the format. --tidy runs clang-tidy on all C++, which takes minutes.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, root, treeOf } from './build.mjs';
import { assembledScript, embedScripts, SCRIPTS, scriptsAreCurrent } from './embed-scripts.mjs';
import { endOf, forEach } from './lib/commands.mjs';
import { filesBelow } from './lib/files.mjs';
import { workflowFindings } from './lib/workflow-lint.mjs';

const { values } = parseArgs({ options: { fix: { type: 'boolean' }, tidy: { type: 'boolean' } } });

function run(command, args, { input } = {}) {
  const stdio = [input === undefined ? 'inherit' : 'pipe', 'inherit', 'inherit'];
  const { error, status } = spawnSync(command, args, { cwd: root, stdio, input });
  if (error) throw error;
  return status === 0;
}

function clangFormat() {
  const files = ['src', 'test', 'bench'].flatMap((folder) => filesBelow(folder, /\.(cc|h)$/));
  const mode = values.fix ? ['-i'] : ['--dry-run', '--Werror'];
  return run('clang-format', [...mode, ...files]);
}

function biome() {
  const mode = values.fix ? ['--write'] : [];
  return run(process.execPath, ['node_modules/@biomejs/biome/bin/biome', 'check', ...mode]);
}

/** The complete scripts, because most sources are parts for a frame. */
function luacheck() {
  const failed = SCRIPTS.filter((name) => {
    const args = ['--quiet', '--filename', `${name}, whole`, '-'];
    return !run('luacheck', args, { input: assembledScript(name) });
  });
  return failed.length === 0;
}

/** The module that is generated from them. */
function scripts() {
  if (values.fix) embedScripts();
  return scriptsAreCurrent();
}

/** The lines that git prints; none if it fails or there is no repository. */
function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.split('\n').filter(Boolean) : [];
}

function areNone(findings) {
  for (const finding of findings) console.error(finding);
  return findings.length === 0;
}

/** Finds markers of merge conflicts in files that no other tool reads. */
const merges = () => areNone(git('grep', '-nE', '^(<{7}|>{7}) '));

/** Those of src/wasm are compiled for another target, with warnings as errors. */
const sourcesToTidy = () =>
  filesBelow('src', /\.cc$/).filter((file) => !file.startsWith('src/wasm/'));

/** The files below src that were changed or added since the branch left main; on main itself, by its last commit. */
function changedFiles() {
  const [head] = git('rev-parse', 'HEAD');
  const forks = ['origin/main', 'main'].flatMap((name) => git('merge-base', 'HEAD', name));
  const base = forks.find((fork) => fork !== head) ?? git('rev-parse', 'HEAD~1')[0] ?? 'HEAD';
  const added = git('ls-files', '--others', '--exclude-standard', '--', 'src');
  return [...git('diff', '--name-only', base, '--', 'src'), ...added];
}

/** The sources for clang-tidy: the changed ones, and for a changed header one that includes it. */
function changedSources() {
  const sources = sourcesToTidy();
  const changed = changedFiles().map((file) => {
    if (!file.endsWith('.h')) return sources.find((source) => source === file);
    const include = `#include "${file.slice('src/'.length)}"`;
    return sources.find((source) => readFileSync(join(root, source), 'utf8').includes(include));
  });
  return [...new Set(changed)].filter(Boolean);
}

async function clangTidy() {
  const files = values.tidy ? sourcesToTidy() : changedSources();
  if (files.length === 0) return true;
  build(['addon']); // for its compile_commands.json
  // The commands may be for another compiler, so flags that clang does not know are ignored.
  const flags = [
    '--quiet',
    '-p',
    treeOf('release'),
    '--extra-arg=-Wno-unknown-warning-option',
    '--extra-arg=-Wno-ignored-optimization-argument',
  ];
  let passed = true;
  const stdio = ['ignore', 'inherit', 'ignore']; // findings; how many more were not shown
  await forEach(files, os.cpus().length, async (file) => {
    const end = await endOf('clang-tidy', [...flags, file], { cwd: root, stdio });
    passed &&= end === 0;
  });
  return passed;
}

const checks = {
  'clang-format': clangFormat,
  biome,
  luacheck,
  scripts,
  layers: () => run(process.execPath, ['scripts/check-layers.mjs']),
  headers: () => run(process.execPath, ['scripts/check-headers.mjs']),
  merges,
  workflows: async () => areNone(await workflowFindings()),
  'clang-tidy': clangTidy,
};
const failed = [];
for (const [name, check] of Object.entries(checks)) {
  try {
    if (!(await check())) failed.push(name);
  } catch ({ message }) {
    console.error(
      `${name}: ${message}; node scripts/setup.mjs --for=lint installs what is missing`,
    );
    failed.push(name);
  }
}
const [names, verdict] = failed.length ? [failed, 'failed'] : [Object.keys(checks), 'passed'];
console.log(`lint: ${names.join(', ')} ${verdict}`);
process.exitCode = failed.length ? 1 : 0;
