// The body of a refusal: the option message, or what it gives as a function.
'use strict';

const { isPromise } = require('./maybe-async');

/** Sets the status, finds the message and hands it to `send(res, body)`; a promise where the message is. */
function withMessage(req, res, { message, statusCode }, send) {
  // First, so that a message function finds it, and may set another.
  res.statusCode = statusCode;
  if (typeof message !== 'function') {
    unlessAnswered(res, message, send);
    return undefined;
  }
  const body = message(req, res);
  if (isPromise(body)) return body.then((settled) => unlessAnswered(res, settled, send));
  unlessAnswered(res, body, send);
  return undefined;
}

/** A message function may have answered by itself, or the application before. */
function unlessAnswered(res, body, send) {
  if (!res.writableEnded) send(res, body);
}

module.exports = { withMessage };
