// Names of options and of methods of limiters that only other parts of the package use.
'use strict';

/**
 * The name of a method, the same in all copies of the package: a program may have several, for example after
 * jest.resetModules(), and then a limiter of one is used with functions of another.
 */
const methodName = (name) => Symbol.for(`rollgate.${name}`);

/**
 * The option `[SETS_MAX]: true` makes a limiter whose maximum comes with every attempt, for `limit` as a
 * function. It has one window, and ATTEMPT_WITHIN and PEEK_WITHIN replace `attempt` and `peek`. What is
 * counted for an id does not depend on the maximum. Not possible with GCRA.
 */
const SETS_MAX = Symbol('setsMax');

/** The option `[IS_INNER]: true` makes a limiter that publishes no decisions and no evictions. */
const IS_INNER = Symbol('isInner');

/**
 * `limiter[ATTEMPT_WITHIN](id, max, options)`: `attempt` with the maximum of the limiter, or with `max`. A cost that can
 * never pass is refused and leaves no trace; its `timeLeft` is Infinity.
 */
const ATTEMPT_WITHIN = methodName('attemptWithin');

/** `limiter[PEEK_WITHIN](id, max)` */
const PEEK_WITHIN = methodName('peekWithin');

/** `limiter[USAGE](id)`: a Decision at cost 0. Its `limits` show the current usage; only a block refuses it. */
const USAGE = methodName('usage');

/** `limiter[DECIDE](id, cost, records)`: a Decision at a checked cost; `records` is one of RECORDS (decision.js). */
const DECIDE = methodName('decide');

/** `limiter[BLOCK](id, ms)`: `block` for a checked duration; it answers at once where the store does. */
const BLOCK = methodName('block');

/** `limiter[ENTRY_NAMES]`: the names of options that its entries of attemptAll may have beside cost, if any. */
const ENTRY_NAMES = methodName('entryNames');

/** `limiter[READ_COST](cost, entry?)` checks a cost, and the options of ENTRY_NAMES; returns what DECIDE takes. */
const READ_COST = methodName('readCost');

/** `limiter[TAKE_BACK](answer)`: as if what DECIDE returned had not been asked. */
const TAKE_BACK = methodName('takeBack');

/** `limiter[ANSWERS_AT_ONCE]`: whether its methods return no promises. Undefined for what is no limiter. */
const ANSWERS_AT_ONCE = methodName('answersAtOnce');

/** `limiter[COUNTS_REFUSALS]`: whether a refused attempt is counted, and refund takes it back. */
const COUNTS_REFUSALS = methodName('countsRefusals');

module.exports = {
  ANSWERS_AT_ONCE,
  ATTEMPT_WITHIN,
  BLOCK,
  COUNTS_REFUSALS,
  DECIDE,
  ENTRY_NAMES,
  IS_INNER,
  PEEK_WITHIN,
  READ_COST,
  SETS_MAX,
  TAKE_BACK,
  USAGE,
};
