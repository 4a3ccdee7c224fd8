// Installs the packed package in an empty folder with npm, and runs programs with it:
//   node scripts/try-package.mjs [--tarball=FILE or folder] [--binding=native|wasm]
// Needs nothing of the clone but test/runtimes, so it runs on every Node that the package supports.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { npm } from './lib/npm-folder.mjs';
import { tarballAt } from './lib/tarball.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Programs of test/runtimes/alone.mjs; each fails if a limiter decides otherwise. */
const PROGRAMS = ['loading', 'memory', 'wait'];

const { values } = parseArgs({
  options: {
    tarball: { type: 'string', default: root },
    binding: { type: 'string' },
  },
});

const env = { ...process.env, ...(values.binding && { ROLLGATE_BINDING: values.binding }) };

function run(program, app) {
  const options = { cwd: app, env, encoding: 'utf8', timeout: 120_000 };
  const { status, stdout, stderr } = spawnSync(process.execPath, ['alone.mjs', program], options);
  const passed = status === 0 && /^result: works$/m.test(stdout);
  console.log(`${passed ? 'passed' : 'FAILED'}  ${program}${passed ? '' : `\n${stdout}${stderr}`}`);
  return passed;
}

function tryPackage(app) {
  const tarball = tarballAt(resolve(values.tarball));
  writeFileSync(join(app, 'package.json'), '{ "private": true }');
  npm(['install', '--no-audit', '--no-fund', tarball], { cwd: app, env });
  copyFileSync(join(root, 'test/runtimes/alone.mjs'), join(app, 'alone.mjs'));
  const failed = PROGRAMS.filter((program) => !run(program, app));
  const where = `${process.platform}-${process.arch}, Node ${process.versions.node}`;
  console.log(`${tarball} on ${where}: ${failed.length} failed`);
  if (failed.length > 0) process.exitCode = 1;
}

const app = realpathSync(mkdtempSync(join(os.tmpdir(), 'rollgate app-')));
try {
  tryPackage(app);
} catch (error) {
  console.error(`try-package: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(app, { recursive: true, force: true });
}
