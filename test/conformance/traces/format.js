// The trace file: what every implementation of the core, in whatever language, must answer.
//
// A line is a word and integers; times and durations are microseconds. `#` begins a comment.
//
//   policy   algorithm (its place in ALGORITHM_NAMES), countBlocked, minDifference, number of windows,
//            interval and max of each, number of blocks, length of each. Begins anew with no ids.
//   attempt  id, now, cost, then the answer: blocked by (bits: 1 count, 2 minDifference, 4 block),
//   peek     time left, wait, actions left, reset in, moment it counts as made at, then for each
//            window what is used and its reset in
//   usage    id, now, then for each window what is used and its reset in: a peek of cost 0
//   refund   id, now, which attempt (operations of this policy are counted from 0), 1 if it finds anything
//   clear    id
//   clearAll
'use strict';

const { ALGORITHM_NAMES } = require('../oracle');

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

function answerOf({ blockedBy, timeLeft, wait, actionsLeft, resetIn, at, windows }) {
  return [blockedBy, timeLeft, wait, actionsLeft, resetIn, at, ...usesOf(windows)];
}

/** An operation and what the oracle says to it. */
function operationLine({ kind, id, now, cost, of }, answer) {
  switch (kind) {
    case 'attempt':
    case 'peek':
      return [kind, id, now, cost, ...answerOf(answer)].join(' ');
    case 'usage':
      return [kind, id, now, ...usesOf(answer)].join(' ');
    case 'refund':
      return [kind, id, now, of, Number(answer)].join(' ');
    case 'clear':
      return `${kind} ${id}`;
    default:
      return kind;
  }
}

function readPolicy(numbers) {
  const [algorithm, countBlocked, minDifference, windows] = numbers;
  const next = 4 + 2 * windows;
  const limits = [];
  for (let i = 4; i < next; i += 2) {
    limits.push({ interval: numbers[i], maxInInterval: numbers[i + 1] });
  }
  return {
    algorithm: ALGORITHM_NAMES[algorithm],
    countBlocked: countBlocked === 1,
    minDifference,
    limits,
    blockFor: numbers.slice(next + 1),
  };
}

/** The traces of a file: { policy, operations }, an operation being { kind, numbers, line }. */
function readTraces(text) {
  const traces = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (line === '' || line.startsWith('#')) continue;
    const [kind, ...words] = line.split(' ');
    const numbers = words.map(Number);
    if (kind === 'policy') traces.push({ policy: readPolicy(numbers), operations: [] });
    else traces.at(-1).operations.push({ kind, numbers, line: i + 1 });
  }
  return traces;
}

module.exports = { operationLine, policyLine, readTraces };
