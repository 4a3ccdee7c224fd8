// Writes traces with the oracle's answers, for the tests in C++: node test/conformance/write-traces.js <file>
//
// A line is a word and integers; times and durations are microseconds. `#` begins a comment.
//
//   policy   algorithm (its place in ALGORITHM_NAMES), countBlocked, minDifference, number of windows,
//            interval and max of each, number of blocks, length of each. No id is known from here on.
//   attempt  id, now, cost, then the answer: blocked by (bits: 1 count, 2 minDifference, 4 block),
//   peek     time left, wait, actions left, reset in, moment at which it counts as made, then for each
//            window what is used and its reset in
//   usage    id, now, then for each window what is used and its reset in: a peek of cost 0
//   refund   id, now, which attempt (operations of this policy count from 0), 1 if it is found
//   clear    id
//   clearAll
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { randomFrom } = require('../support/traces');
const { ALGORITHM_NAMES } = require('./oracle');
const {
  CORE_KINDS,
  LONG_UNITS,
  SHORT_UNITS,
  largePolicy,
  randomPolicy,
  randomTrace,
} = require('./random-traces');

const TRACES = 36; // of each algorithm
const STEPS = 45;
const IDS = [0, 1];

/** The traces of an algorithm, the same in every run. */
function tracesOf(algorithm) {
  return Array.from({ length: TRACES }, (_, seed) => {
    const random = randomFrom(1_000_000 + seed);
    const units = seed % 2 === 0 ? LONG_UNITS : SHORT_UNITS;
    const drawPolicy = seed % 5 === 0 ? largePolicy : randomPolicy;
    const policy = drawPolicy(random, { algorithm, units });
    return randomTrace(random, { policy, steps: STEPS, ids: IDS, kinds: CORE_KINDS });
  });
}

function policyLine({ algorithm, countBlocked, minDifference, limits, blockFor }) {
  return [
    'policy',
    ALGORITHM_NAMES.indexOf(algorithm),
    Number(countBlocked),
    minDifference,
    limits.length,
    ...limits.flatMap(({ interval, maxInInterval }) => [interval, maxInInterval]),
    blockFor.length,
    ...blockFor,
  ].join(' ');
}

const usesOf = (windows) => windows.flatMap(({ used, resetIn }) => [used, resetIn]);

function operationLine({ kind, id, now, cost, of }, answer) {
  switch (kind) {
    case 'attempt':
    case 'peek': {
      const { blockedBy, timeLeft, wait, actionsLeft, resetIn, at, windows } = answer;
      const facts = [blockedBy, timeLeft, wait, actionsLeft, resetIn, at, ...usesOf(windows)];
      return [kind, id, now, cost, ...facts].join(' ');
    }
    case 'usage':
      return [kind, id, now, ...usesOf(answer.windows)].join(' ');
    case 'refund':
      return [kind, id, now, of, Number(answer)].join(' ');
    case 'clear':
      return `${kind} ${id}`;
    default:
      return kind;
  }
}

function linesOf({ policy, operations, answers }) {
  return [policyLine(policy), ...operations.map((each, i) => operationLine(each, answers[i]))];
}

if (require.main === module) {
  const lines = ALGORITHM_NAMES.flatMap(tracesOf).flatMap(linesOf);
  const [, , file] = process.argv;
  const header = '# Written by test/conformance/write-traces.js, which describes the format.';
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, `${[header, ...lines].join('\n')}\n`);
}

module.exports = { tracesOf, usesOf };
