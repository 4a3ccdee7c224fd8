// blockEverywhere: ids that are blocked on every rule for the length of a block.
'use strict';

const RateLimiter = require('../../../limiter');
const { USAGE } = require('../../../base/internal-methods');
const { refusal } = require('../limiters');
const { andThen, together } = require('../maybe-async');
const { storeOptionsFor } = require('./zones');

/** A block has one part per millisecond, but no more than these. */
const MOST_PARTS = 1_000_000;

/**
 * A block is an action in a GCRA limiter, one limiter for each length, in the same store as the counts, so that
 * all processes see it. The action leaks away steadily; its cost is what is left of the block. While anything
 * is left, an action of the full cost has no room.
 *
 * @returns {object | undefined} undefined if no rule blocks everywhere
 */
function createBlocks({ rules, storeOptions }) {
  const lengths = new Set(
    rules.flatMap(({ blocksEverywhere, policy }) => (blocksEverywhere ? policy.blockFor : [])),
  );
  if (lengths.size === 0) return undefined;
  const records = new Map([...lengths].map((ms) => [ms, createRecord(ms, storeOptions)]));
  const all = [...records.values()];

  /** The refusal by the longest block of an id, or undefined; or a promise of that. */
  function find(id) {
    if (all.length === 1) return andThen(all[0].find(id), longestRefusal);
    const decisions = all.map((record) => record.find(id));
    return andThen(together(decisions), (known) => longestRefusal(...known));
  }

  /** Starts on every rule the block that `decision`, the refusal of a bucket in a zone, started or met there. */
  function start(id, { limiter, policy }, bucket, { blockedBy }) {
    const { blockFor } = policy;
    const isNew = blockedBy !== 'block';
    if (isNew && blockFor.length === 1) return records.get(blockFor[0]).start(id, blockFor[0]);
    // Only a block refuses an attempt at cost 0.
    return andThen(limiter[USAGE](bucket), ({ timeLeft: left }) => {
      if (left === 0 && !isNew) return undefined; // it has just ended
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
      // Another request recorded the block after this one looked for it.
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

/** The shortest length that has room for what is left. */
function shortestOf(lengths, leftMs) {
  const ascending = [...lengths].sort((a, b) => a - b);
  return ascending.find((length) => Math.ceil(length) >= leftMs) ?? ascending.at(-1);
}

function longestRefusal(...decisions) {
  return decisions
    .filter(({ allowed }) => !allowed)
    .reduce((longest, one) => (longest?.timeLeft >= one.timeLeft ? longest : one), undefined);
}

/** The decision on a request of a blocked id: nothing is left of its rule; `max` is the limit by request. */
function blockedDecision({ timeLeft }, { windows }, max) {
  const limits = max === undefined ? windows : [{ ...windows[0], maxInInterval: max }];
  return refusal('block', timeLeft, limits);
}

module.exports = { blockedDecision, createBlocks };
