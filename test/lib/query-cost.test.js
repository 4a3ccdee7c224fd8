// What a GraphQL query costs: fields, lists, fragments, variables, and hostile queries.
'use strict';

const { parse } = require('graphql');
const { queryCost } = require('../../lib/adapters/graphql');
const { catchError } = require('../support/set-up');

const costOf = (text, rest, options) => queryCost({ document: parse(text), ...rest }, options);

test.each([
  ['{ me { name } }', 2],
  ['{ me { name born } you { name } }', 5],
  ['{ me { friends(first: 50) { name } } }', 52],
  ['{ me { friends(last: 50) { name born } } }', 102],
  ['{ me { friends(first: 10, last: 20) { name } } }', 22],
  ['{ me { friends(first: 30) { name friends(first: 10) { name } } } }', 1 + 1 + 30 * (1 + 1 + 10)],
  ['{ me { friends(first: 0) { name } } }', 2],
  ['{ me { friends { name } } }', 3],
  ['{ me { name(first: 50) } }', 2],
  ['{ me { friends(after: 50) { name } } }', 3],
  ['{ me { friends(first: -1) { name } } }', 102],
  ['{ me { friends(first: 1.5) { name } } }', 4],
  ['{ me { friends(first: null) { name } } }', 102],
  ['{ me { friends(first: "many") { name } } }', 102],
  ['{ me { friends(first: "") { name } } }', 102],
  ['{ me { friends(first: false) { name } } }', 102],
  ['{ me { friends(first: [1]) { name } } }', 102],
  ['mutation { a: add(first: 5) { id } }', 6],
])('%s costs %d', (text, cost) => {
  expect(costOf(text)).toBe(cost);
});

test('fragments cost what they hold, wherever they are spread', () => {
  const fragment = 'fragment more on Person { friends(first: 10) { name } }';
  expect(costOf(`{ me { ...more } you { ...more } } ${fragment}`)).toBe(2 * (1 + 11));
  expect(costOf(`{ all(first: 20) { ...more } } ${fragment}`)).toBe(1 + 20 * 11);
  expect(costOf('{ all(first: 20) { ... on Person { name born } } }')).toBe(1 + 20 * 2);
});

test('variables count as their value, else as their default, else as the longest list', () => {
  const text = 'query($n: Int) { me { friends(first: $n) { name } } }';
  const withDefault = 'query($n: Int = 7) { me { friends(first: $n) { name } } }';
  expect(costOf(text, { variableValues: { n: 30 } })).toBe(32);
  expect(costOf(withDefault)).toBe(9);
  expect(costOf(withDefault, { variableValues: { n: 30 } })).toBe(32);
  for (const n of [undefined, null, '7', -5, Number.NaN, 'many', {}]) {
    expect(costOf(text, { variableValues: { n } })).toBe(102);
  }
  for (const variableValues of [undefined, null])
    expect(costOf(text, { variableValues })).toBe(102);
});

test('a scalar may take a string as a number, so it counts as that number, but no less than the longest list', () => {
  const text = 'query($n: Amount) { me { friends(first: $n) { name } } }';
  for (const n of ['5000', 5000n]) expect(costOf(text, { variableValues: { n } })).toBe(5002);
  expect(costOf('{ me { friends(first: "5000") { name } } }')).toBe(5002);
  expect(costOf('query($n: Amount = "5000") { friends(first: $n) { name } }')).toBe(5001);
  expect(costOf(text, { variableValues: { n: '1e999' } })).toBe(Number.MAX_SAFE_INTEGER);
  expect(costOf(text, { variableValues: { n: '7' } })).toBe(102);
});

test('only the named operation counts', () => {
  const text = 'query a { me { name } } query b { me { name born } }';
  expect(costOf(text, { operationName: 'b' })).toBe(3);
  expect(costOf(text, { operationName: null })).toBe(5);
  expect(costOf(text, { operationName: 'c' })).toBe(1);
});

test('options name the arguments of lists, and the longest list', () => {
  const text = 'query($n: Int) { me { friends(take: $n) { name } } }';
  expect(costOf(text)).toBe(3);
  expect(costOf(text, {}, { sizeArguments: ['take'], longestList: 20 })).toBe(22);
});

describe('hostile queries', () => {
  test('fragments that spread each other twice are counted fast, and never above 2^53 - 1', () => {
    const fragments = Array.from({ length: 1000 }, (_, i) => {
      return `fragment f${i} on Query { ${i < 999 ? `...f${i + 1} ...f${i + 1}` : 'name'} }`;
    });
    expect(costOf(`{ ...f0 } ${fragments.join(' ')}`)).toBe(Number.MAX_SAFE_INTEGER);
  });

  test('fragments that spread each other deeper than functions can call are counted', () => {
    const fragments = Array.from({ length: 20_000 }, (_, i) => {
      return `fragment f${i} on Query { ${i < 19_999 ? `x ...f${i + 1}` : 'name'} }`;
    });
    expect(costOf(`{ ...f0 } ${fragments.join(' ')}`)).toBe(20_000);
  });

  test('of more arguments than a function takes, the largest counts', () => {
    const sizes = Array.from({ length: 200_000 }, (_, i) => `first: ${i % 50}`);
    expect(costOf(`{ all(${sizes.join(' ')}) { name } }`)).toBe(50);
  });

  test('huge lists, also of nothing, are numbers', () => {
    const huge = '9'.repeat(400);
    const nested = (inner) => `{ a(first: ${huge}) { b(first: ${huge}) { ${inner} } } }`;
    expect(costOf(nested('c'))).toBe(Number.MAX_SAFE_INTEGER);
    expect(costOf(`{ z(first: 0) ${nested('c')} }`)).toBe(1);
    expect(costOf(`{ name(first: ${huge}) }`)).toBe(1);
  });

  test('cycles and unknown fragments, which no server executes, end', () => {
    const cycle = 'fragment a on Query { x ...b } fragment b on Query { y ...a }';
    expect(costOf(`{ ...a } ${cycle}`)).toBe(2);
    expect(costOf('{ ...nowhere }')).toBe(1);
  });

  test('names of Object.prototype are names', () => {
    const text = 'query($constructor: Int) { a(first: $constructor) { ...toString } }';
    expect(costOf(text)).toBe(1);
    expect(costOf('query($toString: Int) { a(first: $toString) { b } }')).toBe(101);
  });
});

test.each([
  [{ sizeArgument: ['take'] }, TypeError, /unknown option "sizeArgument"; did you mean/],
  [{ sizeArguments: [] }, TypeError, /option 'sizeArguments': expected a list/],
  [{ sizeArguments: ['first', 5] }, TypeError, /option 'sizeArguments\[1\]'/],
  [{ longestList: 0 }, RangeError, /option 'longestList'/],
  [null, TypeError, /option 'options'/],
])('options %j are refused', (options, Kind, message) => {
  const error = catchError(() => costOf('{ a }', {}, options));
  expect(error).toBeInstanceOf(Kind);
  expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
  expect(error.message).toMatch(message);
  expect(error.message).toMatch(/^queryCost: /);
});

test.each([[undefined], [{}], [{ document: '{ a }' }], [{ document: {} }]])(
  '%j is not a query',
  (query) => {
    const error = catchError(() => queryCost(query));
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
    expect(error.message).toMatch(/^queryCost: option 'document/);
  },
);
