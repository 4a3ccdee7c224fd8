// The complexity of a GraphQL query, as docs/budgets.md and the example for GraphQL Yoga compute it.
'use strict';

const { buildSchema, parse } = require('graphql');
const { blocksOf, load, readPage } = require('../support/page-programs');

const CODE = blocksOf('docs/budgets.md').at(-1);
const { complexityOf, schema } = load(CODE, 'complexityOf, schema');

const costOf = (query, variableValues, operationName) =>
  complexityOf({ schema, document: parse(query), variableValues, operationName });

const SIZED = 'query($n: Int) { me { friends(first: $n) { name } } }';
const WITH_DEFAULT = 'query($n: Int = 7) { me { friends(first: $n) { name } } }';
const TWO = 'query a { me { name } } query b($n: Int!) { me { friends(first: $n) { name } } }';
const MOST = Number.MAX_SAFE_INTEGER;
const nested = (depth) =>
  `{ me ${'{ friends(first: 2147483647) '.repeat(depth)} { name } ${'}'.repeat(depth)} }`;

test.each([
  ['{ me { name } }', 2],
  ['{ me { friends(first: 50) { name } } }', 52],
  ['{ me { friends(last: 50) { name posts(first: 2) { title } } } }', 1 + 1 + 50 * (1 + 1 + 2)],
  ['{ me { friends(first: 10, last: 20) { name } } }', 22],
  // Lists of no known size.
  ['{ me { friends { name } } }', 102],
  ['{ me { friends(first: null) { name } } }', 102],
  ['{ me { friends(first: 0) { name } } }', 102],
  ['{ me { friends(first: -1) { name } } }', 102],
  ['{ me { ...f ...f } } fragment f on User { friends(first: 10) { name } }', 1 + 2 * 11],
  ['{ me { ... on User { friends(first: 10) { ... { name } } } } }', 12],
  ['{ me { a: friends(first: 10) { name } b: friends(first: 10) { name } } }', 23],
  ['{ me { name friends @skip(if: true) { name } } }', 2],
  ['{ me @skip(if: true) { name } }', 1],
  ['{ __schema { types { fields { name } } } }', 4],
  [SIZED, 32, { n: 30 }],
  [SIZED, 102],
  [SIZED, 102, { n: -5 }],
  [WITH_DEFAULT, 9],
  [WITH_DEFAULT, 32, { n: 30 }],
  [TWO, 2, {}, 'a'],
  [TWO, 5, { n: 3 }, 'b'],
  ['{ me { name } }', 2, {}, 'unknown'], // which no server executes
])('%s is %d', (query, cost, ...how) => {
  expect(costOf(query, ...how)).toBe(cost);
});

test('is never above the largest cost', () => {
  expect([3, 60].map((depth) => costOf(nested(depth)))).toEqual([MOST, MOST]);
});

test('has sizes of any type as numbers, and is an integer', () => {
  const anything = buildSchema('scalar Any type Query { a(first: Any): [Query], b: Int }');
  const costs = ['5000', '"5000"', '1.5', '"many"', '[]'].map((first) =>
    complexityOf({ schema: anything, document: parse(`{ a(first: ${first}) { b } }`) }),
  );
  expect(costs).toEqual([5001, 5001, 3, 101, 101]);
});

test('is an error for wrong variables', () => {
  const variable = /Variable "\$n" got invalid value "many"/;
  expect(() => costOf(SIZED, { n: 'many' })).toThrow(variable);
});

test('is computed by the same functions in the example for GraphQL Yoga', () => {
  const example = readPage('examples/frameworks/graphql-yoga.js');
  const [functions] = /^const LONGEST_LIST.*?(?=^const limit)/ms.exec(example);
  expect(CODE).toContain(functions);
});
