// What the behaviours share: words for time, and what each algorithm makes of a full window.
'use strict';

const { RULES } = require('../oracle');

/** Aligned windows of a minute and of ten begin here; ms. */
const START_MS = 1_700_000_400_000;
const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const MINUTE_MS = 60_000;

/** How many us a window of a minute stays full that is filled as it begins, by `max` actions at once. */
const fullFor = (algorithm, max) => RULES[algorithm].fullFor(MINUTE, max);

/** The error that a call throws or rejects with. */
async function failureOf(call) {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error('the call did not fail');
}

const codeOf = async (call) => (await failureOf(call)).code;

const canCountBlocked = (algorithm) => RULES[algorithm].countsBlocked;

module.exports = {
  MINUTE,
  MINUTE_MS,
  SECOND,
  START_MS,
  canCountBlocked,
  codeOf,
  failureOf,
  fullFor,
};
