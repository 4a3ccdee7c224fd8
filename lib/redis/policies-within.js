// The arguments of a script for attempts that bring a maximum of their own: see lib/within.js.
'use strict';

const { policyArguments } = require('./script');

/** As in core/policy.h: as far as refusals under a small maximum count under a large one. */
const LEAST_KEPT = 100;
const MOST_KEPT = 1000;

/**
 * A function of the maximum of an attempt, and whether it records anything; without them it gives what is
 * right for refunds. A log is not cut under a small maximum that may be followed by a large one; counts do
 * not depend on any.
 */
function createPoliciesWithin(policy) {
  const [{ interval }] = policy.windows;
  const isLog = policy.algorithm === 'sliding-window-log';
  let most = LEAST_KEPT;
  return (max = 1, records = false) => {
    if (records) most = Math.max(most, Math.min(max, MOST_KEPT));
    const windows = [{ interval, maxInInterval: max }];
    const words = policyArguments({ ...policy, windows });
    return isLog ? [...words, `keep${most}`] : words;
  };
}

module.exports = { createPoliciesWithin };
