// Holds decisions against an oracle's: quick where all is well, with the seed and the step where not.
'use strict';

const { isDeepStrictEqual } = require('node:util');

function expectEqual(actual, expected, context) {
  if (isDeepStrictEqual(actual, expected)) return;
  expect({ ...context, actual }).toEqual({ ...context, actual: expected });
  throw new Error('different, although toEqual sees no difference');
}

function expectSame(decision, expected, context) {
  const { allowed, timeLeft, actionsLeft, resetIn, blockedBy, limits } = expected;
  const facts = { allowed, timeLeft, actionsLeft, resetIn, blockedBy, limits };
  expectEqual({ ...decision }, facts, context);
}

module.exports = { expectEqual, expectSame };
