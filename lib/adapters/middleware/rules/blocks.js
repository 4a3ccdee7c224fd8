// blockEverywhere: ids that are blocked on every rule for the length of a block.
'use strict';

const RateLimiter = require('../../../limiter');
const { BLOCK, USAGE } = require('../../../base/internal-methods');
const { refusal } = require('../limiters');
const { andThen, orElse } = require('../maybe-async');
const { storeOptionsFor } = require('./zones');

/**
 * The blocks are those of a limiter that counts nothing, in the same store as the counts, so that all processes see
 * them.
 *
 * @returns {object | undefined} undefined if no rule blocks everywhere
 */
function createBlocks({ rules, storeOptions, passOnStoreError }, logger) {
  if (!rules.some(({ blocksEverywhere }) => blocksEverywhere)) return undefined;
  const { onError = 'throw' } = storeOptions;
  const blocked = new RateLimiter({
    ...storeOptionsFor(storeOptions, 'blocks'),
    lease: undefined,
    interval: 1,
    maxInInterval: 1,
    countBlocked: false,
  });

  /** Blocks as decisions do: by itself, a limiter applies onError to decisions only. */
  function block(id, ms) {
    const rescue = (error) => {
      if (onError === 'throw' || error.code === 'ERR_ROLLGATE_CLOCK') throw error;
    };
    return orElse(() => blocked[BLOCK](id, ms), rescue);
  }

  function startAs(id, { limiter, policy }, bucket, { blockedBy }) {
    const [length, ...others] = policy.blockFor;
    const isNew = blockedBy !== 'block';
    if (isNew && others.length === 0) return block(id, length);
    // Only a block refuses an attempt at cost 0.
    return andThen(limiter[USAGE](bucket), ({ timeLeft: left }) => {
      if (left === 0 && !isNew) return undefined; // it has just ended
      return block(id, left || length); // a limit of 0 records nothing
    });
  }

  /** With passOnStoreError the request stays blocked, because that decision was made. */
  function rescueStart(error) {
    if (!passOnStoreError) throw error;
    const what = 'a client could not be blocked on every rule.';
    logger.error('ROLLGATE_BLOCK_LOST', what, error);
  }

  return {
    /** A decision, or a promise of it: a refusal while the id is blocked. */
    find: (id) => blocked.peek(id),

    /** Starts on every rule the block that a decision, the refusal of a bucket in a zone, started or met there. */
    start: (id, zone, bucket, decision) => {
      return orElse(() => startAs(id, zone, bucket, decision), rescueStart);
    },

    clear: (id) => blocked.clear(id),
  };
}

/** The decision on a request of a blocked id: nothing is left of its rule; `limits` are those of the request. */
function blockedDecision({ timeLeft }, { windows }, limits) {
  const maxIn = ({ name, maxInInterval }) => {
    if (typeof limits === 'number') return limits;
    return limits !== undefined && Object.hasOwn(limits, String(name))
      ? limits[name]
      : maxInInterval;
  };
  const shown = windows.map((window) => ({ ...window, maxInInterval: maxIn(window) }));
  return refusal('block', timeLeft, shown);
}

module.exports = { blockedDecision, createBlocks };
