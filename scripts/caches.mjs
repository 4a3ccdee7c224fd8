// The folders that the scripts keep between runs, outside of the project: in $ROLLGATE_CACHE, by default ~/.cache/rollgate.
//   npm run caches [-- --clear=NAME]   shows how large each is, or removes one
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { main, must } from './lib/commands.mjs';
import { npm } from './lib/npm.mjs';

const CACHES = {
  npm: 'packages that only some scripts need: other versions of Node, Bun, Deno, bundlers',
  programs: "servers from Debian's packages",
  sysroots: 'libraries for other processors',
  systems: 'Debian systems, and their caches of apt, npm and ccache',
  revisions: 'builds of other revisions of the project',
};

const places = process.env.XDG_CACHE_HOME || join(os.homedir(), '.cache');
const folderOfAll = resolve(process.env.ROLLGATE_CACHE || join(places, 'rollgate'));

/** The folder of a cache. */
export function cacheOf(name) {
  if (!(name in CACHES)) throw new Error(`the caches are ${Object.keys(CACHES)}, not ${name}`);
  const folder = join(folderOfAll, name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** The folder of this name in a cache. `make(folder)` fills it once: it has its name when it is complete. */
export function kept(cache, name, make) {
  const folder = join(cacheOf(cache), name);
  if (existsSync(folder)) return folder;
  removeInterrupted(dirname(folder));
  const unfinished = ownNameOf(folder);
  rmSync(unfinished, { recursive: true, force: true }); // of an earlier process with this id
  try {
    make(unfinished);
    renameSync(unfinished, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error; // another process was faster
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return folder;
}

/** Two processes at once do not meet under it. */
const ownNameOf = (folder) => `${folder}.${process.pid}`;

/** Removes a folder, which loses its name first: it never has its name when it is not complete. */
function remove(folder) {
  const removed = ownNameOf(folder);
  try {
    renameSync(folder, removed);
  } catch (error) {
    if (existsSync(folder)) throw error; // another process was faster
  }
  rmSync(removed, { recursive: true, force: true });
}

/** Removes what was interrupted: the name ends in the id of a process that is gone. */
export function removeInterrupted(folder) {
  for (const name of readdirSync(folder)) {
    const pid = Number(/\.(\d+)$/.exec(name)?.[1]);
    if (pid > 0 && !isRunning(pid)) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch ({ code }) {
    return code !== 'ESRCH'; // of another user
  }
}

/**
 * The folder whose node_modules holds these packages, installed now if it is missing or out of date.
 *
 * @param {string} name of the folder
 * @param {Record<string, string>} dependencies exact versions by name, as in package.json
 * @param {string[]} [settings] more arguments for npm
 */
export function npmFolder(name, dependencies, settings = []) {
  const manifest = JSON.stringify({ private: true, dependencies }, null, 2);
  const current = join(cacheOf('npm'), name);
  const known = join(current, 'installed.json');
  const isCurrent = () => existsSync(known) && readFileSync(known, 'utf8') === manifest;
  if (existsSync(current) && !isCurrent()) remove(current);
  return kept('npm', name, (folder) => {
    mkdirSync(folder);
    for (const file of ['package.json', 'installed.json']) {
      writeFileSync(join(folder, file), manifest);
    }
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
    npm(['install', ...quiet, ...settings], { cwd: folder });
  });
}

function show() {
  for (const [name, what] of Object.entries(CACHES)) {
    const [size] = must('du', ['-sh', cacheOf(name)]).split('\t');
    console.log(`${size.padStart(6)}  ${name.padEnd(10)} ${what}`);
  }
  console.log(`in ${folderOfAll}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main('caches', () => {
    const { clear } = parseArgs({ options: { clear: { type: 'string' } } }).values;
    removeInterrupted(dirname(cacheOf('npm')));
    return clear === undefined ? show() : remove(cacheOf(clear));
  });
}
