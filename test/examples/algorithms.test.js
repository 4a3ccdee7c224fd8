// The pictures and figures of docs/algorithms.md are those that the scripts make.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { execFileSync } = require('node:child_process');
const { ALGORITHMS } = require('../../lib/algorithms');

const root = path.join(__dirname, '../..');
const images = path.join(root, 'docs/images');
const names = ALGORITHMS.map((algorithm) => `${algorithm}.svg`);
const page = fs.readFileSync(path.join(root, 'docs/algorithms.md'), 'utf8');

/** What a script prints, as lines. */
function run(script, ...args) {
  const file = path.join(root, 'scripts', script);
  return execFileSync(process.execPath, [file, ...args], { encoding: 'utf8' })
    .trim()
    .split('\n');
}

/** The cells of a row of a table. */
const cellsOf = (row) =>
  row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

/** The rows of the page's table below a heading, its own two lines of heading left out. */
function rowsBelow(heading) {
  const section = page.split(/^## /m).find((text) => text.startsWith(heading));
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map(cellsOf);
}

describe('the pictures', () => {
  let drawn;

  beforeAll(() => {
    drawn = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-images-'));
    run('draw-algorithms.mjs', drawn);
  });

  afterAll(() => fs.rmSync(drawn, { recursive: true, force: true }));

  test('are those of the page', () => {
    const shown = [...page.matchAll(/\]\(images\/(.+?)\)/g)].map(([, name]) => name);
    expect(shown.sort()).toEqual(fs.readdirSync(drawn).sort());
  });

  test.each(names)('%s is what a run gives today', (name) => {
    const read = (folder) => fs.readFileSync(path.join(folder, name), 'utf8');
    expect(read(images)).toBe(read(drawn));
  });

  test.each(names)('%s tells the burst that the page tells of it', (name) => {
    const svg = fs.readFileSync(path.join(images, name), 'utf8');
    const [, most] = /at most (\d+) within any 10 s\.<\/desc>/.exec(svg);
    const [, alt] = new RegExp(`!\\[(.+)\\]\\(images/${name}\\)`).exec(page);
    expect(alt).toMatch(new RegExp(`(more than|up to) ${most} through within`));
  });
});

test('the worst bursts and waits of the page are those that the search finds', () => {
  const found = run('measure-algorithms.mjs', 'bursts').map(cellsOf);
  expect(found).toHaveLength(ALGORITHMS.length);
  expect(rowsBelow('What each lets through')).toEqual(found);
});

test('the log lets nobody exceed the limit, the others do as far as the page explains', () => {
  const rows = Object.fromEntries(
    rowsBelow('What each lets through').map(([name, ...figures]) => [name, figures.map(Number)]),
  );
  const max = 100;
  expect(rows['`sliding-window-log`'].slice(0, 3)).toEqual([max, max, max]);
  expect(rows['`sliding-window-counter`'].slice(0, 3)).toEqual([2 * max, max + max / 10, max + 1]);
  expect(rows['`fixed-window`'].slice(0, 3)).toEqual([2 * max, 2 * max, 2 * max]);
  expect(rows['`gcra`'].slice(0, 3)).toEqual([2 * max - 1, max + max / 10 - 1, max]);
});

test('an id takes as many bytes as the page says', () => {
  const measured = run('measure-algorithms.mjs', 'memory').map(cellsOf);
  const told = rowsBelow('What an id costs');
  expect(told.map(([name]) => name)).toEqual(measured.map(([name]) => name));
  // The table's hashes are random, so that one chunk more or less may be needed.
  told.forEach(([, ...bytes], i) => {
    bytes.forEach((told, j) => {
      const ratio = Number(told) / Number(measured[i][j + 1]);
      expect(ratio).toBeGreaterThan(0.95);
      expect(ratio).toBeLessThan(1.05);
    });
  });
});
