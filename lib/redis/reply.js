// From the script's reply to the numbers of decisions; what makes no sense is refused here.
'use strict';

const { NUMBERS } = require('../decision');
const failures = require('./failures');

const BITS_OF_BLOCKED = 7;

/** Clients can be told to give numbers as strings. NaN if it is no integer. */
function readInteger(value) {
  if (typeof value === 'string' && /^-?\d+$/.test(value)) return Number(value);
  return Number.isInteger(value) ? value : Number.NaN;
}

function refuse() {
  return failures.reply('Redis gave something that is no answer to the question');
}

/** Something else than a log of rollgate is at the id's key. */
function refuseKey() {
  return failures.reply("the key of this id holds something that is not rollgate's");
}

/** Whole ms, rounded up. */
function toMs(micros) {
  return Math.ceil(micros / 1000);
}

/** Takes a brief reply; returns the failure it means, or null. */
function readBrief(reply, numbers) {
  if (!Array.isArray(reply) || reply.length !== 1) return refuse();
  return readTimeLeft(readInteger(reply[0]), numbers);
}

/** The same of its one integer. */
function readTimeLeft(timeLeft, numbers) {
  if (timeLeft === -1) return refuseKey();
  if (!(timeLeft >= 0)) return refuse();
  numbers[NUMBERS.BLOCKED] = timeLeft > 0 ? 1 : 0;
  numbers[NUMBERS.TIME_LEFT] = toMs(timeLeft);
  return null;
}

/** Takes `count` full replies, each of `length` numbers; returns the failure they mean, or null. */
function readFull(reply, numbers, offset, count, length) {
  if (!Array.isArray(reply) || reply.length !== count * length) return refuse();
  for (let first = 0; first < reply.length; first += length) {
    const failed = readOne(reply, first, numbers, offset + first, length);
    if (failed !== null) return failed;
  }
  return null;
}

/** Takes the integers of one decision, which may be where their numbers go. */
function readOne(reply, first, numbers, offset, length) {
  const blocked = readInteger(reply[first]);
  if (blocked === -1) return refuseKey();
  if (!(blocked >= 0 && blocked <= BITS_OF_BLOCKED)) return refuse();
  numbers[offset] = blocked;
  for (let i = 1; i < length; i++) {
    const integer = readInteger(reply[first + i]);
    if (Number.isNaN(integer) || (integer < 0 && i !== NUMBERS.AT)) return refuse();
    numbers[offset + i] = isDuration(i) ? toMs(integer) : integer;
  }
  // Refused for no time, or allowed only after some: neither can be told a caller.
  const isConsistent = blocked === 0 ? numbers[offset + 1] === 0 : numbers[offset + 1] > 0;
  return isConsistent ? null : refuse();
}

function isDuration(i) {
  if (i >= NUMBERS.WINDOWS) return (i - NUMBERS.WINDOWS) % 2 === 1;
  return i === NUMBERS.TIME_LEFT || i === NUMBERS.RESET_IN || i === NUMBERS.WAIT;
}

/** Whether a refund found anything; an Error if that is not what came. */
function readRefund(reply) {
  const found = Array.isArray(reply) && reply.length === 1 ? readInteger(reply[0]) : Number.NaN;
  if (found === -1) return refuseKey();
  return found === 0 || found === 1 ? found === 1 : refuse();
}

/** Of a command that tells how many keys it found; the failure that anything else means, or null. */
function checkCount(reply) {
  return readInteger(reply) >= 0 ? null : refuse();
}

/** Throws unless it is the reply of PTTL, whatever it says of the key. */
function checkProbe(reply) {
  if (!(readInteger(reply) >= -2)) throw refuse();
}

module.exports = {
  checkCount,
  checkProbe,
  readBrief,
  readFull,
  readOne,
  readRefund,
  readTimeLeft,
};
