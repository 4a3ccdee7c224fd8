// What a message asked the server: which attempts it allowed, and whether it settles one. Read from the words of a run
// and its reply, as the head of src/redis/scripts/frame.lua defines them.
'use strict';

const { OPERATIONS, isAttempt } = require('../../../lib/stores/remote/operations');

const ID = /\{(.*)\}/;
/** Numbers of a full reply, without those of windows; what a reply about leases has more. */
const FULL = 7;
const OF_LEASE = 2;
/** The place of the attempt's cost among the amounts of a call about leases. */
const COST_OF_LEASE = 6;

/** The numbers of a group by their names, as far as they are needed. */
function readGroup(word) {
  const numbers = Array.from({ length: word.length / 8 }, (_, i) => word.readDoubleLE(8 * i));
  const [keyCount, operation, isFull, , cost, settledAt] = numbers;
  const windowCount = numbers[10];
  const isLease = operation === OPERATIONS.LEASE;
  const amountCount = isLease ? settledAt : Number(cost < 0);
  const amounts = numbers.slice(numbers.length - keyCount * amountCount);
  const placeOfCost = isLease ? COST_OF_LEASE : 0;
  return {
    keyCount,
    operation,
    length: isFull ? FULL + 2 * windowCount + (isLease ? OF_LEASE : 0) : 1,
    costOf: (i) => (amountCount === 0 ? cost : amounts[i * amountCount + placeOfCost]),
  };
}

/** Those that were allowed: { id, cost }. */
function allowedIn([name, , keyCount, ...rest], reply) {
  if (name !== 'evalsha') return [];
  const keys = rest.slice(0, keyCount);
  const groups = rest.slice(Number(keyCount) + 1).map(readGroup);
  const allowed = [];
  let key = 0;
  let place = 0;
  for (const { keyCount: count, operation, length, costOf } of groups) {
    const hasAttempts = isAttempt(operation) || operation === OPERATIONS.LEASE;
    for (let i = 0; i < count; i++) {
      if (hasAttempts && reply[place] === 0 && costOf(i) > 0) {
        allowed.push({ id: ID.exec(keys[key])[1], cost: costOf(i) });
      }
      key += 1;
      place += length;
    }
  }
  return allowed;
}

/** Whether the message settles an attempt that is recorded: the server does that again if it is repeated. */
function settlesAttempt([name, , keyCount, ...rest]) {
  if (name !== 'evalsha') return false;
  const groups = rest.slice(Number(keyCount) + 1);
  return groups.some(
    (word) => Buffer.isBuffer(word) && readGroup(word).operation === OPERATIONS.SETTLE,
  );
}

module.exports = { allowedIn, settlesAttempt };
