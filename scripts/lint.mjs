// Checks format, JavaScript, Lua, layers, headers, merges, workflows and changed C++: npm run lint [-- --tidy];
// npm run format repairs the format. --tidy runs clang-tidy on all C++, which takes minutes.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, root, treeOf } from './build.mjs';
import { assembledScript, embedScripts, SCRIPTS, scriptsAreCurrent } from './embed-scripts.mjs';
import { changedFiles } from './lib/changed-files.mjs';
import { filesBelow } from './lib/files.mjs';
import { workflowFindings } from './lib/workflow-lint.mjs';

const { values } = parseArgs({ options: { fix: { type: 'boolean' }, tidy: { type: 'boolean' } } });

function run(command, args, { input } = {}) {
  const stdio = [input === undefined ? 'inherit' : 'pipe', 'inherit', 'inherit'];
  const { error, status } = spawnSync(command, args, { cwd: root, stdio, input });
  if (error) complainOf(command)(error);
  return status === 0;
}

/** For a command that could not be run: prints the reason; the exit code is 1. */
function complainOf(command) {
  return ({ message }) => {
    console.error(`${command}: ${message}; node scripts/setup.mjs --for=lint installs it`);
    return [1];
  };
}

function clangFormat() {
  const files = ['src', 'test', 'bench'].flatMap((folder) => filesBelow(folder, /\.(cc|h)$/));
  return (
    files.length === 0 ||
    run('clang-format', [...(values.fix ? ['-i'] : ['--dry-run', '--Werror']), ...files])
  );
}

function biome() {
  return run(process.execPath, [
    'node_modules/@biomejs/biome/bin/biome',
    'check',
    ...(values.fix ? ['--write'] : []),
  ]);
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

function layers() {
  return run(process.execPath, ['scripts/check-layers.mjs']);
}

function headers() {
  return run(process.execPath, ['scripts/check-headers.mjs']);
}

/** Finds markers of merge conflicts in files that no other tool reads. */
function merges() {
  const markers = ['grep', '-nE', '^(<{7}|>{7}) '];
  const { status, stdout } = spawnSync('git', markers, { cwd: root, encoding: 'utf8' });
  if (status !== 0) return true; // none, or no repository
  console.error(`left of a conflict:\n${stdout}`);
  return false;
}

async function workflows() {
  const findings = await workflowFindings();
  if (findings.length > 0) console.error(findings.join('\n'));
  return findings.length === 0;
}

/** Those of src/wasm are compiled for another target, with warnings as errors. */
const sourcesToTidy = () =>
  filesBelow('src', /\.cc$/).filter((file) => !file.startsWith('src/wasm/'));

/** The sources for clang-tidy: the changed ones, and for a changed header one that includes it. */
function changedSources() {
  const sources = sourcesToTidy();
  const texts = new Map(sources.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
  const changed = changedFiles('src').flatMap((file) => {
    if (texts.has(file)) return file;
    const include = `#include "${file.slice('src/'.length)}"`;
    return sources.find((source) => texts.get(source).includes(include)) ?? [];
  });
  return [...new Set(changed)];
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
  const next = async () => {
    for (let file = files.pop(); file !== undefined; file = files.pop()) {
      const stdio = ['ignore', 'inherit', 'ignore']; // findings; how many more were not shown
      const child = spawn('clang-tidy', [...flags, file], { cwd: root, stdio });
      const [code] = await once(child, 'close').catch(complainOf('clang-tidy'));
      passed &&= code === 0;
    }
  };
  await Promise.all(os.cpus().map(next));
  return passed;
}

const checks = {
  'clang-format': clangFormat,
  biome,
  luacheck,
  scripts,
  layers,
  headers,
  merges,
  workflows,
  'clang-tidy': clangTidy,
};
const failed = [];
for (const [name, check] of Object.entries(checks)) {
  if (!(await check())) failed.push(name);
}
console.log(
  failed.length
    ? `lint: ${failed.join(', ')} failed`
    : `lint: ${Object.keys(checks).join(', ')} passed`,
);
process.exitCode = failed.length ? 1 : 0;
