// What the calls of a limiter ask its script, under one policy.
'use strict';

const { decisionLength } = require('../../base/decision');
const { isAttempt, isDecision } = require('../remote/operations');
const script = require('./script');

/**
 * @typedef {{
 *   algorithm: string,
 *   head: Buffer,
 *   headText: string,
 *   isApart: boolean,
 *   isChange: boolean,
 *   isFull: boolean,
 *   length: number,
 * }} Question `head` is of groupHead (script.js); calls whose heads are equal share a group; `isApart`: keys are not
 *   read together with others; `isChange`: it settles or blocks; `length`: of the reply for a key, in integers
 */

class Questions {
  #policy;
  #policyNumbers;
  #common = []; // those that many calls have in common

  constructor(policy) {
    this.#policy = policy;
    this.#policyNumbers = script.createPolicyNumbers(policy);
  }

  /** The amounts of the key of a call that decides: a Float64Array, or one number; 0 and 1 are part of the question. */
  amountsOf(cost) {
    return script.amountsOf(this.#policy, cost);
  }

  /** The question of a call that decides. Calls of different costs share a group. */
  of({ operation, isFull, now, max, cost }) {
    const { within } = this.#policyNumbers;
    const isCommon = now === undefined && within === undefined;
    const number = script.costNumberOf(this.#policy, cost);
    const place = 8 * operation + (isFull ? 4 : 0) + number + 2; // the number is -2 to 1
    if (isCommon && this.#common[place] !== undefined) return this.#common[place];
    const call = script.callNumbers(operation, isFull, now, number);
    const question = this.#create(call, within?.(max, operation));
    if (isCommon) this.#common[place] = question;
    return question;
  }

  /** The question of a call that settles or blocks, with operandsOf the call. */
  ofChange({ operation, now }, { amounts, at, generation }) {
    const number = script.settledCostNumberOf(this.#policy, amounts);
    return this.#create(script.callNumbers(operation, false, now, number, at, generation));
  }

  #create(call, ofPolicy = this.#policyNumbers.numbers) {
    const [operation, full] = call;
    const { algorithm, windows } = this.#policy;
    const head = script.groupHead(call, ofPolicy);
    return {
      algorithm,
      head,
      headText: head.latin1Slice(),
      isApart: this.#policyNumbers.hasLongLogs || !isAttempt(operation),
      isChange: !isDecision(operation),
      isFull: full === 1,
      length: full === 1 ? decisionLength(windows.length) : 1,
    };
  }
}

module.exports = { Questions };
