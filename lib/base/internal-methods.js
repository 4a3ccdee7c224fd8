// Names of options and of methods of limiters that only other parts of the package use.
'use strict';

/**
 * The name of a method, the same in all copies of the package: a program may have several, for example after
 * jest.resetModules(), and then a limiter of one is used with functions of another.
 */
const methodName = (name) => Symbol.for(`rollgate.${name}`);

/** The option `[IS_INNER]: true` makes a limiter that publishes no decisions and no evictions. */
const IS_INNER = Symbol('isInner');

/**
 * `limiter[ATTEMPT_OR_REFUSE](id, { cost, limits })`: `attempt`, for adapters. A cost that can never pass is refused and
 * leaves no trace; its `timeLeft` is Infinity. A limit of Infinity leaves a window uncounted; the decision has only the
 * windows that were counted, or all if none was.
 */
const ATTEMPT_OR_REFUSE = methodName('attemptOrRefuse');

/** `limiter[ASSERT_FITS]({ cost, limits })` throws what is wrong with them, and ERR_ROLLGATE_COST if the cost can never pass. */
const ASSERT_FITS = methodName('assertFits');

/** `limiter[USAGE](id, options)`: a Decision at cost 0; options as of `usage`. Its `limits` show the current usage; only a block refuses it. */
const USAGE = methodName('usage');

/** `limiter[DECIDE](id, demand, records)`: a Decision on what READ_COST returned; `records` is one of RECORDS (decision.js). */
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
  ASSERT_FITS,
  ATTEMPT_OR_REFUSE,
  BLOCK,
  COUNTS_REFUSALS,
  DECIDE,
  ENTRY_NAMES,
  IS_INNER,
  READ_COST,
  TAKE_BACK,
  USAGE,
};
