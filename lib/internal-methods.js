// Names of an option and of methods of limiters that only the middleware uses.
'use strict';

/**
 * The option `[SETS_MAX]: true` makes a limiter whose maximum comes with every attempt, for `limit` as a
 * function. It has one window, and ATTEMPT_WITHIN and PEEK_WITHIN replace `attempt` and `peek`. What is
 * counted for an id does not depend on the maximum. Not possible with GCRA.
 */
const SETS_MAX = Symbol('setsMax');

/** `limiter[ATTEMPT_WITHIN](id, max)` */
const ATTEMPT_WITHIN = Symbol('attemptWithin');

/** `limiter[PEEK_WITHIN](id, max)` */
const PEEK_WITHIN = Symbol('peekWithin');

/** `limiter[USAGE](id)`: a Decision at cost 0. Its `limits` show the current usage; only a block refuses it. */
const USAGE = Symbol('usage');

module.exports = { ATTEMPT_WITHIN, PEEK_WITHIN, SETS_MAX, USAGE };
