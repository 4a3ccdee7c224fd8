// blockEverywhere: ids that are refused on every rule for as long as a block lasts.
'use strict';

const RateLimiter = require('../../limiter');
const { USAGE } = require('../../usage');
const { isPromise } = require('../is-promise');
const { storeOptionsFor } = require('./zones');
const { whenKnown } = require('./when-known');

/**
 * A block of each length is an action in a limiter of the same store, which allows one in that time: who
 * has it recorded is blocked. So blocks are known wherever the counts are.
 *
 * @returns {object | undefined} undefined where no rule blocks everywhere
 */
function createBlocks({ rules, storeOptions }) {
  const lengths = new Set(
    rules.flatMap(({ blocksEverywhere, policy }) => (blocksEverywhere ? policy.blockFor : [])),
  );
  if (lengths.size === 0) return undefined;
  const limiters = new Map([...lengths].map((ms) => [ms, createBlockLimiter(ms, storeOptions)]));
  const all = [...limiters.values()];

  /** The longest of the blocks that an id is under: its refusal, or undefined; or a promise of that. */
  function find(id) {
    if (all.length === 1) return whenKnown(all[0].peek(id), longestRefusal);
    const decisions = all.map((limiter) => limiter.peek(id));
    return whenKnown(together(decisions), (known) => longestRefusal(...known));
  }

  /** Begins the block that `decision`, the refusal of a bucket in a zone, has begun there. */
  function start(id, { limiter, policy }, bucket) {
    const { blockFor } = policy;
    const length =
      blockFor.length === 1 ? blockFor[0] : whenKnown(leftOf(limiter, bucket), atLeast(blockFor));
    return whenKnown(length, (ms) => limiters.get(ms).attempt(id));
  }

  async function clear(id) {
    await Promise.all(all.map((limiter) => limiter.clear(id)));
  }

  return { find, start, clear };
}

function createBlockLimiter(ms, storeOptions) {
  return new RateLimiter({
    ...storeOptionsFor(storeOptions, `block:${ms}`),
    interval: ms,
    maxInInterval: 1,
    countBlocked: false,
  });
}

/** What is left of a block tells which of several lengths it has: it alone refuses an attempt at nothing. */
function leftOf(limiter, bucket) {
  return whenKnown(limiter[USAGE](bucket), ({ timeLeft }) => timeLeft);
}

function atLeast(lengths) {
  const ascending = [...lengths].sort((a, b) => a - b);
  return (ms) => ascending.find((length) => Math.ceil(length) >= ms) ?? ascending.at(-1);
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
