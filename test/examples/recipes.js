// What the tests of recipes share: the programs of docs/recipes.md, what it shows of them, and servers for a test.
'use strict';

const apps = require('../middleware/apps');
const { blocksByHeading, blocksOf } = require('../support/page-programs');

const PAGE = 'docs/recipes.md';
const RECIPES = blocksByHeading(PAGE);

/** The program of a recipe, with these exchanges of [that, replacement], which it must have. */
function codeOf(name, ...exchanges) {
  let [code] = RECIPES.get(name);
  for (const [that, replacement] of exchanges) {
    expect(code).toContain(that);
    code = code.replace(that, replacement);
  }
  return code;
}

/** What the page says that a program prints, which contains these words. */
const printed = (words) => blocksOf(PAGE, 'text').find((text) => text.includes(words));

const listen = async (app) => `http://127.0.0.1:${await apps.listen(app)}`;

const times = (count, item) => Array(count).fill(item);

module.exports = { codeOf, listen, printed, RECIPES, times };
