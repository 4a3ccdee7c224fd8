// Runs the steps of the set-up, each with its output in a log file.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../build.mjs';

/** Runs one step; its output, in build/logs/<name>.log, is shown only if the step fails. */
export function step(title, name, action) {
  console.log(`setup: ${title}`);
  mkdirSync(join(root, 'build/logs'), { recursive: true });
  const file = join(root, 'build/logs', `${name}.log`);
  const log = openSync(file, 'w');
  try {
    action(log);
  } catch (error) {
    console.error(readFileSync(file, 'utf8').split('\n').slice(-200).join('\n'));
    throw new Error(`${title}: failed (${error.message}); the whole log is in ${file}`);
  } finally {
    closeSync(log);
  }
}

export function run(command, args, log, options = {}) {
  const { error, status } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', log, log],
    ...options,
  });
  if (error || status !== 0) throw new Error(error?.message ?? `${command} ended with ${status}`);
}
