// The table of boundaries that write-boundaries.mjs wrote.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const FILE = path.join(__dirname, '../lib/boundaries.txt');

const [version, ...lines] = fs.readFileSync(FILE, 'utf8').trimEnd().split('\n');

/** `{ names, from, to, offset, changes, windows }` each: local-time.js takes an entry as a zone. */
const ENTRIES = lines.map((line) => JSON.parse(line));

/** The offsets of a zone in a year. */
function zoneIn(name, year) {
  return ENTRIES.find(({ names, from, to }) => names.includes(name) && from <= year && year <= to);
}

module.exports = { ENTRIES, VERSION: version, zoneIn };
