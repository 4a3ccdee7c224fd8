// The steps of one request: skip, key (or rule), attempt, report, then next() or the handler.
'use strict';

const { failure } = require('../../base/errors');
const { UnknownCaller } = require('./caller');
const { ClientGone } = require('./client');
const { setRetryAfter } = require('./headers');
const { PASSED } = require('./limiters');
const { andThen, isPromise } = require('./maybe-async');
const { RequestInfo } = require('./request-info');

/**
 * A step is synchronous if the limiter and the user's functions are: then next() is called synchronously and no
 * promise is made. Errors reach next(err) once. next() is called outside every try, so that errors of later
 * middleware are not caught here.
 *
 * @param {object} settings see options.js
 * @param {object} parts `rules` (see rules/index.js), or without rules `limiter` and `zone`, where requests
 *   are counted; `costOf` and `limitOf` as of createCostOf and createLimitOf, for the limiter's
 *   attempt(key, { cost }, max); `identify` as of
 *   caller.js, undefined if the key alone identifies callers; `headerWriters`; `onCountedAgain`;
 *   `onClientGone`; `outcomes`, undefined if no outcome leads to a refund
 */
function createMiddleware(settings, parts) {
  const { skip, keyGenerator, handler, onAuthError, requestPropertyName } = settings;
  const { limiter, zone, costOf, limitOf, rules, identify } = parts;
  const { headerWriters, onCountedAgain, onClientGone, outcomes } = parts;
  const sendsHeaders = headerWriters.length > 0;
  const count = chooseCount();

  function middleware(req, res, next) {
    let passes;
    try {
      const outcome = outcomes === undefined ? undefined : outcomes.watch(req, res);
      passes = skip === undefined ? count(req, res, outcome) : askSkip(req, res, outcome);
    } catch (error) {
      fail(error, next);
      return undefined;
    }
    if (isPromise(passes)) return finishLater(passes, req, res, next);
    return finish(passes, req, res, next);
  }

  function askSkip(req, res, outcome) {
    return goOn(skip(req, res), afterSkip, req, res, outcome);
  }

  function afterSkip(skipped, req, res, outcome) {
    return skipped ? true : count(req, res, outcome);
  }

  function chooseCount() {
    if (rules !== undefined) return countByRules;
    return identify === undefined ? findKey : findCaller;
  }

  function countByRules(req, res, outcome) {
    return rules.decide(
      req,
      res,
      (decision, { id, rule, cost }) => report(decision, id, rule.zone, cost, req, res, outcome),
      (trials) => reportTrials(trials, req, res, outcome),
    );
  }

  function findCaller(req, res, outcome) {
    return goOn(identify(req, res), countCaller, req, res, outcome);
  }

  function countCaller(caller, req, res, outcome) {
    return caller instanceof UnknownCaller ? caller : attempt(caller.id, req, res, outcome);
  }

  function findKey(req, res, outcome) {
    return goOn(keyGenerator(req, res), attempt, req, res, outcome);
  }

  function attempt(key, req, res, outcome) {
    if (costOf !== undefined) return attemptAtCost(key, req, res, outcome);
    if (limitOf === undefined) {
      return goOn(limiter.attempt(key), reportHere, key, req, res, outcome);
    }
    return goOn(limitOf(req, res), attemptWithin, key, req, res, outcome);
  }

  function attemptWithin(max, key, req, res, outcome) {
    return goOn(limiter.attempt(key, undefined, max), reportHere, key, req, res, outcome);
  }

  function attemptAtCost(key, req, res, outcome) {
    return andThen(costOf(req, res), (cost) => {
      return andThen(limitOf?.(req, res), (max) => {
        return andThen(limiter.attempt(key, { cost }, max), (decision) => {
          return report(decision, key, zone, cost, req, res, outcome);
        });
      });
    });
  }

  function reportHere(decision, key, req, res, outcome) {
    return report(decision, key, zone, 1, req, res, outcome);
  }

  /** `zone` is where the request is counted. */
  function report(decision, key, zone, cost, req, res, outcome) {
    if (decision === PASSED) return true;
    const nowMs = Date.now();
    const earlier = req[requestPropertyName];
    const info = new RequestInfo(decision, key, cost, nowMs, zone, earlier);
    req[requestPropertyName] = info;
    if (!RequestInfo.isCounted(info)) return true;
    if (outcome !== undefined) outcomes.decided(outcome, decision, zone.limiter, req, res);
    // Called without the check as well, because it shortens the chain of earlier infos.
    if (earlier !== undefined && RequestInfo.isCountedAgain(info)) onCountedAgain();
    const names = zone.namePolicies(req, res, decision);
    return goOn(names, tellClient, decision, info, nowMs, res);
  }

  /** Only the application sees what shadow rules say, if a rule has decided. */
  function reportTrials(trials, req, res, outcome) {
    for (const { decision, limiter } of outcome === undefined ? [] : trials) {
      outcomes.decided(outcome, decision, limiter, req, res);
    }
    const info = req[requestPropertyName];
    if (RequestInfo.is(info)) info.shadow = trials.map((trial) => trial.report);
  }

  function tellClient(names, decision, info, nowMs, res) {
    if (sendsHeaders) setHeaders(res, info, decision, nowMs, names);
    if (!decision.allowed && names !== undefined) RequestInfo.setViolated(info, decision, names);
    return decision.allowed;
  }

  /**
   * Headers that were already sent stay as they are. headersSent is read only after an error: in Express,
   * reading one property of a response takes as long as setting several headers.
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
      fail(error, next);
      return;
    }
    await finish(passes, req, res, next);
  }

  /** A request whose client has left is refused without an answer, which nobody would get. */
  function fail(error, next) {
    if (error instanceof ClientGone) onClientGone();
    else next(readableByNext(error));
  }

  return middleware;
}

/** andThen without a closure, which the synchronous path would allocate for each request. */
function goOn(value, step, a, b, c, d) {
  return isPromise(value) ? goOnLater(value, step, a, b, c, d) : step(value, a, b, c, d);
}

async function goOnLater(promise, step, a, b, c, d) {
  return step(await promise, a, b, c, d);
}

async function forwardRejection(promise, next) {
  try {
    await promise;
  } catch (error) {
    next(readableByNext(error));
  }
}

/** next() takes falsy values, 'route' and 'router' as "go on": if thrown, they would let the request pass. */
function readableByNext(error) {
  if (error && error !== 'route' && error !== 'router') return error;
  return failure(
    'ERR_ROLLGATE_THROWN',
    `a function given to rateLimit threw ${String(error)}`,
    error,
  );
}

module.exports = { createMiddleware };
