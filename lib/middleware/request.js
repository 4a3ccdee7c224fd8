// What one request goes through: skip, key, attempt, report, then next() or the handler.
'use strict';

const { failure } = require('../errors');
const { requestInfo } = require('./request-info');
const { setRetryAfter } = require('./retry-after');

/**
 * Every step answers at once where the limiter and the user's functions do: such a request meets no promise
 * at all and next() is called synchronously. Only a step that gets a promise hands a promise on. Errors
 * reach next(err) once; next() itself is called outside every try, so what it throws is not ours to catch.
 */
function createMiddleware(settings, limiter, headerWriters) {
  const { skip, keyGenerator, handler, requestPropertyName } = settings;
  const sendsHeaders = headerWriters.length > 0;

  function middleware(req, res, next) {
    let passes;
    try {
      passes = skip === undefined ? findKey(req, res) : askSkip(req, res);
    } catch (error) {
      next(readableByNext(error));
      return undefined;
    }
    if (isPromise(passes)) return finishLater(passes, req, res, next);
    return finish(passes, req, res, next);
  }

  function askSkip(req, res) {
    const skipped = skip(req, res);
    return isPromise(skipped)
      ? whenKnown(skipped, afterSkip, req, res)
      : afterSkip(skipped, req, res);
  }

  function afterSkip(skipped, req, res) {
    return skipped ? true : findKey(req, res);
  }

  function findKey(req, res) {
    const key = keyGenerator(req, res);
    return isPromise(key) ? whenKnown(key, attempt, req, res) : attempt(key, req, res);
  }

  function attempt(key, req, res) {
    const decision = limiter.attempt(key);
    return isPromise(decision)
      ? whenDecided(decision, key, req, res)
      : report(decision, key, req, res);
  }

  async function whenDecided(decision, key, req, res) {
    return report(await decision, key, req, res);
  }

  function report(decision, key, req, res) {
    const nowMs = Date.now();
    const info = requestInfo(decision, key, nowMs);
    req[requestPropertyName] = info;
    if (sendsHeaders && !res.headersSent) {
      for (let i = 0; i < headerWriters.length; i++) headerWriters[i](res, info, decision, nowMs);
      if (!decision.allowed) setRetryAfter(res, decision);
    }
    return decision.allowed;
  }

  function finish(passes, req, res, next) {
    if (passes) {
      next();
      return undefined;
    }
    let handled;
    try {
      handled = handler(req, res, next, settings);
    } catch (error) {
      next(readableByNext(error));
      return undefined;
    }
    return isPromise(handled) ? forwardRejection(handled, next) : undefined;
  }

  async function finishLater(promise, req, res, next) {
    let passes;
    try {
      passes = await promise;
    } catch (error) {
      next(readableByNext(error));
      return;
    }
    await finish(passes, req, res, next);
  }

  return middleware;
}

function isPromise(value) {
  return typeof value === 'object' && value !== null && typeof value.then === 'function';
}

// Functions of their own, so that the synchronous path allocates no closure.
async function whenKnown(promise, step, req, res) {
  return step(await promise, req, res);
}

async function forwardRejection(promise, next) {
  try {
    await promise;
  } catch (error) {
    next(readableByNext(error));
  }
}

/** next() takes nothing, 'route' and 'router' for "go on": thrown, they would let the request through. */
function readableByNext(error) {
  if (error && error !== 'route' && error !== 'router') return error;
  return failure(
    'ERR_ROLLGATE_THROWN',
    `a function given to rateLimit threw ${String(error)}`,
    error,
  );
}

module.exports = { createMiddleware };
