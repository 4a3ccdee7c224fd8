// TODO(merge): remove; the oracle is test/conformance/oracle.js.
'use strict';

const { Oracle: OneOracle, decisionOf } = require('../conformance/oracle');

/** The oracle of the log, with answers in ms. */
class Oracle {
  constructor(policy) {
    this.policy = policy;
    this.oracle = new OneOracle({ blockFor: [], ...policy, algorithm: 'sliding-window-log' });
  }

  attempt(now, cost = 1) {
    return this.publicOf(this.oracle.attempt(now, cost));
  }

  peek(now, cost = 1) {
    return this.publicOf(this.oracle.peek(now, cost));
  }

  publicOf(answer) {
    const { attempt, at } = answer;
    return { ...decisionOf(answer, this.policy), attempt, at };
  }

  refund(attempt) {
    const isThere = this.oracle.refundable.has(attempt);
    if (isThere) this.oracle.takeBack(attempt, 0);
    return isThere;
  }

  clear() {
    this.oracle.clear();
  }
}

module.exports = { Oracle };
