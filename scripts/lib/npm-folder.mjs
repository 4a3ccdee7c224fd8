// Folders with npm packages that only some test scripts need: other versions of Node, Bun, Deno, bundlers.
// They are kept between runs, outside the project: in $ROLLGATE_CACHE, by default ~/.cache/rollgate.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join, resolve } from 'node:path';

const baseCache = process.env.XDG_CACHE_HOME || join(os.homedir(), '.cache');

/** The folder of all files that the scripts keep between runs. */
export const cacheFolder = resolve(process.env.ROLLGATE_CACHE || join(baseCache, 'rollgate'));

/** Runs npm with the Node that runs this script; gives its output, and throws with it if npm fails. */
export function npm(args, options = {}) {
  const program = process.env.npm_execpath; // set when npm started this script
  const isFile = program?.endsWith('.js');
  const { error, status, stdout, stderr } = spawnSync(
    isFile ? process.execPath : 'npm',
    isFile ? [program, ...args] : args,
    { encoding: 'utf8', shell: !isFile && process.platform === 'win32', ...options },
  );
  if (error || status !== 0) {
    const output = [stderr, stdout].filter(Boolean).join('\n');
    throw new Error(`npm ${args[0]} ended with ${status}: ${error?.message ?? output}`);
  }
  return stdout;
}

/**
 * The folder whose node_modules holds these packages, installed now if it is missing or out of date.
 *
 * @param {string} name of the folder
 * @param {Record<string, string>} dependencies exact versions by name, as in package.json
 * @param {string[]} [settings] more arguments for npm
 */
export function npmFolder(name, dependencies, settings = []) {
  const folder = join(cacheFolder, 'npm', name);
  const manifest = JSON.stringify({ private: true, dependencies }, null, 2);
  const complete = join(folder, 'installed.json'); // written last: an interrupted install is repeated
  if (existsSync(complete) && readFileSync(complete, 'utf8') === manifest) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), manifest);
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
  npm(['install', ...quiet, ...settings], { cwd: folder });
  writeFileSync(complete, manifest);
  return folder;
}
