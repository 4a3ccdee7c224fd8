// The protocol of the scripts, which the head of src/redis/scripts/frame.lua defines: the arguments of a run, and from
// its reply to the numbers of decisions.
'use strict';

const { durationToMicros } = require('../../base/clock');
const { BLOCKED_BY_COUNT, NUMBERS, isDuration } = require('../../base/decision');
const { OPERATIONS } = require('../remote/operations');
const failures = require('./failures');

/** A Lua number is exact up to here. */
const LONGEST_MICROS = 2 ** 53;

/** `time` in frame.lua: the server's own. */
const SERVER_TIME = -(2 ** 62);

/** `cost` in frame.lua if each key has amounts: see the table of costs there. */
const ONE_AMOUNT = -1;
const AMOUNTS = -2;

/** A duration in ms, in us. */
const microsOf = (ms) => Math.min(durationToMicros(ms), LONGEST_MICROS);

/**
 * The numbers of every group under one policy: from count_blocked on, without amounts. `limits` are those of a call
 * that has its own; `around` has the numbers of each calendar at the time of the call.
 */
function policyNumbers({ windows, minDifference, countBlocked, blockFor }, limits, around = []) {
  const own = windows.map(({ maxInInterval }) => maxInInterval);
  const numbersOf = ({ interval, calendar }, i) => {
    const length = microsOf(interval);
    return [calendar === undefined ? length : -length, (limits ?? own)[i]];
  };
  return [
    countBlocked ? 1 : 0,
    microsOf(minDifference),
    limits === undefined ? 0 : Math.max(...own),
    windows.length,
    blockFor.length,
    ...windows.flatMap(numbersOf),
    ...blockFor.map(microsOf),
    ...around.flatMap((numbers) => [...numbers]),
  ];
}

/** The numbers of a group from operation on; settled_at and settled_of are `at` and `generation`. */
const callNumbers = (operation, isFull, now = SERVER_TIME, cost = 1, at = 0, generation = 0) => {
  return [operation, isFull ? 1 : 0, now, cost, at, generation];
};

/** The `cost` of callNumbers for a call that decides at this cost: a number above 1 is an amount. */
function costNumberOf({ isWeighted }, cost) {
  if (isWeighted) return AMOUNTS;
  return cost > 1 ? ONE_AMOUNT : cost;
}

/** The same for the result of settledAmountsOf: a number is the cost itself. */
function settledCostNumberOf({ isWeighted }, amounts) {
  if (typeof amounts === 'number') return amounts;
  return isWeighted ? AMOUNTS : ONE_AMOUNT;
}

/** A cost in each of `count` windows. */
const inEachWindow = (cost, count) =>
  typeof cost === 'number' ? new Float64Array(count).fill(cost) : cost;

/** The cost of a call: a number, or a Float64Array of amounts, which limiters with named windows always send. */
function amountsOf({ isWeighted, windows }, cost) {
  return isWeighted ? inEachWindow(cost, windows.length) : cost;
}

/** The same for a call that settles. */
function settledAmountsOf({ isWeighted, windows: { length } }, cost, actual) {
  if (!isWeighted) return actual === 0 ? cost : Float64Array.of(cost, actual);
  return Float64Array.from([...inEachWindow(cost, length), ...inEachWindow(actual, length)]);
}

/** A group without its amounts and the number of its keys. `call` is of callNumbers. */
function groupHead(call, ofPolicy) {
  const numbers = [...call, ...ofPolicy];
  const head = Buffer.alloc(8 * numbers.length);
  for (const [i, number] of numbers.entries()) head.writeDoubleLE(number, 8 * i);
  return head;
}

/** A group as one word. */
function groupWord({ question: { head }, keys, amounts }) {
  const end = 8 + head.length;
  const word = Buffer.allocUnsafe(end + 8 * amounts.length);
  word.writeDoubleLE(keys.length);
  word.set(head, 8);
  for (let i = 0; i < amounts.length; i++) word.writeDoubleLE(amounts[i], end + 8 * i);
  return word;
}

/**
 * The words of a run behind the script. A group has `keys`, the `amounts` of all of them one behind the other, and a
 * `question` with the `head` of groupHead and `isApart`, whether its keys are not read together with others. `mayRepeat`:
 * whether keys may be equal.
 */
function runWords(groups, mayRepeat = true) {
  const keys = [].concat(...groups.map((group) => group.keys)); // much faster than flatMap
  let reading = 'together';
  if (groups.some(({ question }) => question.isApart)) reading = 'apart';
  else if (mayRepeat && new Set(keys).size < keys.length) reading = 'together, keys repeat';
  return [String(keys.length), ...keys, reading, ...groups.map(groupWord)];
}

/** A log of more actions than this is not read whole: as in src/redis/scripts/sliding_window_log.lua. */
const MOST_OF_SHORT = 257;

/** Whether a log may be long under the policy, or under the limits of a call. */
function hasLongLogs({ algorithm, isWeighted, windows }, limits = []) {
  if (algorithm !== 'sliding-window-log') return false;
  const isLong = (max) => max > MOST_OF_SHORT;
  return (
    isWeighted || windows.some((window) => isLong(window.maxInInterval)) || limits.some(isLong)
  );
}

const BITS_OF_BLOCKED = 7;
/** In place of these bits: it can never pass. */
const NEVER = 9;

/** Clients may be configured to return numbers as strings. NaN if it is no integer. */
function readInteger(value) {
  if (typeof value === 'string' && /^-?\d+$/.test(value)) return Number(value);
  return Number.isInteger(value) ? value : Number.NaN;
}

const NO_ANSWER = failures.reply('Redis returned an unexpected reply');

/** The id's key holds something that rollgate did not write. */
const FOREIGN_KEY = failures.reply("the key of this id holds something that is not rollgate's");

/** The failures by what a reply has in place of its numbers. */
const FAILURES = new Map([
  [-1, FOREIGN_KEY],
  [-2, failures.wrongTime()],
]);

const toMs = (micros) => Math.ceil(micros / 1000);

/** The integers of a reply; none unless it is exactly this many. */
function readIntegers(reply, count) {
  if (!Array.isArray(reply) || reply.length !== count) return [];
  const integers = reply.map(readInteger);
  return integers.some(Number.isNaN) ? [] : integers;
}

/** Reads a brief reply, an integer, into `numbers`; returns the failure it means, or null. */
function readTimeLeft(timeLeft, numbers) {
  if (!(timeLeft >= 0)) return FAILURES.get(timeLeft) ?? NO_ANSWER;
  numbers[NUMBERS.BLOCKED] = timeLeft > 0 ? 1 : 0;
  numbers[NUMBERS.TIME_LEFT] = toMs(timeLeft);
  return null;
}

/** The same for a full reply, from its integer at `first` on. `reply` and `numbers` may be the same array. */
function readOne(reply, first, numbers) {
  const blocked = readInteger(reply[first]);
  const never = blocked === NEVER;
  if (!never && !(blocked >= 0 && blocked <= BITS_OF_BLOCKED)) {
    return FAILURES.get(blocked) ?? NO_ANSWER;
  }
  numbers[NUMBERS.BLOCKED] = never ? BLOCKED_BY_COUNT : blocked;
  for (let i = 1; i < numbers.length; i++) {
    const integer = readInteger(reply[first + i]);
    if (Number.isNaN(integer) || (integer < 0 && i !== NUMBERS.AT)) return NO_ANSWER;
    numbers[i] = isDuration(i) ? toMs(integer) : integer;
  }
  // Blocked without a wait and allowed with one are both inconsistent.
  const waits = numbers[NUMBERS.TIME_LEFT] > 0;
  if (never) numbers[NUMBERS.TIME_LEFT] = Number.POSITIVE_INFINITY;
  return blocked > 0 === waits ? null : NO_ANSWER;
}

/** What a call that settles or blocks sends besides: `at` and `generation` as in callNumbers. */
function operandsOf(policy, { operation, receipt, actual, ms }) {
  if (operation === OPERATIONS.BLOCK) return { amounts: 0, at: microsOf(ms), generation: 0 };
  const { at, cost, generation } = receipt;
  return { amounts: settledAmountsOf(policy, cost, actual), at, generation };
}

/** Whether anything was left of the attempt that was settled, true for a block; throws for any other integer. */
function readChange([found], operation) {
  if (found === -1) throw FOREIGN_KEY;
  if (found !== 1 && (found !== 0 || operation === OPERATIONS.BLOCK)) throw NO_ANSWER;
  return found === 1;
}

/** Throws unless it is an integer of at least `least`. */
function checkInteger(reply, least) {
  if (!(readInteger(reply) >= least)) throw NO_ANSWER;
}

module.exports = {
  AMOUNTS,
  SERVER_TIME,
  amountsOf,
  callNumbers,
  checkInteger,
  costNumberOf,
  groupHead,
  hasLongLogs,
  operandsOf,
  policyNumbers,
  readChange,
  readIntegers,
  readOne,
  readTimeLeft,
  runWords,
  settledCostNumberOf,
};
