// Runs steps of the set-up and of cross-builds, each with its output in a log file.
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../build.mjs';
import { must } from './commands.mjs';

/** Calls `action(log)`; gives what it printed to build/logs/<name>.log. If it fails, the error has the end of that. */
export function logged(name, action) {
  mkdirSync(join(root, 'build/logs'), { recursive: true });
  const file = join(root, 'build/logs', `${name}.log`);
  const log = openSync(file, 'w');
  try {
    action(log);
    return readFileSync(file, 'utf8');
  } catch ({ message }) {
    const end = readFileSync(file, 'utf8').split('\n').slice(-200).join('\n');
    throw new Error(`failed (${message}); the whole log is in ${file}\n${end}`);
  } finally {
    closeSync(log);
  }
}

/** Runs one step of the set-up. */
export function step(title, name, action) {
  console.log(`setup: ${title}`);
  try {
    logged(name, action);
  } catch ({ message }) {
    throw new Error(`${title}: ${message}`);
  }
}

/** Runs a command of a step. */
export function run(command, args, log, options = {}) {
  must(command, args, { cwd: root, stdio: ['ignore', log, log], ...options });
}
