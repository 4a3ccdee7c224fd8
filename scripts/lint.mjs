// Checks format, JavaScript, Lua and layers: npm run lint [-- --tidy]; npm run format repairs.
// --tidy adds clang-tidy, which takes a while.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { build, root, treeOf } from './build.mjs';
import { filesBelow } from './lib/files.mjs';

const { values } = parseArgs({ options: { fix: { type: 'boolean' }, tidy: { type: 'boolean' } } });

function run(command, args, { input } = {}) {
  const stdio = [input === undefined ? 'inherit' : 'pipe', 'inherit', 'inherit'];
  const { error, status } = spawnSync(command, args, { cwd: root, stdio, input });
  if (error)
    console.error(`${command}: ${error.message}; node scripts/setup.mjs --for=lint installs it`);
  return status === 0;
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

/** The scripts as they run, for most of them stand in a frame. */
function luacheck() {
  const { SCRIPTS } = createRequire(import.meta.url)('../lib/redis/script');
  const failed = Object.entries(SCRIPTS).filter(([algorithm, { source }]) => {
    const args = ['--quiet', '--filename', `${algorithm}, in its frame`, '-'];
    return !run('luacheck', args, { input: source });
  });
  return failed.length === 0;
}

function layers() {
  return run(process.execPath, ['scripts/check-layers.mjs']);
}

function clangTidy() {
  build(['addon']); // for its compile_commands.json
  const files = filesBelow('src', /\.cc$/);
  // The commands were written for another compiler perhaps: flags that clang does not know are no finding.
  const flags = [
    '--quiet',
    '-p',
    treeOf('release'),
    '--extra-arg=-Wno-unknown-warning-option',
    '--extra-arg=-Wno-ignored-optimization-argument',
  ];
  return files.length === 0 || run('clang-tidy', [...flags, ...files]);
}

const checks = {
  'clang-format': clangFormat,
  biome,
  luacheck,
  layers,
  ...(values.tidy && { 'clang-tidy': clangTidy }),
};
const failed = Object.keys(checks).filter((name) => !checks[name]());
console.log(
  failed.length
    ? `lint: ${failed.join(', ')} failed`
    : `lint: ${Object.keys(checks).join(', ')} passed`,
);
process.exitCode = failed.length ? 1 : 0;
