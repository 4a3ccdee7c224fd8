// The arguments of a script for attempts that bring a maximum of their own: see lib/within.js.
'use strict';

const { policyArguments } = require('./script');

/**
 * A function of the maximum of an attempt; without one it gives what is right for refunds. A log must not
 * be cut under a small maximum that may be followed by a large one; counts do not depend on any.
 */
function createPoliciesWithin(policy) {
  const [{ interval }] = policy.windows;
  const keeps = policy.algorithm === 'sliding-window-log' ? ['keep'] : [];
  return (max = 1) => [
    ...policyArguments({ ...policy, windows: [{ interval, maxInInterval: max }] }),
    ...keeps,
  ];
}

module.exports = { createPoliciesWithin };
