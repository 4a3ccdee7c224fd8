// docs/frameworks.md shows lines of the examples that it links.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { ROOT, readPage } = require('../support/page-programs');

const FOLDER = 'examples/frameworks';

const sections = readPage('docs/frameworks.md')
  .split(/^## /m)
  .slice(1)
  .map((section) => ({
    title: section.split('\n', 1)[0],
    file: /\]\(\.\.\/(examples\/frameworks\/[^)]+)\)/.exec(section)?.[1],
    blocks: [...section.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, code]) => code.trimEnd()),
  }));

const isImport = (line) => /^import |= require\(/.test(line);

/** Without the indentation, which the page leaves out. */
const linesOf = (code) => code.split('\n').map((line) => line.trim());

/** Whether these lines follow each other in the file. */
const isIn = (file, code) =>
  `\n${linesOf(readPage(file)).join('\n')}\n`.includes(`\n${linesOf(code).join('\n')}\n`);

const cases = sections.map(({ title, ...section }) => [title, section]);

test.each(cases)(
  '%s: what the page shows is in the file that it links',
  (_title, { file, blocks }) => {
    expect(blocks).toHaveLength(1);
    const parts = blocks[0].split('\n\n').flatMap((part) => {
      const lines = linesOf(part);
      return lines.every(isImport) ? lines : [part]; // others may be between them
    });
    const missing = parts.filter((part) => !isIn(file, part));
    expect(missing).toEqual([]);
  },
);

test('the page links every example of a framework', () => {
  const files = fs
    .readdirSync(path.join(ROOT, FOLDER), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'package.json')
    .map(({ parentPath, path: folder, name }) => path.join(parentPath ?? folder, name))
    .map((file) => path.relative(ROOT, file).split(path.sep).join('/'));
  const helpers = [`${FOLDER}/next/app/api/time/route.js`]; // what proxy.js limits
  const expected = files.filter((file) => !helpers.includes(file)).sort();
  expect(sections.map(({ file }) => file).sort()).toEqual(expected);
});
