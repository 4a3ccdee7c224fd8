// blockEverywhere: ids that are refused on every rule for as long as a block lasts.
'use strict';

const RateLimiter = require('../../limiter');
const { USAGE } = require('../../internal-methods');
const { isPromise, andThen } = require('../maybe-async');
const { storeOptionsFor } = require('./zones');

/** Parts of a block, each of a millisecond where there are no more than these. */
const MOST_PARTS = 1_000_000;

/**
 * A block of each length is an action in a limiter of the same store by GCRA, where it leaks away steadily: of
 * a block that has begun before, the action is as large as what is left. While anything is left there is
 * no room for a whole one. So blocks are known wherever the counts are.
 *
 * @returns {object | undefined} undefined where no rule blocks everywhere
 */
function createBlocks({ rules, storeOptions }) {
  const lengths = new Set(
    rules.flatMap(({ blocksEverywhere, policy }) => (blocksEverywhere ? policy.blockFor : [])),
  );
  if (lengths.size === 0) return undefined;
  const records = new Map([...lengths].map((ms) => [ms, createRecord(ms, storeOptions)]));
  const all = [...records.values()];

  /** The longest of the blocks that an id is under: its refusal, or undefined; or a promise of that. */
  function find(id) {
    if (all.length === 1) return andThen(all[0].find(id), longestRefusal);
    const decisions = all.map((record) => record.find(id));
    return andThen(together(decisions), (known) => longestRefusal(...known));
  }

  /** Has the block on every rule that `decision`, the refusal of a bucket in a zone, began or met there. */
  function start(id, { limiter, policy }, bucket, { blockedBy }) {
    const { blockFor } = policy;
    const isNew = blockedBy !== 'block';
    if (isNew && blockFor.length === 1) return records.get(blockFor[0]).start(id, blockFor[0]);
    return andThen(leftOf(limiter, bucket), (left) => {
      if (left === 0 && !isNew) return undefined; // it has ended meanwhile
      const length = shortestOf(blockFor, left);
      return records.get(length).start(id, left || length);
    });
  }

  async function clear(id) {
    await Promise.all(all.map((record) => record.clear(id)));
  }

  return { find, start, clear };
}

function createRecord(ms, storeOptions) {
  const parts = Math.min(Math.ceil(ms), MOST_PARTS);
  const limiter = new RateLimiter({
    ...storeOptionsFor(storeOptions, `block:${ms}`),
    interval: ms,
    maxInInterval: parts,
    algorithm: 'gcra',
  });

  function start(id, leftMs) {
    const cost = Math.min(Math.ceil((leftMs / ms) * parts), parts);
    return andThen(limiter.attempt(id, { cost }), (decision) => {
      // Another request has recorded the block since this one looked for it.
      const isSecond = decision.allowed && decision.limits[0].used > cost;
      return isSecond ? limiter.refund(decision) : undefined;
    });
  }

  return {
    find: (id) => limiter.peek(id, { cost: parts }),
    start,
    clear: (id) => limiter.clear(id),
  };
}

/** What is left of a block tells which of several lengths it has: it alone refuses an attempt at nothing. */
function leftOf(limiter, bucket) {
  return andThen(limiter[USAGE](bucket), ({ timeLeft }) => timeLeft);
}

/** The shortest length in which a block fits of which so much is left. */
function shortestOf(lengths, leftMs) {
  const ascending = [...lengths].sort((a, b) => a - b);
  return ascending.find((length) => Math.ceil(length) >= leftMs) ?? ascending.at(-1);
}

function longestRefusal(...decisions) {
  return decisions
    .filter(({ allowed }) => !allowed)
    .reduce((longest, one) => (longest?.timeLeft >= one.timeLeft ? longest : one), undefined);
}

/** A list of what is known, or a promise of it. */
function together(values) {
  return values.some(isPromise) ? Promise.all(values) : values;
}

/** What a request is told that meets a block: nothing is left of what its rule allows, `max` where that varies. */
function blockedDecision({ timeLeft }, { windows }, max) {
  return {
    allowed: false,
    timeLeft,
    actionsLeft: 0,
    resetIn: timeLeft,
    blockedBy: 'block',
    limits: windows.map(({ interval, maxInInterval }) => ({
      interval,
      maxInInterval: max ?? maxInInterval,
      used: max ?? maxInInterval,
      remaining: 0,
      resetIn: timeLeft,
    })),
  };
}

module.exports = { blockedDecision, createBlocks };
