// What an attempt asks for: a cost, and terms of its own. Checked once, and again for a call that waits while limits change.
'use strict';

const { MOST, costAt, costError, isAtLeast, readCost } = require('../options/costs');
const { areAtMost, readTerms } = require('./terms');

/**
 * @typedef {object} Demand
 * @property {CheckedCost} cost
 * @property {Terms | undefined} terms
 * @property {object} given the user's options
 */

/**
 * Checks the options of an attempt. A cost above a limit of the call is valid: it is refused.
 *
 * @param {object} checked options of the limiter
 * @param {number} [most] Infinity, if that is allowed as a limit
 * @returns {Demand}
 * @throws TypeError, RangeError ERR_ROLLGATE_COST, ERR_ROLLGATE_LIMIT, ERR_ROLLGATE_OPTION
 */
function readDemand(given, checked, most) {
  const terms = readTerms(given, checked, most);
  const { cost, limits } = given;
  if (cost === undefined) return { cost: 1, terms, given };
  // A number as limit replaces that of the only window.
  const bound = typeof limits === 'number' ? MOST : limits;
  return { cost: readCost(cost, checked, bound), terms, given };
}

/** @throws also ERR_ROLLGATE_COST for a cost above a limit of the call */
function readFittingDemand(given, checked, most) {
  const demand = readDemand(given, checked, most);
  const { cost, terms } = demand;
  for (const [i, limit] of terms?.maxima?.entries() ?? []) {
    if (costAt(cost, i) <= limit) continue;
    const { name } = checked.windows[i];
    const place = name === undefined ? 'cost' : `cost of ${JSON.stringify(name)}`;
    throw costError(place, `at most ${limit}, the limit of this call`, costAt(cost, i));
  }
  return demand;
}

/** The demand of a call that waits: the user may change the objects. */
function readLastingDemand(given, checked) {
  const demand = readFittingDemand(given, checked);
  const copy = (value) => (typeof value === 'object' ? { ...value } : value);
  const { cost, limits, calendar } = given;
  demand.given = { cost: copy(cost), limits: copy(limits), calendar: copy(calendar) };
  return demand;
}

/** Whether what is refused to the other one is refused to this one, too. */
function isDemandAtLeast(demand, other, windows) {
  return isAtLeast(demand.cost, other.cost) && areAtMost(demand.terms, other.terms, windows);
}

module.exports = { isDemandAtLeast, readDemand, readFittingDemand, readLastingDemand };
