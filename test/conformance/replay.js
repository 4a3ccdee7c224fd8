// Replays a trace on a limiter beside the oracle; where they differ, cuts the trace as short as it goes.
'use strict';

const { isDeepStrictEqual } = require('node:util');
const { decisionOf, infoOf, toMs } = require('./oracle/public-answers');
const { Oracles } = require('./random-operations');

/** The options that make a limiter follow a policy. */
function optionsFor({ algorithm, limits, minDifference, countBlocked, blockFor }) {
  return {
    algorithm,
    countBlocked,
    limits: limits.map(({ interval, maxInInterval }, i) => ({
      interval: interval / 1000,
      maxInInterval,
      minDifference: i === 0 ? minDifference / 1000 : 0,
    })),
    ...(blockFor.length > 0 && { blockFor: blockFor.map((micros) => micros / 1000) }),
  };
}

function calledBack(limiter, id) {
  return new Promise((resolve, reject) => {
    limiter(id, (error, ...answer) => (error ? reject(error) : resolve(answer)));
  });
}

/** What the limiter answers. `decisions` are those of earlier attempts by their places. */
async function actual(limiter, { kind, id, ids, cost, of }, decisions, place) {
  switch (kind) {
    case 'attempt': {
      const decision = await limiter.attempt(id, { cost });
      decisions.set(place, decision);
      return { ...decision };
    }
    case 'peek':
      return { ...(await limiter.peek(id, { cost })) };
    case 'attemptMany': {
      const many = await limiter.attemptMany(ids);
      return many.map((decision) => ({ ...decision }));
    }
    case 'call':
      return limiter(id);
    case 'callback':
      return calledBack(limiter, id);
    case 'refund':
      return limiter.refund(decisions.get(of));
    case 'clearAll':
      return (await limiter.clearAll()) ?? null;
    case 'clear':
      return (await limiter.clear(id)) ?? null;
    default:
      return limiter[kind](id);
  }
}

/** The oracle's answer in the form of the limiter's. */
function expectedOf({ kind }, answer, policy) {
  switch (kind) {
    case 'attempt':
    case 'peek':
      return decisionOf(answer, policy);
    case 'attemptMany':
      return answer.map((each) => decisionOf(each, policy));
    case 'call':
      return toMs(answer.timeLeft);
    case 'callback':
      return [toMs(answer.timeLeft), answer.actionsLeft];
    case 'limitWithInfo':
    case 'wouldLimitWithInfo':
      return infoOf(answer);
    default:
      return answer;
  }
}

/** The first difference, or null. `open(options)` makes a limiter, which is closed here. */
async function firstDifference({ policy, operations }, open) {
  const oracles = new Oracles(policy);
  const decisions = new Map();
  let now = operations[0]?.now;
  const limiter = open({ ...optionsFor(policy), clock: () => now / 1000 });
  try {
    for (const [i, operation] of operations.entries()) {
      now = operation.now;
      const place = operation.place ?? i;
      // In a trace that was cut, what is taken back may be gone.
      if (operation.kind === 'refund' && !decisions.has(operation.of)) continue;
      const answer = oracles.perform(operation, place);
      if (answer === undefined) continue;
      const expected = expectedOf(operation, answer, policy);
      let came;
      try {
        came = await actual(limiter, operation, decisions, place);
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

/** Leaves out whatever the difference does not need. */
async function shrink({ policy, operations }, open) {
  let kept = operations.map((operation, place) => ({ ...operation, place }));
  let difference = await firstDifference({ policy, operations: kept }, open);
  if (difference === null) return null; // it comes and goes
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

function lineOf({ kind, now, place, id, ids, cost, of }) {
  const what = { id, ids, cost, of };
  return `  ${place}: ${kind} at ${now} us ${JSON.stringify(what)}`;
}

/** Throws with a short reproduction where the limiter differs from the oracle. */
async function expectTrace(trace, open, context) {
  const found = await firstDifference(trace, open);
  if (found === null) return;
  const shrunk = await shrink(trace, open);
  const { kept, difference } = shrunk ?? { kept: trace.operations, difference: found };
  const { operation, expected, came } = difference;
  throw new Error(
    [
      `the limiter differs from the oracle: ${JSON.stringify(context)}`,
      ...(shrunk === null ? ['not when replayed: whole trace follows'] : []),
      `policy (us): ${JSON.stringify(trace.policy)}`,
      ...kept.map(lineOf),
      `at ${operation.kind} came     ${JSON.stringify(came)}`,
      `at ${operation.kind} expected ${JSON.stringify(expected)}`,
    ].join('\n'),
  );
}

module.exports = { expectTrace, firstDifference, optionsFor };
