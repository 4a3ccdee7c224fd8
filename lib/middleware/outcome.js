// skipFailedRequests and skipSuccessfulRequests: a request's attempt is taken back once its outcome is known.
'use strict';

const { isPromise } = require('./maybe-async');

/**
 * `watch(req, res)` before anything is awaited, so that no event is missed; `decided(outcome, decision,
 * limiter, req, res)` whenever there is something to take back, where it was counted. The outcome may come
 * first: a client may leave while the store is being asked. Of requests without a decision, such as skipped
 * ones, nobody is asked how they ended.
 */
function createOutcomes(settings, notices) {
  const { skipFailedRequests, skipSuccessfulRequests, requestWasSuccessful } = settings;

  function watch(req, res) {
    const outcome = {
      counts: [],
      isFinished: false,
      isUnwanted: false,
    };
    res.once('finish', () => {
      outcome.isFinished = true;
      if (outcome.counts.length > 0) judge(outcome, req, res);
    });
    if (skipFailedRequests) {
      // The client left while an earlier middleware was busy: no event tells of it any more.
      if (res.destroyed && !res.writableEnded) takeBack(outcome);
      res.once('close', () => {
        if (!res.writableEnded) takeBack(outcome);
      });
      res.once('error', () => takeBack(outcome));
    }
    return outcome;
  }

  async function judge(outcome, req, res) {
    try {
      const answer = requestWasSuccessful(req, res);
      const wasSuccessful = isPromise(answer) ? await answer : answer;
      if (wasSuccessful ? skipSuccessfulRequests : skipFailedRequests) takeBack(outcome);
    } catch (error) {
      notices.error(
        'ROLLGATE_OUTCOME_UNKNOWN',
        'requestWasSuccessful failed, so the request stays counted.',
        error,
      );
    }
  }

  function takeBack(outcome) {
    if (outcome.isUnwanted) return;
    outcome.isUnwanted = true;
    for (const count of outcome.counts) refund(count);
  }

  function decided(outcome, decision, limiter, req, res) {
    const count = { decision, limiter };
    outcome.counts.push(count);
    if (outcome.isUnwanted) refund(count);
    else if (outcome.isFinished) judge(outcome, req, res);
  }

  /** Of a refusal there is nothing to take back, which a store need not be asked. */
  async function refund({ decision, limiter }) {
    if (!decision.allowed) return;
    try {
      await limiter.refund(decision);
    } catch (error) {
      notices.error(
        'ROLLGATE_REFUND_FAILED',
        'a request could not be taken back, so it stays counted.',
        error,
      );
    }
  }

  return { watch, decided };
}

module.exports = { createOutcomes };
