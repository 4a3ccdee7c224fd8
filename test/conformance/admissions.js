// The rule of each algorithm, checked afterwards on the record of what was let through.
'use strict';

const { RULES } = require('./oracle');

/** Whether { at, cost } in the order of their times, in us, keep to a policy, refusals left aside. */
function keepsTo({ algorithm, limits, minDifference }, admissions) {
  const isApart = admissions.every(
    ({ at }, i) => i === 0 || at - admissions[i - 1].at >= minDifference,
  );
  return isApart && limits.every((limit) => RULES[algorithm].keepsTo(admissions, limit));
}

module.exports = { keepsTo };
