// A comparison of two revisions: its arguments, its rounds and its verdict.
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { CELLS } = require('../../bench/against/cells');
const { readComparison } = require('../../bench/against/options');
const { MOST_ROUNDS, ROUNDS, compare, failuresOf } = require('../../bench/against/verdict');
const { runProgram } = require('../support/run-program');
const { emptyFolder, removeFolders } = require('../support/tarball');

const PROGRAM = path.join(__dirname, '../../scripts/bench.mjs');

describe('the arguments of a comparison', () => {
  const read = (words, limit) => readComparison(CELLS, { limit, words });
  const namesOf = ({ cells }) => cells.map(({ name }) => name);

  test('name cells, or the beginnings of their names; without them, all but some are compared', () => {
    expect(namesOf(read(['churn', 'one']))).toEqual(['one-refused', 'one-allowed', 'churn']);
    expect(namesOf(read(['tls']))).toEqual(['tls-one', 'tls', 'tls-many']);
    const all = namesOf(read([]));
    expect(all).toEqual(expect.arrayContaining(['one-refused', 'middleware', 'redis']));
    expect(all).not.toContain('tls');
  });

  test('a cell that does not exist is rejected with the names of those that do', () => {
    expect(() => read(['on'])).toThrow(/^There is no cell 'on'. There are: one-refused, /);
  });

  test('the limit is a ratio, 1.05 unless it is given', () => {
    expect(read([]).limit).toBe(1.05);
    expect(read([], '1.2').limit).toBe(1.2);
    for (const wrong of ['', 'x', '0', '-1', 'Infinity']) {
      expect(() => read([], wrong)).toThrow(/^--limit takes a ratio/);
    }
  });

  test('a limit without a revision is an error, before anything is measured', () => {
    const args = [PROGRAM, '--limit=1.1', 'nothing'];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect([status, stderr]).toEqual([2, '--limit belongs to --against=REVISION.\n']);
  });
});

describe('a comparison', () => {
  const cell = (name) => ({ name, title: name });

  /** Runs cells by a function of (side, name, round) that gives a time, several of them, or { absent }. */
  async function compareBy(names, timeOf, limit = 1.05) {
    const calls = [];
    const rounds = { old: {}, new: {} };
    const run = async (side, { name }) => {
      calls.push(`${side} ${name}`);
      rounds[side][name] = (rounds[side][name] ?? 0) + 1;
      const time = timeOf(side, name, rounds[side][name]);
      if (time.absent) return time;
      return { times: typeof time === 'number' ? { [name]: time } : time };
    };
    const rows = await compare(names.map(cell), run, { limit });
    return { calls, rows, failures: failuresOf(rows, limit) };
  }

  test('takes the least time of each side, however high the others are', async () => {
    const noisy = (side, _name, round) => (side === 'old' ? 100 : 102) + (round === 5 ? 0 : 900);
    const { rows, failures } = await compareBy(['one'], noisy);
    expect(rows).toMatchObject([{ old: { least: 100 }, new: { least: 102 }, ratio: 1.02 }]);
    expect(rows[0]).toMatchObject({ old: { spread: 9 }, rounds: ROUNDS });
    expect(failures).toEqual([]);
  });

  test('runs both sides in turn, and begins each round with the other side', async () => {
    const { calls } = await compareBy(['a', 'b'], () => 1);
    expect(calls.slice(0, 4)).toEqual(['old a', 'new a', 'old b', 'new b']);
    expect(calls.slice(4, 8)).toEqual(['new a', 'old a', 'new b', 'old b']);
    expect(calls).toHaveLength(4 * ROUNDS);
  });

  test('repeats a cell above the limit, until it is not or all rounds are used up', async () => {
    const timeOf = (side, name, round) => {
      if (side === 'old' || name === 'fine') return 100;
      return name === 'late' && round === ROUNDS + 3 ? 100 : 200;
    };
    const { rows, failures } = await compareBy(['fine', 'late', 'slow'], timeOf);
    expect(rows.map(({ rounds }) => rounds)).toEqual([ROUNDS, ROUNDS + 3, MOST_ROUNDS]);
    expect(failures).toEqual(['slow takes 2.00 times as long, above 1.05.']);
  });

  test('judges each time of a cell that measures several', async () => {
    const timeOf = (side) => ({ redis: 10, 'redis-server': side === 'old' ? 10 : 11 });
    const { rows, failures } = await compareBy(['redis'], timeOf);
    expect(rows.map(({ name }) => name)).toEqual(['redis', 'redis-server']);
    expect(failures).toEqual(['redis-server takes 1.10 times as long, above 1.05.']);
  });

  test('has no ratio for a cell that the other revision does not have, and does not fail', async () => {
    const timeOf = (side) => (side === 'old' ? { absent: 'no usage' } : 10);
    const { calls, rows, failures } = await compareBy(['usage'], timeOf);
    expect(rows).toMatchObject([{ ratio: undefined, old: undefined, absent: { old: 'no usage' } }]);
    expect(calls.filter((call) => call.startsWith('old'))).toHaveLength(1);
    expect(failures).toEqual([]);
  });

  test('fails for a cell that only the other revision has', async () => {
    const timeOf = (side) => (side === 'new' ? { absent: 'it broke' } : 10);
    expect((await compareBy(['usage'], timeOf)).failures).toEqual(['usage does not run: it broke']);
  });
});

afterAll(removeFolders);
test('what an interrupted build of a revision left is removed, a build that runs is not', async () => {
  const revisions = emptyFolder();
  const { pid: gone } = spawnSync(process.execPath, ['-e', '']);
  const names = ['built', `interrupted.${gone}`, `running.${process.pid}`];
  for (const name of names) fs.mkdirSync(path.join(revisions, name, 'src'), { recursive: true });
  const program = `
    import { removeInterrupted } from './scripts/caches.mjs';
    removeInterrupted(${JSON.stringify(revisions)});`;
  expect(await runProgram(program, { type: 'module' })).toMatchObject({ code: 0 });
  expect(fs.readdirSync(revisions)).toEqual([names[0], names[2]]);
});
