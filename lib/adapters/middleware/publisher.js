// What follows a decision: req.rateLimit for the application, headers for the client, refunds by the outcome.
'use strict';

const { headerWriters, setRetryAfter } = require('./headers');
const { PASSED } = require('./limiters');
const { andThen } = require('./maybe-async');
const { setViolated } = require('./refusal');
const { RequestInfo } = require('./request-info');

class Publisher {
  #settings;
  #outcomes;
  #logger;
  #writers;

  /** @param {object} settings see options.js */
  constructor(settings, outcomes, logger) {
    this.#settings = settings;
    this.#outcomes = outcomes;
    this.#logger = logger;
    this.#writers = headerWriters(settings);
  }

  /** Returns whether the request passes, or a promise of it. `id` was counted at `cost` in `zone`. */
  publish(decision, id, zone, cost, { req, res, outcome }) {
    if (decision === PASSED) return true;
    const { requestPropertyName, validate } = this.#settings;
    const nowMs = Date.now();
    const earlier = req[requestPropertyName];
    const info = new RequestInfo(decision, id, cost, nowMs, zone, earlier);
    req[requestPropertyName] = info;
    if (!RequestInfo.isCounted(info)) return true;
    if (outcome !== undefined) this.#outcomes.decided(outcome, decision, zone.limiter, req, res);
    // Asked without the check as well, because it shortens the chain of earlier infos.
    if (earlier !== undefined && RequestInfo.isCountedAgain(info) && validate.singleCount) {
      const what = 'one request was counted twice in one limiter.';
      this.#logger.warn('ROLLGATE_DOUBLE_COUNT', what);
    }
    return andThen(zone.namePolicies(req, res, decision), (names) => {
      this.#setHeaders(res, info, decision, nowMs, names);
      if (!decision.allowed && names !== undefined) {
        setViolated(info, RequestInfo.violatedOf(info, decision, names));
      }
      return decision.allowed;
    });
  }

  /** Only the application sees what shadow rules say, if a rule has decided. */
  publishTrials(trials, { req, res, outcome }) {
    for (const { decision, limiter } of outcome === undefined ? [] : trials) {
      this.#outcomes.decided(outcome, decision, limiter, req, res);
    }
    const info = req[this.#settings.requestPropertyName];
    if (RequestInfo.is(info)) info.shadow = trials.map(({ numbers }) => numbers);
  }

  /**
   * Headers that were already sent stay as they are. headersSent is read only after an error: in Express,
   * reading one property of a response takes as long as setting several headers.
   */
  #setHeaders(res, info, decision, nowMs, names) {
    const writers = this.#writers;
    if (writers.length === 0) return;
    try {
      for (let i = 0; i < writers.length; i++) writers[i](res, info, decision, nowMs, names);
      if (!decision.allowed) setRetryAfter(res, decision);
    } catch (error) {
      if (!res.headersSent) throw error;
    }
  }
}

module.exports = { Publisher };
