// passOnStoreError: a limiter that lets a request pass, uncounted, where the real one fails.
'use strict';

const { isPromise } = require('./is-promise');

/** What `attempt` answers in place of a decision. */
const PASSED = Symbol('passed');

function passOnStoreError(limiter, notices) {
  function pass(error) {
    // The request's fault, not the store's: who sends what is no id would never be limited.
    if (error?.code === 'ERR_ROLLGATE_ID') throw error;
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
