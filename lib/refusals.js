// What every store refuses, in the same words.
'use strict';

const { failure, show, typeError } = require('./errors');

/** What is no id. */
function refuseId(id) {
  throw typeError(
    'ERR_ROLLGATE_ID',
    `id: expected a string, a finite number, a bigint, undefined or null, got ${show(id)}`,
  );
}

/** What is given as a callback and is none. */
function refuseCallback(callback) {
  throw typeError(
    'ERR_ROLLGATE_CALLBACK',
    `callback: expected a function or undefined, got ${show(callback)}`,
  );
}

function closedError() {
  return failure('ERR_ROLLGATE_CLOSED', 'the limiter is closed');
}

function refuseClosed() {
  throw closedError();
}

module.exports = { closedError, refuseCallback, refuseClosed, refuseId };
