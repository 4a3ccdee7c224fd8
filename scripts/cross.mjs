// Builds for another system, and runs the tests where this machine can: npm run cross -- arm64 [--only=jest]
// --only: the steps whose names contain this
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './build.mjs';

const TARGETS = ['arm64', 'windows', 'macos'];
const logs = join(root, 'build/logs');

function refuse(message) {
  console.error(`cross: ${message}`);
  process.exit(2);
}

/** Runs a step with its output in a file; returns whether it passed. */
function passes(target, name, step) {
  const file = join(logs, `${target}-${name}.log`);
  const log = openSync(file, 'w');
  const started = Date.now();
  let reason;
  try {
    step(log);
  } catch (error) {
    reason = error.message;
  }
  closeSync(log);
  const text = readFileSync(file, 'utf8');
  const count = /^(\[ {2}PASSED {2}\]|Tests:|result:) +(.+)/m.exec(text)?.[2] ?? '';
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  console.log(
    `${reason ? 'FAILED' : 'passed'}  ${name.padEnd(16)} ${seconds.padStart(4)} s  ${count}`,
  );
  if (reason)
    console.log(`${text.split('\n').slice(-60).join('\n')}\n${reason}; all of it: ${file}`);
  return !reason;
}

const { values, positionals } = parseArgs({
  options: { only: { type: 'string', default: '' } },
  allowPositionals: true,
});
const [target] = positionals;
if (!TARGETS.includes(target)) refuse(`takes ${TARGETS.join(', ')}, not ${target}`);
const setup = [join(root, 'scripts/setup.mjs'), `--for=cross-${target}`];
if (spawnSync(process.execPath, setup, { stdio: 'inherit' }).status !== 0) process.exit(1);

const { steps } = await import(`./lib/cross/${target}.mjs`);
const chosen = Object.entries(steps).filter(([name]) => name.includes(values.only));
if (chosen.length === 0)
  refuse(`--only takes a part of ${Object.keys(steps).join(', ')}, not ${values.only}`);
mkdirSync(logs, { recursive: true });
const failed = chosen.filter(([name, step]) => !passes(target, name, step)).length;
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
