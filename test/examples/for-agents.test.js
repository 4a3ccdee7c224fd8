// docs/for-agents.md: which tests show that its statements hold.
'use strict';

const { readPage } = require('../support/page-programs');

/** By statement of the page: its tests. */
const PROOFS = new Map(
  readPage('test/examples/for-agents.txt')
    .split(/^- /m)
    .slice(1)
    .map((block) => block.trim().split('\n'))
    .map(([statement, ...proofs]) => [statement, proofs]),
);

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Whether a source has a test of this title, not skipped, in none of its comments; and these rows of a table. */
function hasTest(source, title, rows = []) {
  const quoted = `(?:'${escaped(title)}'|"${escaped(title)}")`;
  const ways = [
    `^\\s*test\\(\\s*${quoted}`,
    `^(?!\\s*//).*\\)\\(\\s*${quoted}`, // after the table of test.each
    `^\\s*(?:async )?${quoted}(?:\\(|: )`, // a behaviour
    `^TEST(?:_[FP])?\\(\\w+, ${escaped(title)}\\)`,
  ];
  const isTest = ways.some((way) => new RegExp(way, 'm').test(source));
  return isTest && !source.includes('.skip.each(') && rows.every((row) => source.includes(row));
}

function isThere(proof) {
  const [, file, rest] = proof.match(/^(.+?): (.+)$/);
  const [title, ...rows] = rest.split(' # ');
  return hasTest(readPage(file), title, rows);
}

// Kills: a title that only a comment or a skipped test has; a test that no way finds.
test('a title counts where a test has it', () => {
  const are = (...sources) => sources.map((source) => hasTest(source, 'a %s', ['row']));
  const tests = ["  test('a %s', run)", "])('a %s', run)", "])(\n  'a %s',\n  run)"];
  const behaviours = ["  async 'a %s'(suite) {}", "  'a %s': run", '  "a %s"(suite) {}'];
  const found = [...tests, ...behaviours].map((source) => `['row']\n${source}`);
  expect(are(...found)).toEqual(found.map(() => true));
  const others = [
    "test.skip('a %s', run)",
    "// test('a %s', run)",
    "// ])('a %s', run)",
    "test.skip.each([\n])('a %s', run)",
    "f('a %s')",
  ];
  const missing = [...others.map((source) => `['row']\n${source}`), "test('a %s', run)"];
  expect(are(...missing)).toEqual(missing.map(() => false));
  expect(hasTest('TEST_P(Table, Drops) {', 'Drops')).toBe(true);
});

// Kills: a statement that was added to the page or changed there, without a look at its tests.
test('the statements of the page are those of the table, in its order', () => {
  expect(readPage('docs/for-agents.md').match(/(?<=^- ).+$/gm)).toEqual([...PROOFS.keys()]);
});

// Kills: a test that was removed or renamed, though the page needs it.
test('each statement has tests, which are in the files that the table names', () => {
  const proofs = [...PROOFS.values()];
  expect(proofs.filter(({ length }) => length === 0)).toEqual([]);
  expect(proofs.flat().filter((proof) => !isThere(proof))).toEqual([]);
});
