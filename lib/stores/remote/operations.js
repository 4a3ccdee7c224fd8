// What a remote store asks its backend for.
'use strict';

/** The operations of calls: the first seven are `operation` in frame.lua. */
const OPERATIONS = {
  PEEK: 0,
  ATTEMPT: 1,
  IF_ALLOWED: 2,
  SETTLE: 3,
  BLOCK: 4,
  RECORD: 5,
  LEASE: 6, // of a backend on Redis
  CLEAR: 7,
  PROBE: 8, // whether the store answers for this id
};

const isAttempt = (operation) =>
  operation === OPERATIONS.ATTEMPT || operation === OPERATIONS.IF_ALLOWED;

/** Whether its result is the numbers of a decision. */
const isDecision = (operation) =>
  operation <= OPERATIONS.IF_ALLOWED || operation === OPERATIONS.RECORD;

/** Promises the result of a call, which `ask` is given with its `done`. Rejects with its failure. */
function askFor(ask, call) {
  return new Promise((resolve, reject) => {
    const done = (failed, result) => (failed === null ? resolve(result) : reject(failed));
    ask({ ...call, done });
  });
}

module.exports = { OPERATIONS, askFor, isAttempt, isDecision };
