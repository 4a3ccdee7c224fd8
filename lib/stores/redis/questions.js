// What the calls of a limiter ask a script: the heads of their groups, encoded once for calls that ask the same.
'use strict';

const { decisionLength } = require('../../base/decision');
const { isAttempt, isDecision } = require('../remote/operations');
const { callNumbers, createPolicyNumbers, groupHead } = require('./script');

const BRIEF_NUMBERS = new Float64Array(2);

/** The questions of a limiter under one policy, as requests.js needs them. */
class Questions {
  #algorithm;
  #policyNumbers;
  #fullNumbers;
  #known = [];

  constructor(policy) {
    this.#algorithm = policy.algorithm;
    this.#policyNumbers = createPolicyNumbers(policy);
    this.#fullNumbers = new Float64Array(decisionLength(policy.windows.length));
  }

  /** Of a call that decides. `cost` is of costNumberOf, at most 1. */
  of({ operation, isFull, now, max }, cost) {
    const { numbers, within } = this.#policyNumbers;
    const isCommon = now === undefined && within === undefined;
    const place = 8 * operation + (isFull ? 4 : 0) + cost + 2; // of the costs -2 to 1
    if (isCommon && this.#known[place] !== undefined) return this.#known[place];
    const ofPolicy = within === undefined ? numbers : within(max, operation);
    const question = this.#create(operation, callNumbers(operation, isFull, now, cost), ofPolicy);
    if (isCommon) this.#known[place] = question;
    return question;
  }

  /** Of a call that settles or blocks. `at` and `generation` are of operandsOf. */
  ofChange({ operation, now }, cost, { at, generation }) {
    const call = callNumbers(operation, false, now, cost, at, generation);
    return this.#create(operation, call, this.#policyNumbers.numbers);
  }

  #create(operation, call, ofPolicy) {
    const [, isFull] = call;
    const head = groupHead(call, ofPolicy);
    return {
      algorithm: this.#algorithm,
      head,
      headText: head.latin1Slice(), // equal for equal heads, whose calls may be one group
      isApart: this.#policyNumbers.hasLongLogs || !isAttempt(operation),
      isChange: !isDecision(operation),
      isFull: isFull === 1,
      numbers: isFull ? this.#fullNumbers : BRIEF_NUMBERS, // where those of a reply are read into
      replyLength: isFull ? this.#fullNumbers.length : 1,
    };
  }
}

module.exports = { Questions };
