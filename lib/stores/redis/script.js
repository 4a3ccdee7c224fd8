// The protocol of the scripts, which the head of src/redis/scripts/frame.lua defines: the arguments of a run, and from
// its reply to the numbers of decisions.
'use strict';

const { durationToMicros } = require('../../base/clock');
const { BLOCKED_BY_COUNT, NUMBERS, isDuration } = require('../../base/decision');
const { OPERATIONS, isAttempt } = require('../remote/operations');
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

/** The numbers of every group under one policy: from count_blocked on, without amounts. */
function policyNumbers({ windows, minDifference, countBlocked, blockFor }, keep = 0) {
  return [
    countBlocked ? 1 : 0,
    microsOf(minDifference),
    keep,
    blockFor.length,
    ...windows.flatMap(({ interval, maxInInterval }) => [microsOf(interval), maxInInterval]),
    ...blockFor.map(microsOf),
  ];
}

/** The numbers of a group from operation on; settled_at and settled_of are `at` and `generation`. */
const callNumbers = (operation, isFull, now = SERVER_TIME, cost = 1, at = 0, generation = 0) => {
  return [operation, isFull ? 1 : 0, now, cost, at, generation];
};

/** The `cost` of callNumbers for the result of amountsOf or settledAmountsOf. */
function costNumberOf({ isWeighted }, cost) {
  if (typeof cost === 'number') return cost;
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

/** A group as one word. */
function groupWord(numbers) {
  const word = Buffer.allocUnsafe(8 * numbers.length);
  for (const [i, number] of numbers.entries()) word.writeDoubleLE(number, 8 * i);
  return word;
}

/** ARGV of a run on keys under one policy. `call` is of callNumbers; each key has these `amounts`. */
function runArguments(keys, call, ofPolicy, hasLongLogs, amounts = []) {
  let reading = 'together';
  if (!isAttempt(call[0]) || hasLongLogs) reading = 'apart';
  else if (new Set(keys).size < keys.length) reading = 'together, keys repeat';
  const ofKeys = keys.flatMap(() => Array.from(amounts));
  return [reading, groupWord([keys.length, ...call, ...ofPolicy, ...ofKeys])];
}

/** A log of more actions than this is not read whole: as in src/redis/scripts/sliding_window_log.lua. */
const MOST_OF_SHORT = 257;

/** As in core/policy.h: how many actions a log keeps, so that those under a small maximum count under a larger one. */
const LEAST_KEPT = 100;
const MOST_KEPT = 1000;

/**
 * `numbers` are those of the policy; `hasLongLogs` is for runArguments. With SETS_MAX (see internal-methods.js),
 * `numbers` are those to settle an attempt, and `within(max, operation)` returns those of an attempt. A log is not cut
 * under a small maximum, because a larger one may follow. Other algorithms do not depend on earlier maxima.
 */
function createPolicyNumbers(policy) {
  const isLog = policy.algorithm === 'sliding-window-log';
  const isLong = ({ maxInInterval }) => policy.setsMax || maxInInterval > MOST_OF_SHORT;
  const hasLongLogs = isLog && (policy.isWeighted || policy.windows.some(isLong));
  if (!policy.setsMax) return { numbers: policyNumbers(policy), hasLongLogs };
  const [{ interval }] = policy.windows;
  let most = LEAST_KEPT;
  const within = (maxInInterval = 1, operation = OPERATIONS.PEEK) => {
    if (operation !== OPERATIONS.PEEK) most = Math.max(most, Math.min(maxInInterval, MOST_KEPT));
    return policyNumbers({ ...policy, windows: [{ interval, maxInInterval }] }, isLog ? most : 1);
  };
  return { numbers: within(), within, hasLongLogs };
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

const toMs = (micros) => Math.ceil(micros / 1000);

/** The only integer of a reply, or NaN. */
function onlyInteger(reply) {
  return Array.isArray(reply) && reply.length === 1 ? readInteger(reply[0]) : Number.NaN;
}

/** Reads a brief reply into `numbers`; returns the failure it means, or null. */
function readBrief(reply, numbers) {
  return readTimeLeft(onlyInteger(reply), numbers);
}

/** The same from its only integer. */
function readTimeLeft(timeLeft, numbers) {
  if (timeLeft === -1) return FOREIGN_KEY;
  if (!(timeLeft >= 0)) return NO_ANSWER;
  numbers[NUMBERS.BLOCKED] = timeLeft > 0 ? 1 : 0;
  numbers[NUMBERS.TIME_LEFT] = toMs(timeLeft);
  return null;
}

/** Reads a full reply: the decisions that belong at these places of `numbers`, of `length` numbers each. */
function readFull(reply, numbers, length, places = [0]) {
  if (!Array.isArray(reply) || reply.length !== places.length * length) return NO_ANSWER;
  for (const [i, place] of places.entries()) {
    const own = numbers.subarray(place * length, (place + 1) * length);
    const failed = readOne(reply, i * length, own);
    if (failed !== null) return failed;
  }
  return null;
}

/** Reads the integers of one decision. `reply` and `numbers` may be the same array. */
function readOne(reply, first, numbers) {
  const blocked = readInteger(reply[first]);
  if (blocked === -1) return FOREIGN_KEY;
  const never = blocked === NEVER;
  if (!never && !(blocked >= 0 && blocked <= BITS_OF_BLOCKED)) return NO_ANSWER;
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

/** Whether anything was left of the attempt that was settled, true for a block; throws for any other reply. */
function readChange(reply, operation) {
  const found = onlyInteger(reply);
  if (found === -1) throw FOREIGN_KEY;
  if (found !== 1 && (found !== 0 || operation === OPERATIONS.BLOCK)) throw NO_ANSWER;
  return found === 1;
}

/** Throws unless it is an integer of at least `least`. */
function checkInteger(reply, least) {
  if (!(readInteger(reply) >= least)) throw NO_ANSWER;
}

module.exports = {
  amountsOf,
  callNumbers,
  checkInteger,
  costNumberOf,
  createPolicyNumbers,
  groupWord,
  operandsOf,
  policyNumbers,
  readBrief,
  readChange,
  readFull,
  readOne,
  readTimeLeft,
  runArguments,
};
