// The protocol of the scripts: arguments of a call, and from its reply to the numbers of decisions.
'use strict';

const { durationToMicros } = require('../clock');
const { NUMBERS } = require('../decision');
const failures = require('./failures');

/** A Lua number is exact up to here; durations and times stop at it. */
const LONGEST_MICROS = 2 ** 53;

/** The user's time as an argument; without one, the server has its own clock. */
function timeArgument(now) {
  return now === undefined ? '' : String(now);
}

/** A duration in ms as an argument, in us. */
function durationArgument(ms) {
  return String(Math.min(durationToMicros(ms), LONGEST_MICROS));
}

/** The arguments of every call under one policy, from ARGV[5] on. */
function policyArguments({ windows, minDifference, countBlocked, blockFor }) {
  return [
    countBlocked ? '1' : '0',
    durationArgument(minDifference),
    blockFor.map(durationArgument).join(),
    ...windows.flatMap(({ interval, maxInInterval }) => [
      durationArgument(interval),
      String(maxInInterval),
    ]),
  ];
}

/** ARGV[1] of an attempt on several keys. */
function attemptOn(keys) {
  return new Set(keys).size < keys.length ? 'attempt, keys repeat' : 'attempt';
}

/** As in core/policy.h: how many actions a log keeps, so that those under a small maximum count under a larger one. */
const LEAST_KEPT = 100;
const MOST_KEPT = 1000;

/**
 * `args` are the policy arguments. With SETS_MAX (see internal-methods.js), they are those of a refund, and
 * `within(max, records)` returns those of an attempt. A log is not cut under a small maximum, because a larger one
 * may follow. Other algorithms do not depend on earlier maxima.
 */
function createPolicyArguments(policy) {
  if (!policy.setsMax) return { args: policyArguments(policy), within: undefined };
  const [{ interval }] = policy.windows;
  const isLog = policy.algorithm === 'sliding-window-log';
  let most = LEAST_KEPT;
  const within = (max = 1, records = false) => {
    if (records) most = Math.max(most, Math.min(max, MOST_KEPT));
    const windows = [{ interval, maxInInterval: max }];
    const words = policyArguments({ ...policy, windows });
    return isLog ? [...words, `keep${most}`] : words;
  };
  return { args: within(), within };
}

const BITS_OF_BLOCKED = 7;

/** Clients may be configured to return numbers as strings. NaN if it is no integer. */
function readInteger(value) {
  if (typeof value === 'string' && /^-?\d+$/.test(value)) return Number(value);
  return Number.isInteger(value) ? value : Number.NaN;
}

function replyFailure() {
  return failures.reply('Redis gave something that is no answer to the question');
}

/** The id's key holds something that rollgate did not write. */
function foreignKeyFailure() {
  return failures.reply("the key of this id holds something that is not rollgate's");
}

/** Whole ms, rounded up. */
function toMs(micros) {
  return Math.ceil(micros / 1000);
}

/** Reads a brief reply into `numbers`; returns the failure it means, or null. */
function readBrief(reply, numbers) {
  if (!Array.isArray(reply) || reply.length !== 1) return replyFailure();
  return readTimeLeft(readInteger(reply[0]), numbers);
}

/** The same from its only integer. */
function readTimeLeft(timeLeft, numbers) {
  if (timeLeft === -1) return foreignKeyFailure();
  if (!(timeLeft >= 0)) return replyFailure();
  numbers[NUMBERS.BLOCKED] = timeLeft > 0 ? 1 : 0;
  numbers[NUMBERS.TIME_LEFT] = toMs(timeLeft);
  return null;
}

/** Reads full replies of `length` numbers each; returns the failure they mean, or null. */
function readFull(reply, numbers, length) {
  if (!Array.isArray(reply) || reply.length !== numbers.length) return replyFailure();
  for (let first = 0; first < reply.length; first += length) {
    const failed = readOne(reply, numbers, first, length);
    if (failed !== null) return failed;
  }
  return null;
}

/** Reads the integers of one decision. `reply` and `numbers` may be the same array. */
function readOne(reply, numbers, first, length) {
  const blocked = readInteger(reply[first]);
  if (blocked === -1) return foreignKeyFailure();
  if (!(blocked >= 0 && blocked <= BITS_OF_BLOCKED)) return replyFailure();
  numbers[first] = blocked;
  for (let i = 1; i < length; i++) {
    const integer = readInteger(reply[first + i]);
    if (Number.isNaN(integer) || (integer < 0 && i !== NUMBERS.AT)) return replyFailure();
    numbers[first + i] = isDuration(i) ? toMs(integer) : integer;
  }
  // Blocked without a wait and allowed with one are both inconsistent.
  const isConsistent = blocked === 0 ? numbers[first + 1] === 0 : numbers[first + 1] > 0;
  return isConsistent ? null : replyFailure();
}

function isDuration(i) {
  if (i >= NUMBERS.WINDOWS) return (i - NUMBERS.WINDOWS) % 2 === 1;
  return i === NUMBERS.TIME_LEFT || i === NUMBERS.RESET_IN || i === NUMBERS.WAIT;
}

/** Whether a refund found anything; throws for any other reply. */
function readRefund(reply) {
  const found = Array.isArray(reply) && reply.length === 1 ? readInteger(reply[0]) : Number.NaN;
  if (found === -1) throw foreignKeyFailure();
  if (found !== 0 && found !== 1) throw replyFailure();
  return found === 1;
}

/** Throws unless it is an integer of at least `least`. */
function checkInteger(reply, least) {
  if (!(readInteger(reply) >= least)) throw replyFailure();
}

module.exports = {
  attemptOn,
  checkInteger,
  createPolicyArguments,
  policyArguments,
  readBrief,
  readFull,
  readOne,
  readRefund,
  readTimeLeft,
  timeArgument,
};
