// Shadow rules: tried out next to the rule that decides, and reported to the application only.
'use strict';

const { SHADOW } = require('../../../base/channels');
const { andThen, orElse, together } = require('../maybe-async');
const { tightestWindow } = require('../../../base/decision');

/**
 * @typedef {object} Trial
 * @property {object} decision of `limiter`
 * @property {object} limiter
 * @property {object} numbers what the application gets
 */

/**
 * `tryOut(questions, ask)` returns the Trials of shadow rules, or a promise of them; `ask(question)` returns a
 * decision or a promise of it. `fail(error)` reports what went wrong, which must not fail the request.
 */
function createTrials(logger) {
  function fail(error) {
    const what =
      'a shadow rule could not count a request, which was served as if there was no such rule.';
    logger.error('ROLLGATE_SHADOW_FAILED', what, error);
  }

  function tryOut(questions, ask) {
    const trials = questions.map((question) => {
      return orElse(() => andThen(ask(question), (decision) => conclude(question, decision)), fail);
    });
    return andThen(together(trials), (known) => known.filter((trial) => trial !== undefined));
  }

  return { tryOut, fail };
}

function conclude({ rule: { index, zone }, id }, decision) {
  const { maxInInterval: limit, used, remaining } = tightestWindow(decision.limits);
  const numbers = { rule: index, allowed: decision.allowed, limit, used, remaining };
  if (SHADOW.flag[0] !== 0) SHADOW.channel.publish({ id, ...numbers });
  return { decision, limiter: zone.limiter, numbers };
}

module.exports = { createTrials };
