// The limiter of a middleware whose limit is a function: its maximum is told at every attempt.
'use strict';

const { BOUND_TO_LIMIT } = require('../algorithms');
const { typeError } = require('../errors');
const RateLimiter = require('../limiter');
const { USAGE, ATTEMPT_WITHIN, PEEK_WITHIN, SETS_MAX } = require('../internal-methods');
const { andThen } = require('./maybe-async');

/** One count for each id, judged by the maximum that attempt(id, max) is told; 0 refuses and counts nothing. */
function createLimiterByRequest(limiterOptions, closedLimiter) {
  assertPossible(limiterOptions);
  const limiter = new RateLimiter({ ...limiterOptions, maxInInterval: 1, [SETS_MAX]: true });
  return {
    attempt: (id, max) => (max === 0 ? closedLimiter.attempt() : limiter[ATTEMPT_WITHIN](id, max)),
    refund: (decision) => limiter.refund(decision),
    clear: (id) => limiter.clear(id),
    [USAGE]: (id) => {
      return andThen(limiter[PEEK_WITHIN](id, Number.MAX_SAFE_INTEGER), withoutAttempt);
    },
  };
}

/** Whoever peeks under a maximum that nobody reaches finds what is used, the attempt imagined included. */
function withoutAttempt(decision) {
  const [window] = decision.limits;
  if (decision.allowed) window.used -= 1;
  return decision;
}

function assertPossible({ algorithm }) {
  if (!BOUND_TO_LIMIT.includes(algorithm)) return;
  throw typeError(
    'ERR_ROLLGATE_OPTION',
    `option 'limit': a function is not possible with algorithm '${algorithm}', whose memory depends on ` +
      'the limit',
  );
}

module.exports = { createLimiterByRequest };
