// The oracles of all ids of a trace, which perform its operations.
'use strict';

const { Oracle } = require('./oracle');
const { maximaOf, termsOf } = require('./plans');

class Oracles {
  #oracles = new Map();
  #attempts = new Map(); // by the place of the operation

  constructor(policy) {
    this.policy = policy;
  }

  of(id) {
    if (!this.#oracles.has(id)) this.#oracles.set(id, new Oracle(this.policy));
    return this.#oracles.get(id);
  }

  /** The answer or answers; undefined, and nothing changes, if a store may answer either way. */
  perform(operation, place) {
    const { kind, now, id, ids, cost, of, actual, length, maxima } = operation;
    const oracle = this.of(id);
    const terms = termsOf(operation.terms, this.policy);
    if (terms?.limits !== undefined) this.#sees(terms.limits);
    // Only a shortened trace has it: limits that were set before are missing.
    if (kind !== 'record' && this.#isError(cost, terms)) return undefined;
    switch (kind) {
      case 'attempt': {
        const answer = oracle.attempt(now, cost, terms);
        if (answer !== undefined) this.#attempts.set(place, answer.attempt);
        return answer;
      }
      case 'call':
      case 'callback':
      case 'limitWithInfo':
        return oracle.attempt(now);
      case 'peek':
        return oracle.peek(now, cost, terms);
      case 'wouldLimitWithInfo':
        return oracle.peek(now);
      case 'usage':
        return oracle.peek(now, 0, terms);
      case 'record':
        return oracle.record(now, cost, terms);
      case 'attemptMany':
        return this.#attemptEach(ids, now);
      case 'setLimits':
        this.#follow(maximaOf(this.policy, maxima));
        return null;
      case 'refund':
      case 'settle':
        return oracle.settle(this.#attempts.get(of), now, actual);
      case 'block':
        oracle.block(now, length);
        return null;
      case 'clear':
        oracle.clear();
        return null;
      case 'clearAll':
        for (const each of this.#oracles.values()) each.clear();
        return null;
      default:
        throw new Error(`no such operation: ${kind}`);
    }
  }

  /** Whether a cost is above a maximum of the limiter that the call does not replace. */
  #isError(cost, terms) {
    return this.policy.limits.some(({ maxInInterval }, i) => {
      const ofWindow = Array.isArray(cost) ? cost[i] : cost;
      return terms?.limits?.[i] === undefined && ofWindow > maxInInterval;
    });
  }

  /** Limits of calls, whatever the id. */
  #sees(limits) {
    const seen = Math.max(this.policy.seen ?? 0, ...limits.map((limit) => limit ?? 0));
    if (seen !== this.policy.seen) this.#follow({ ...this.policy, seen });
  }

  #follow(policy) {
    this.policy = policy;
    for (const each of this.#oracles.values()) each.setPolicy(policy);
  }

  #attemptEach(ids, now) {
    const saved = ids.map((id) => [this.of(id), this.of(id).state]);
    const answers = ids.map((id) => this.of(id).attempt(now));
    if (!answers.includes(undefined)) return answers;
    for (const [oracle, state] of saved) oracle.become(state);
    return undefined;
  }
}

module.exports = { Oracles };
