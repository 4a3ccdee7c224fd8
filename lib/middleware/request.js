// What one request goes through: skip, key (or rule), attempt, report, then next() or the handler.
'use strict';

const { failure } = require('../errors');
const { UnknownCaller } = require('./authentication');
const { isPromise } = require('./maybe-async');
const { PASSED } = require('./pass-on-store-error');
const { RequestInfo } = require('./request-info');
const { setRetryAfter } = require('./retry-after');

/**
 * Every step answers at once where the limiter and the user's functions do: such a request meets no promise
 * at all and next() is called synchronously. Only a step that gets a promise hands a promise on. Errors
 * reach next(err) once; next() itself is called outside every try, so what it throws is not ours to catch.
 *
 * @param {object} settings as of options.js
 * @param {object} parts
 * @param {{ attempt(key: unknown): unknown } | undefined} parts.limiter undefined with rules
 * @param {{ zone: object, isShadow: boolean } | undefined} parts.place where requests are counted without
 *   rules; `zone.store` stands for that, `zone.namePolicies(req, res, decision)` is of policy-naming.js
 * @param {((req: object, res: object) => unknown) | undefined} parts.limitOf as of request-limit.js, with a
 *   limiter whose attempt(key, max) takes it
 * @param {{ decide: Function } | undefined} parts.rules as of rules/by-rules.js
 * @param {((req: object, res: object) => unknown) | undefined} parts.identify as of authentication.js, where
 *   it is not the key alone that tells who makes a request
 * @param {((...args: unknown[]) => void)[]} parts.headerWriters
 * @param {(() => void) | undefined} parts.onCountedAgain
 * @param {object | undefined} parts.outcomes as of outcome.js, where outcomes matter
 */
function createMiddleware(settings, parts) {
  const { skip, keyGenerator, handler, onAuthError, requestPropertyName } = settings;
  const { limiter, place, limitOf, rules, identify, headerWriters, onCountedAgain, outcomes } =
    parts;
  const sendsHeaders = headerWriters.length > 0;
  const count = chooseCount();

  function middleware(req, res, next) {
    let passes;
    try {
      const outcome = outcomes === undefined ? undefined : outcomes.watch(req, res);
      passes = skip === undefined ? count(req, res, outcome) : askSkip(req, res, outcome);
    } catch (error) {
      next(readableByNext(error));
      return undefined;
    }
    if (isPromise(passes)) return finishLater(passes, req, res, next);
    return finish(passes, req, res, next);
  }

  function askSkip(req, res, outcome) {
    const skipped = skip(req, res);
    return isPromise(skipped)
      ? goOnWith(skipped, afterSkip, req, res, outcome)
      : afterSkip(skipped, req, res, outcome);
  }

  function afterSkip(skipped, req, res, outcome) {
    return skipped ? true : count(req, res, outcome);
  }

  function chooseCount() {
    if (rules !== undefined) return countByRules;
    return identify === undefined ? findKey : findCaller;
  }

  function countByRules(req, res, outcome) {
    return rules.decide(req, res, (decision, id, rule) => {
      return report(decision, id, rule, req, res, outcome);
    });
  }

  function findCaller(req, res, outcome) {
    const caller = identify(req, res);
    return isPromise(caller)
      ? goOnWith(caller, countCaller, req, res, outcome)
      : countCaller(caller, req, res, outcome);
  }

  function countCaller(caller, req, res, outcome) {
    return caller instanceof UnknownCaller ? caller : attempt(caller.id, req, res, outcome);
  }

  function findKey(req, res, outcome) {
    const key = keyGenerator(req, res);
    return isPromise(key)
      ? goOnWith(key, attempt, req, res, outcome)
      : attempt(key, req, res, outcome);
  }

  function attempt(key, req, res, outcome) {
    return limitOf === undefined
      ? decided(limiter.attempt(key), key, req, res, outcome)
      : askLimit(key, req, res, outcome);
  }

  function askLimit(key, req, res, outcome) {
    const max = limitOf(req, res);
    return isPromise(max)
      ? whenLimitKnown(max, key, req, res, outcome)
      : decided(limiter.attempt(key, max), key, req, res, outcome);
  }

  async function whenLimitKnown(max, key, req, res, outcome) {
    return decided(limiter.attempt(key, await max), key, req, res, outcome);
  }

  function decided(decision, key, req, res, outcome) {
    return isPromise(decision)
      ? whenDecided(decision, key, req, res, outcome)
      : report(decision, key, place, req, res, outcome);
  }

  async function whenDecided(decision, key, req, res, outcome) {
    return report(await decision, key, place, req, res, outcome);
  }

  function report(decision, key, { zone, isShadow }, req, res, outcome) {
    if (decision === PASSED) return true;
    const nowMs = Date.now();
    const earlier = req[requestPropertyName];
    const info = new RequestInfo(decision, key, nowMs, zone.store, earlier);
    req[requestPropertyName] = info;
    if (outcome !== undefined) outcomes.decided(outcome, decision, zone.limiter, req, res);
    // Looked for without the check as well, since it keeps what a request remembers short.
    if (earlier !== undefined && RequestInfo.isCountedAgain(info)) onCountedAgain?.();
    if (isShadow) return passInShadow(info, decision);
    const names = zone.namePolicies(req, res, decision);
    return isPromise(names)
      ? whenNamed(names, decision, info, nowMs, res)
      : tell(names, decision, info, nowMs, res);
  }

  /** The client is told nothing of a limit that does not hold; the application is. */
  function passInShadow(info, decision) {
    info.shadow = true;
    info.limited = !decision.allowed;
    return true;
  }

  async function whenNamed(names, decision, info, nowMs, res) {
    return tell(await names, decision, info, nowMs, res);
  }

  function tell(names, decision, info, nowMs, res) {
    if (sendsHeaders) setHeaders(res, info, decision, nowMs, names);
    if (!decision.allowed && names !== undefined) RequestInfo.setViolated(info, decision, names);
    return decision.allowed;
  }

  /**
   * Headers that are sent already stay as they are. That is asked only of a response that takes no more: in
   * Express each property that is looked up in a response takes as long as several headers.
   */
  function setHeaders(res, info, decision, nowMs, names) {
    try {
      for (let i = 0; i < headerWriters.length; i++) {
        headerWriters[i](res, info, decision, nowMs, names);
      }
      if (!decision.allowed) setRetryAfter(res, decision);
    } catch (error) {
      if (!res.headersSent) throw error;
    }
  }

  function finish(passes, req, res, next) {
    if (passes && !(passes instanceof UnknownCaller)) {
      next();
      return undefined;
    }
    try {
      const handled =
        passes instanceof UnknownCaller
          ? answerUnknown(passes.error, req, res, next)
          : handler(req, res, next, settings);
      return isPromise(handled) ? forwardRejection(handled, next) : undefined;
    } catch (error) {
      next(readableByNext(error));
      return undefined;
    }
  }

  function answerUnknown(error, req, res, next) {
    if (onAuthError === undefined) throw error;
    return onAuthError(error, req, res, next);
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

// Functions of their own, so that the synchronous path allocates no closure.
async function goOnWith(promise, step, req, res, outcome) {
  return step(await promise, req, res, outcome);
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
