// Installs the packed package in an empty folder with npm, and runs programs with it:
//   node scripts/try-package.mjs [--tarball=FILE or folder] [--binding=native|wasm]
// Needs nothing of the clone but test/runtimes, so it runs on every Node that the package supports.
import { copyFileSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './build.mjs';
import { runCases } from './lib/cases.mjs';
import { main, must } from './lib/commands.mjs';
import { npm } from './lib/npm.mjs';
import { tarballAt } from './lib/tarball.mjs';

/** Programs of test/runtimes/alone.mjs; each fails if a limiter decides otherwise. */
const PROGRAMS = ['loading', 'memory', 'wait'];

const { values } = parseArgs({
  options: {
    tarball: { type: 'string', default: root },
    binding: { type: 'string' },
  },
});

const env = { ...process.env, ...(values.binding && { ROLLGATE_BINDING: values.binding }) };

async function tryPackage(app) {
  const tarball = tarballAt(resolve(values.tarball));
  writeFileSync(join(app, 'package.json'), '{ "private": true }');
  npm(['install', '--no-audit', '--no-fund', tarball], { cwd: app, env });
  copyFileSync(join(root, 'test/runtimes/alone.mjs'), join(app, 'alone.mjs'));
  console.log(`${tarball} on ${process.platform}-${process.arch}, Node ${process.versions.node}`);
  const cases = PROGRAMS.map((name) => ({ name }));
  await runCases(cases, 1, ({ name }) => {
    const options = { cwd: app, env, timeout: 120_000 };
    const output = must(process.execPath, ['alone.mjs', name], options);
    if (!/^result: works$/m.test(output)) throw new Error(output);
  });
}

const app = realpathSync(mkdtempSync(join(os.tmpdir(), 'rollgate app-')));
await main('try-package', () => tryPackage(app));
rmSync(app, { recursive: true, force: true });
