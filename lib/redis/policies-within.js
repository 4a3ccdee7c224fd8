// The arguments of a script for attempts that bring a maximum of their own: see lib/within.js.
'use strict';

const { policyArguments } = require('./script');

/**
 * A log keeps as many actions as the largest window allows. So behind the window of an attempt stands
 * one with the largest maximum there has been: it never refuses what the first allows, and sees to it
 * that an attempt under a small maximum does not cut what one under a large one needs. Counts do not
 * depend on any maximum.
 */
function windowsWithin({ algorithm, windows }, max = 1, most = 1) {
  const [{ interval }] = windows;
  const own = { interval, maxInInterval: max };
  return algorithm === 'sliding-window-log' ? [own, { interval, maxInInterval: most }] : [own];
}

/** A function of the maximum of an attempt, and whether it records anything. */
function createPoliciesWithin(policy) {
  let most = 1;
  return (max, records) => {
    if (records) most = Math.max(most, max);
    return policyArguments({ ...policy, windows: windowsWithin(policy, max, Math.max(most, max)) });
  };
}

module.exports = { createPoliciesWithin, windowsWithin };
