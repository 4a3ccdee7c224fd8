// Reads the workflows of .github as lines: their jobs and their commands.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const FOLDER = path.join(__dirname, '../../.github/workflows');

const read = (name) => fs.readFileSync(path.join(FOLDER, name), 'utf8');

/** The commands of the steps, without those of several lines, which need Docker. */
const commandsOf = (name) =>
  [...read(name).matchAll(/^ *(?:- )?run: (?!\|)(.+)$/gm)].map(([, command]) => command);

/** The jobs by their names, each with its lines. */
function jobsOf(name) {
  const [, jobs] = read(name).split(/^jobs:\n/m);
  const parts = jobs.split(/^ {2}(\w+):\n/m).slice(1);
  return Object.fromEntries(
    parts.flatMap((part, i) => (i % 2 === 0 ? [[part, parts[i + 1]]] : [])),
  );
}

module.exports = { commandsOf, FOLDER, jobsOf, read };
