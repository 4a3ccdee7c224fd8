// How long an attempt would at least be blocked: what peeks can say without counting or imagining a refusal.
'use strict';

const { BLOCKED_BY_BLOCK, BLOCKED_BY_MIN_DIFFERENCE, NUMBERS, RECORDS } = require('../decision');

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
function createWaitOf({ windows, countBlocked, blockFor }, store) {
  const peek = (id, cost, read) => store.decide(id, cost, RECORDS.NOTHING, read);
  if (!countBlocked && blockFor.length === 0) return (id, cost) => peek(id, cost, readTimeLeft);

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
    const wait = peek(id, cost - 1, (numbers) => readWaitOfLast(numbers, cost));
    return wait instanceof Promise ? wait.then(orMinDifference) : orMinDifference(wait);
  };
}

module.exports = { createWaitOf };
