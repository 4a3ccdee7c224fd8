// The steps of one request: skip, count, then next() or the handler.
'use strict';

const { failure } = require('../../base/errors');
const { UnknownCaller } = require('./caller');
const { ClientGone } = require('./client');
const { andThen, isPromise, orElse } = require('./maybe-async');

/**
 * A step is synchronous if the limiter and the user's functions are: then next() is called synchronously and no
 * promise is made. Errors reach next(err) once. next() is called outside every try, so that errors of later
 * middleware are not caught here.
 *
 * @param {object} settings see options.js
 * @param {object} parts `counter.count(request)` says whether the request passes, or promises it (see
 *   one-limiter.js and rules/index.js); `outcomes`, undefined if no outcome leads to a refund; `logger`
 */
function createMiddleware(settings, { counter, outcomes, logger }) {
  const { skip, handler, onAuthError, validate } = settings;

  function middleware(req, res, next) {
    let passes;
    try {
      passes = decide(req, res);
    } catch (error) {
      return fail(error, req, res, next);
    }
    if (isPromise(passes)) return finishLater(passes, req, res, next);
    return finish(passes, req, res, next);
  }

  function decide(req, res) {
    const outcome = outcomes?.watch(req, res);
    const request = { req, res, outcome, id: undefined, cost: undefined }; // one-limiter.js sets the last two
    if (skip === undefined) return counter.count(request);
    return andThen(skip(req, res), countUnlessSkipped, request);
  }

  function countUnlessSkipped(isSkipped, request) {
    return isSkipped ? true : counter.count(request);
  }

  function finish(passes, req, res, next) {
    if (!passes) return answer(() => handler(req, res, next, settings), next);
    next();
    return undefined;
  }

  async function finishLater(promise, req, res, next) {
    let passes;
    try {
      passes = await promise;
    } catch (error) {
      return fail(error, req, res, next);
    }
    return finish(passes, req, res, next);
  }

  /** A request whose client has left is refused without an answer, which nobody would get. */
  function fail(error, req, res, next) {
    if (error instanceof UnknownCaller) {
      return answer(() => onAuthError(error.error, req, res, next), next);
    }
    if (!(error instanceof ClientGone)) {
      next(readableByNext(error));
    } else if (validate.ip && !error.isUsual) {
      const what = 'a client left before its request was counted, so the request was dropped.';
      logger.warn('ROLLGATE_CLIENT_GONE', what);
    }
    return undefined;
  }

  return middleware;
}

/** Calls a user's function that answers the request. */
function answer(handle, next) {
  const handled = orElse(handle, (error) => next(readableByNext(error)));
  return andThen(handled, () => undefined);
}

/** next() takes falsy values, 'route' and 'router' as "go on": if thrown, they would let the request pass. */
function readableByNext(error) {
  if (error && error !== 'route' && error !== 'router') return error;
  return failure(
    'ERR_ROLLGATE_THROWN',
    `a function in the options of the middleware threw ${String(error)}`,
    error,
  );
}

module.exports = { createMiddleware };
