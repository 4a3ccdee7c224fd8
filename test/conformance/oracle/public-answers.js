// An oracle's answer as a limiter's users see it.
'use strict';

const { BLOCKED_BY } = require('.');

/** Whole microseconds to whole ms, rounded up. */
const toMs = (micros) => Math.ceil(micros / 1000);

function reasonOf(blockedBy) {
  if (blockedBy === 0) return null;
  if (blockedBy === BLOCKED_BY.BLOCK) return 'block';
  return blockedBy & BLOCKED_BY.COUNT ? 'count' : 'minDifference';
}

/** What attempt() and peek() give. */
function decisionOf(answer, { limits }) {
  return {
    allowed: answer.allowed,
    timeLeft: toMs(answer.timeLeft),
    actionsLeft: answer.actionsLeft,
    resetIn: toMs(answer.resetIn),
    blockedBy: reasonOf(answer.blockedBy),
    limits: answer.windows.map(({ used, remaining, resetIn }, i) => ({
      interval: limits[i].interval / 1000,
      maxInInterval: limits[i].maxInInterval,
      used,
      remaining,
      resetIn: toMs(resetIn),
    })),
  };
}

/** What limitWithInfo() and wouldLimitWithInfo() give. */
function infoOf(answer) {
  return {
    blocked: !answer.allowed,
    blockedDueToCount: (answer.blockedBy & BLOCKED_BY.COUNT) !== 0,
    blockedDueToMinDifference: (answer.blockedBy & BLOCKED_BY.MIN_DIFFERENCE) !== 0,
    millisecondsUntilAllowed: toMs(answer.allowed ? answer.wait : answer.timeLeft),
    actionsRemaining: answer.actionsLeft,
  };
}

module.exports = { decisionOf, infoOf, toMs };
