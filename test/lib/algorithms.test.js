// The types and the documentation name the algorithms that there are.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { ALGORITHMS } = require('../../lib/algorithms');

const read = (file) => fs.readFileSync(path.join(__dirname, '../..', file), 'utf8');
const namesIn = (text) => [...text.matchAll(/'([a-z-]+)'/g)].map(([, name]) => name);

test('the type Algorithm has them all', () => {
  const [, union] = /type Algorithm =([^;]+);/.exec(read('lib/index.d.ts'));
  expect(namesIn(union)).toEqual(ALGORITHMS);
});

test('docs/algorithms.md begins with them all', () => {
  const rows = read('docs/algorithms.md').match(/^\| `'.+?'`/gm);
  expect(rows.flatMap(namesIn)).toEqual(ALGORITHMS);
});
