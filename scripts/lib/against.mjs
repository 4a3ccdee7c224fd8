// Compares this tree with another revision, cell by cell, and prints the ratios of their least times.
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build, root } from '../build.mjs';
import { builtRevision, commitOf } from './revision.mjs';

const require = createRequire(import.meta.url);
const { CELLS } = require('../../bench/against/cells');
const { readComparison } = require('../../bench/against/options');
const { compare, failuresOf } = require('../../bench/against/verdict');
const { clockText, DASH, number, tableText } = require('../../bench/js/report');

const PROGRAM = join(root, 'bench/against/run.js');

/** Returns the exit code: 0, 1 for a cell above the limit, 2 for wrong arguments. */
export async function compareWith(revision, { limit: limitGiven, words }) {
  let comparison;
  try {
    comparison = {
      ...readComparison(CELLS, { limit: limitGiven, words }),
      commit: commitOf(revision),
    };
  } catch (error) {
    console.error(error.message);
    return 2;
  }
  const { cells, limit, commit } = comparison;
  console.log(`Building this tree and ${commit.slice(0, 12)}, unless that is done`);
  build(['addon'], { output: 'ignore' });
  const folders = { old: builtRevision(commit), new: root };
  const start = performance.now();
  const onRound = (round, due) => {
    const what = due.length === cells.length ? 'all cells' : due.map(({ name }) => name).join(', ');
    console.log(`[${clockText(performance.now() - start)}] round ${round + 1}: ${what}`);
  };
  const rows = await compare(cells, (side, cell) => run(folders[side], cell), { limit, onRound });
  console.log(tableText(tableOf(rows, commit)));
  const failures = failuresOf(rows, limit);
  for (const failure of failures) console.error(failure);
  return failures.length > 0 ? 1 : 0;
}

async function run(folder, { name }) {
  const args = ['--no-warnings', PROGRAM, folder, name];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

function tableOf(rows, commit) {
  const time = (summary) => (summary ? number(summary.least) : DASH);
  const above = (summary) => (summary ? `+${Math.round(summary.spread * 100)} %` : DASH);
  return {
    title: `CPU ns of one check: this tree against ${commit.slice(0, 12)}`,
    columns: ['cell', '', 'old', 'median', 'new', 'median', 'new / old', 'rounds'],
    rows: rows.map((row) => [
      row.name,
      row.title,
      time(row.old),
      above(row.old),
      time(row.new),
      above(row.new),
      row.ratio?.toFixed(2) ?? DASH,
      String(row.rounds),
    ]),
    notes: rows.flatMap(({ name, absent }) =>
      Object.entries(absent).map(([side, reason]) => `${name}, ${side}: ${reason}`),
    ),
  };
}
