// Writes lib/stores/redis/scripts.js, the Redis scripts as a JavaScript module, from src/redis/scripts:
//   node scripts/embed-scripts.mjs
import { createHash } from 'node:crypto';
import { readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from './build.mjs';

const { ALGORITHMS } = createRequire(import.meta.url)('../lib/options/algorithms');

const target = join(root, 'lib/stores/redis/scripts.js');
const command = 'node scripts/embed-scripts.mjs';

const PART = /^-- PART: (.*)\n/m;
const PLACE = /^ *-- PLACE: (.*)\n/gm;
const INCLUDE = /^ *-- INCLUDE: (.*)\n/gm;

const STRING_OR_COMMENT = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|--.*/g;

const read = (name) => readFileSync(join(root, `src/redis/scripts/${name}.lua`), 'utf8');

/** A file with its included files in place. */
const readWhole = (name) => read(name).replace(INCLUDE, (_, included) => readWhole(included));

/** The scripts by name: those of the algorithms, and one that is whole in its file. */
export const SCRIPTS = [...ALGORITHMS, 'slots'];

/** A whole script, with comments: that of an algorithm is the frame with the algorithm's parts in place. */
export function assembledScript(name) {
  if (!ALGORITHMS.includes(name)) return readWhole(name);
  const [first, ...named] = readWhole(name.replaceAll('-', '_')).split(PART); // a name before each part
  const parts = { FIRST: first };
  for (let i = 0; i < named.length; i += 2) parts[named[i]] = named[i + 1];
  return readWhole('frame').replace(PLACE, (_, place) => parts[place] ?? '');
}

/** The same code without comments, indentation and empty lines. */
function stripLua(source) {
  if (/\[=*\[|\\$/m.test(source)) {
    throw new Error('long brackets and strings over several lines are not supported in scripts');
  }
  const code = source.replace(STRING_OR_COMMENT, (found) => (found.startsWith('--') ? '' : found));
  const lines = code.split('\n').map((line) => line.trim());
  return `${lines.filter(Boolean).join('\n')}\n`;
}

function moduleSource() {
  const entries = SCRIPTS.map((name) => {
    const source = stripLua(assembledScript(name));
    const sha1 = createHash('sha1').update(source).digest('hex');
    return `  ${JSON.stringify(name)}: {\n    sha1: '${sha1}',\n    source:\n      ${JSON.stringify(source)},\n  },\n`;
  });
  return (
    `// The Redis scripts, those of algorithms by their names. Generated from src/redis/scripts by '${command}'; do not edit.\n` +
    `'use strict';\n\nmodule.exports = {\n${entries.join('')}};\n`
  );
}

/** Whether lib/stores/redis/scripts.js is current; if not, prints the command that updates it. */
export function scriptsAreCurrent() {
  if (readFileSync(target, 'utf8') === moduleSource()) return true;
  console.error(`lib/stores/redis/scripts.js differs from src/redis/scripts: run '${command}'`);
  return false;
}

export function embedScripts() {
  writeFileSync(target, moduleSource());
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  embedScripts();
}
