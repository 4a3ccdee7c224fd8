// What the calls of a limiter ask its script, under one policy.
'use strict';

const { decisionLength } = require('../../base/decision');
const { OPERATIONS, isAttempt, isDecision } = require('../remote/operations');
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

/** No calendars. */
const NO_NUMBERS = [];

/** How many numbers follow those of a decision. */
const numbersBehind = (operation) => (operation === OPERATIONS.LEASE ? 2 : 0);

class Questions {
  #policy;
  #calendars; // by window; undefined if none has one
  #common = []; // those that many calls have in common
  #ofLeases = []; // by how many amounts a call has
  #aroundCommon = NO_NUMBERS; // the numbers of calendars in these

  constructor(policy) {
    this.#policy = policy;
    const calendars = policy.windows.map(({ calendar }) => calendar);
    if (calendars.some((calendar) => calendar !== undefined)) this.#calendars = calendars;
  }

  /** The amounts of the key of a call that decides: a Float64Array, or one number; 0 and 1 are part of the question. */
  amountsOf(cost) {
    return script.amountsOf(this.#policy, cost);
  }

  /** The question of a call that decides. Calls of different costs share a group. */
  of({ operation, isFull, now, cost, terms }) {
    const around = this.#numbersAround(now, terms?.calendars);
    const number = script.costNumberOf(this.#policy, cost);
    const call = script.callNumbers(operation, isFull, now, number);
    if (now !== undefined || terms !== undefined) return this.#create(call, around, terms?.limits);
    if (around.some((numbers, i) => numbers !== this.#aroundCommon[i])) this.#common = [];
    this.#aroundCommon = around;
    const place = 8 * operation + (isFull ? 4 : 0) + number + 2; // the number is -2 to 1
    this.#common[place] ??= this.#create(call, around);
    return this.#common[place];
  }

  /** The question of a call that settles or blocks, with operandsOf the call. */
  ofChange({ operation, now }, { amounts, at, generation }) {
    const number = script.settledCostNumberOf(this.#policy, amounts);
    const call = script.callNumbers(operation, false, now, number, at, generation);
    return this.#create(call, NO_NUMBERS);
  }

  /** The question of a call about leases. */
  ofLease({ operation, now, amounts: { length } }) {
    const number = this.#policy.isWeighted ? script.AMOUNTS : 0;
    const call = script.callNumbers(operation, true, now, number, length);
    if (now !== undefined) return this.#create(call, NO_NUMBERS);
    this.#ofLeases[length] ??= this.#create(call, NO_NUMBERS);
    return this.#ofLeases[length];
  }

  /** The numbers of each calendar window: the server's clock chooses a window, this one those to choose from. */
  #numbersAround(now, calendars = this.#calendars) {
    if (this.#calendars === undefined) return NO_NUMBERS;
    const ms = now === undefined ? Date.now() : now / 1000;
    return calendars.flatMap((calendar) => calendar?.around(ms) ?? []);
  }

  #create(call, around, limits) {
    const [operation, full] = call;
    const { algorithm, windows } = this.#policy;
    const head = script.groupHead(call, script.policyNumbers(this.#policy, limits, around));
    return {
      algorithm,
      head,
      headText: head.latin1Slice(),
      isApart: script.hasLongLogs(this.#policy, limits) || !isAttempt(operation),
      isChange: !isDecision(operation) && operation !== OPERATIONS.LEASE,
      isFull: full === 1,
      length: full === 1 ? decisionLength(windows.length) + numbersBehind(operation) : 1,
    };
  }
}

module.exports = { Questions };
