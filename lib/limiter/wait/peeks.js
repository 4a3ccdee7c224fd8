// How long an attempt would at least be blocked: what peeks can say without counting or imagining a refusal.
'use strict';

const { costAt } = require('../../options/costs');
const {
  BLOCKED_BY_BLOCK,
  BLOCKED_BY_MIN_DIFFERENCE,
  NUMBERS,
  RECORDS,
} = require('../../base/decision');

const readTimeLeft = (numbers) => numbers[NUMBERS.TIME_LEFT];
const readWait = (numbers) => numbers[NUMBERS.WAIT];

/**
 * Returns `waitOf(id, cost)`: for how many ms at least an attempt would be blocked if nothing else is recorded,
 * 0 if it would be allowed. Returns a promise if the store does.
 *
 * A peek at the cost shows an attempt with everything that its refusal changes: with `countBlocked` the refusal
 * counts, with `blockFor` it starts a block. A waiting call is never refused, so its wait can be shorter.
 * Without these options, timeLeft is the wait.
 *
 * Otherwise the peek is at cost - 1. Once these actions are recorded, one more action has to wait for as long
 * as all of the cost without them: until the same older action leaves. (In a sliding-window counter not longer
 * than that, because a part of these actions leaves, too.)
 */
function createWaitOf(checked, store) {
  const { windows, countBlocked, blockFor, isWeighted } = checked;
  const peek = (id, cost, read) => store.decide(id, cost, RECORDS.NOTHING, read);
  if (!countBlocked && blockFor.length === 0) return (id, cost) => peek(id, cost, readTimeLeft);
  if (isWeighted) return createWeightedWaitOf(checked, peek);

  /** The wait by a peek at cost - 1, or null if it is at most minDifference, and not known. */
  function readWaitOfLast(numbers, cost) {
    const blocked = numbers[NUMBERS.BLOCKED];
    // At cost 0 only counted refusals beyond the maximum block; such a refusal, too, would start a block.
    const startsNoBlock = (cost === 1 && blocked === 0) || (blocked & BLOCKED_BY_BLOCK) !== 0;
    if (startsNoBlock) return readWait(numbers);
    const missing = blocked === 0 || countBlocked ? 1 : cost; // after what the peek shows as recorded
    let wait = 0;
    let next = NUMBERS.WINDOWS;
    for (const { maxInInterval } of windows) {
      const used = numbers[next++];
      const resetIn = numbers[next++];
      if (maxInInterval - used < missing) wait = Math.max(wait, resetIn);
    }
    return wait === 0 && (blocked & BLOCKED_BY_MIN_DIFFERENCE) !== 0 ? null : wait;
  }

  return (id, cost) => {
    const orMinDifference = (wait) => wait ?? peek(id, 0, readWait);
    return andThen(
      peek(id, cost - 1, (numbers) => readWaitOfLast(numbers, cost)),
      orMinDifference,
    );
  };
}

/**
 * The same with named limits. The number WAIT is of little use for them: it asks all windows, also those in which the
 * attempt costs nothing. If used up, one of those hides how long minDifference takes; then 1 ms is the least known.
 */
function createWeightedWaitOf({ windows, countBlocked, minDifference }, peek) {
  const indexes = [...windows.keys()];

  /** Whether a window has less room than is `missing`, which is 0 for windows that are not asked. */
  const isShort = (numbers, i, missing) =>
    missing > 0 && windows[i].maxInInterval - numbers[NUMBERS.WINDOWS + 2 * i] < missing;

  function readWaitOfLast(numbers, cost) {
    const blocked = numbers[NUMBERS.BLOCKED];
    if ((blocked & BLOCKED_BY_BLOCK) !== 0) return numbers[NUMBERS.TIME_LEFT];
    const isRecorded = blocked === 0 || countBlocked;
    let wait = 0;
    for (const i of indexes) {
      const missing = isRecorded ? Math.min(costAt(cost, i), 1) : costAt(cost, i);
      if (isShort(numbers, i, missing)) wait = Math.max(wait, numbers[NUMBERS.WINDOWS + 2 * i + 1]);
    }
    return wait;
  }

  /** For an attempt that all windows have room for. */
  function waitOfMinDifference(id, cost) {
    const isTooSoon = (numbers) => (numbers[NUMBERS.BLOCKED] & BLOCKED_BY_MIN_DIFFERENCE) !== 0;
    const readLeast = (numbers) =>
      indexes.some((i) => isShort(numbers, i, 1)) ? 1 : readWait(numbers);
    return andThen(peek(id, cost, isTooSoon), (is) => (is ? peek(id, 0, readLeast) : 0));
  }

  return (id, cost) => {
    const costOfRest = Float64Array.from(indexes, (i) => Math.max(costAt(cost, i) - 1, 0));
    const wait = peek(id, costOfRest, (numbers) => readWaitOfLast(numbers, cost));
    if (minDifference === 0) return wait;
    return andThen(wait, (known) => (known === 0 ? waitOfMinDifference(id, cost) : known));
  };
}

function andThen(value, step) {
  return value instanceof Promise ? value.then(step) : step(value);
}

module.exports = { createWaitOf };
