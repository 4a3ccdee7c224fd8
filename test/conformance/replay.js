// Replays traces on limiters, and shortens those that fail.
'use strict';

const { isDeepStrictEqual } = require('node:util');
const { BLOCKED_BY, decisionOf, toMs, usageOf } = require('./oracle');
const { Oracles } = require('./oracles');
const { costOption, maximaOf, optionsOfTerms } = require('./plans');
const { optionsFor } = require('./random-traces');

function calledBack(limiter, id) {
  return new Promise((resolve, reject) => {
    limiter(id, (error, ...answer) => (error ? reject(error) : resolve(answer)));
  });
}

/** An answer as limitWithInfo() and wouldLimitWithInfo() give it. */
function infoOf({ allowed, blockedBy, timeLeft, wait, actionsLeft }) {
  return {
    blocked: !allowed,
    blockedDueToCount: (blockedBy & BLOCKED_BY.COUNT) !== 0,
    blockedDueToMinDifference: (blockedBy & BLOCKED_BY.MIN_DIFFERENCE) !== 0,
    millisecondsUntilAllowed: toMs(allowed ? wait : timeLeft),
    actionsRemaining: actionsLeft,
  };
}

/** The options of a call; undefined if the operation has none. */
function optionsOfCall({ cost, terms }, policy) {
  if (cost === undefined && terms === undefined) return undefined;
  return { cost: costOption(cost, policy), ...optionsOfTerms(terms, policy) };
}

/** How a limiter is asked, by kind; the others are its methods. `decision` is that of the attempt that is settled. */
const ASK = {
  call: (limiter, { id }) => limiter(id),
  callback: (limiter, { id }) => calledBack(limiter, id),
  attemptMany: (limiter, { ids }) => limiter.attemptMany(ids),
  setLimits: (limiter, { maxima }, policy) =>
    limiter.setLimits(optionsFor(maximaOf(policy, maxima)).limits),
  refund: (limiter, _, _policy, decision) => limiter.refund(decision),
  settle: (limiter, { actual }, policy, decision) =>
    limiter.settle(decision, costOption(actual, policy)),
  block: (limiter, { id, length }) => limiter.block(id, length / 1000),
  clearAll: (limiter) => limiter.clearAll(),
};

const askMethod = (limiter, operation, policy) =>
  limiter[operation.kind](operation.id, optionsOfCall(operation, policy));

/** The oracle's answer in the form of the limiter's, by kind, where they differ. */
const FORMS = {
  attempt: decisionOf,
  peek: decisionOf,
  usage: usageOf,
  record: usageOf,
  attemptMany: (answers) => answers.map(decisionOf),
  call: ({ timeLeft }) => toMs(timeLeft),
  callback: ({ timeLeft, actionsLeft }) => [toMs(timeLeft), actionsLeft],
  limitWithInfo: infoOf,
  wouldLimitWithInfo: infoOf,
};

/** Without what is hidden in decisions. */
function plain(answer = null) {
  if (Array.isArray(answer)) return answer.map(plain);
  return typeof answer === 'object' && answer !== null ? { ...answer } : answer;
}

/** The first difference, or null. `open(options)` makes a limiter, which is closed here. */
async function firstDifference({ policy, operations, answers }, open) {
  const oracles = new Oracles(policy);
  const decisions = new Map(); // by the places of attempts
  let now = operations[0]?.now;
  const limiter = open({ ...optionsFor(policy), clock: () => now / 1000 });
  try {
    for (const [i, operation] of operations.entries()) {
      now = operation.now;
      const { kind, of, place = i } = operation;
      // A shortened trace has no answers, and may lack the attempt that is taken back.
      if (of !== undefined && !decisions.has(of)) continue;
      const answer = answers ? answers[i] : oracles.perform(operation, place);
      if (answer === undefined) continue;
      const expected = kind in FORMS ? FORMS[kind](answer) : answer;
      let came;
      try {
        const given = await (ASK[kind] ?? askMethod)(limiter, operation, policy, decisions.get(of));
        if (kind === 'attempt') decisions.set(place, given);
        came = plain(given);
      } catch (error) {
        came = `${error.code}: ${error.message} ${error.cause?.message ?? ''}`;
      }
      if (!isDeepStrictEqual(came, expected)) return { step: i, operation, expected, came };
    }
    return null;
  } finally {
    await limiter.close();
  }
}

const MOST_REPLAYS = 200;

/** Leaves out the operations that the difference does not need. */
async function shrink({ policy, operations }, open) {
  let kept = operations.map((operation, place) => ({ ...operation, place }));
  let difference = await firstDifference({ policy, operations: kept }, open);
  if (difference === null) return null; // not reproducible
  kept = kept.slice(0, difference.step + 1);
  let replays = 0;
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size > 1 ? size >> 1 : 0) {
    for (let first = kept.length - 1 - size; first > -size; first -= size) {
      if (++replays > MOST_REPLAYS) return { kept, difference };
      const fewer = kept.filter((_, i) => i < first || i >= first + size);
      const again = await firstDifference({ policy, operations: fewer }, open);
      if (again === null) continue;
      kept = fewer.slice(0, again.step + 1);
      difference = again;
      first = Math.min(first, kept.length - 1);
    }
  }
  return { kept, difference };
}

function lineOf({ kind, now, place, ...what }) {
  return `  ${place}: ${kind} at ${now} us ${JSON.stringify(what)}`;
}

/** Throws with a short reproduction if the limiter differs from the oracle. */
async function expectTrace(trace, open, context) {
  const found = await firstDifference(trace, open);
  if (found === null) return;
  const shrunk = await shrink(trace, open);
  const { kept, difference } = shrunk ?? { kept: trace.operations, difference: found };
  const { operation, expected, came } = difference;
  throw new Error(
    [
      `the limiter differs from the oracle: ${JSON.stringify(context)}`,
      ...(shrunk === null ? ['not again when replayed; the whole trace follows'] : []),
      `policy (us): ${JSON.stringify(trace.policy)}`,
      ...kept.map(lineOf),
      `at ${operation.kind} came     ${JSON.stringify(came)}`,
      `at ${operation.kind} expected ${JSON.stringify(expected)}`,
    ].join('\n'),
  );
}

module.exports = { expectTrace, firstDifference };
