// passOnStoreError: a limiter that lets a request pass, uncounted, where the real one fails.
'use strict';

const { isPromise } = require('./maybe-async');

/** What `attempt` answers in place of a decision. */
const PASSED = Symbol('passed');

/**
 * The request's fault, or that of the function `limit`, and not the store's: who sends what is no id would
 * never be limited.
 */
const NOT_THE_STORES = ['ERR_ROLLGATE_ID', 'ERR_ROLLGATE_LIMIT'];

function passOnStoreError(limiter, notices) {
  function pass(error) {
    if (NOT_THE_STORES.includes(error?.code)) throw error;
    notices.error(
      'ROLLGATE_PASSED_ON_STORE_ERROR',
      'no decision could be made, so the request passed without being counted (passOnStoreError).',
      error,
    );
    return PASSED;
  }

  return {
    attempt(key, max) {
      let decision;
      try {
        decision = limiter.attempt(key, max);
      } catch (error) {
        return pass(error);
      }
      return isPromise(decision) ? decision.then(undefined, pass) : decision;
    },
  };
}

module.exports = { PASSED, passOnStoreError };
