// skipFailedRequests and skipSuccessfulRequests: refunds a request's attempt once its outcome is known.
'use strict';

const { COUNTS_REFUSALS } = require('../../base/internal-methods');
const { isClosed, onceAt, rawOf, whenClosed } = require('./closing');
const { andThen, orElse } = require('./maybe-async');

/** Whether the client cancelled its stream of HTTP/2 before the response ended. What the application ends later is not sent. */
const isCancelled = ({ stream }) => stream?.aborted === true;

/**
 * Whether the client left before the response ended. A response that was sent through the stream of HTTP/2 has ended,
 * although `writableEnded` is false.
 */
function isCutOff(raw) {
  return isCancelled(raw) || !(raw.writableEnded || raw.stream?.headersSent);
}

/**
 * Call `watch(req, res)` before anything is awaited, so that no event is missed, and `decided(outcome,
 * decision, limiter, req, res)` after each decision. The outcome may come first: a client may disconnect while
 * the store decides. requestWasSuccessful is not called for requests without a decision, such as skipped ones.
 * Returns undefined if no outcome leads to a refund.
 */
function createOutcomes(settings, logger) {
  const { skipFailedRequests, skipSuccessfulRequests, requestWasSuccessful } = settings;
  if (!skipFailedRequests && !skipSuccessfulRequests) return undefined;

  function watch(req, res) {
    const raw = rawOf(res);
    const outcome = { counts: [], isFinished: false, isUnwanted: false };
    onceAt('finish', raw, () => {
      // HTTP/2 emits it for a cancelled stream, too. The status of what was sent through the stream is not known.
      if (!raw.writableEnded || isCancelled(raw)) return;
      outcome.isFinished = true;
      if (outcome.counts.length > 0) judge(outcome, req, res);
    });
    if (skipFailedRequests) {
      const close = () => {
        if (isCutOff(raw)) takeBack(outcome);
      };
      // The client disconnected during an earlier middleware: no event will follow.
      if (isClosed(raw)) close();
      whenClosed(raw, close);
      onceAt('error', raw, () => takeBack(outcome));
    }
    return outcome;
  }

  function judge(outcome, req, res) {
    const settle = (wasSuccessful) => {
      if (wasSuccessful ? skipSuccessfulRequests : skipFailedRequests) takeBack(outcome);
    };
    const what = 'requestWasSuccessful failed, so the request stays counted.';
    orElse(
      () => andThen(requestWasSuccessful(req, res), settle),
      (error) => logger.error('ROLLGATE_OUTCOME_UNKNOWN', what, error),
    );
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

  /** A refused attempt has nothing to refund, unless it was counted. */
  function refund({ decision, limiter }) {
    if (!decision.allowed && !limiter[COUNTS_REFUSALS]) return;
    const what = 'a request could not be taken back, so it stays counted.';
    orElse(
      () => limiter.refund(decision),
      (error) => logger.error('ROLLGATE_REFUND_FAILED', what, error),
    );
  }

  return { watch, decided };
}

module.exports = { createOutcomes };
