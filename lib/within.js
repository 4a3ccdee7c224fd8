// Limiters whose maximum is told at every attempt: what the middleware makes of `limit` as a function.
'use strict';

/**
 * A limiter made with the option `[SETS_MAX]: true` has one window, and these two methods in place of
 * `attempt` and `peek`: `limiter[ATTEMPT_WITHIN](id, max)` and `limiter[PEEK_WITHIN](id, max)`. What is
 * counted of an id does not depend on the maximum it is judged by. With GCRA there is no such limiter.
 */
const SETS_MAX = Symbol('setsMax');
const ATTEMPT_WITHIN = Symbol('attemptWithin');
const PEEK_WITHIN = Symbol('peekWithin');

module.exports = { ATTEMPT_WITHIN, PEEK_WITHIN, SETS_MAX };
