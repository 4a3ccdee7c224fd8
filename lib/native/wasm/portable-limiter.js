// Decides on states that are bytes in JavaScript: the functions of src/binding/portable_limiter.cc.
'use strict';

const { decisionLength } = require('../../base/decision');
const { STATUS, TERMS } = require('./core');

/** What became of a state: PortableLimiter::Outcome. */
const CHANGED = 1;
const FOREIGN = 2;

function createPortableLimiter(core, policy, callbacks) {
  const { exports } = core;
  const calendars = { span: callbacks.span, findWindow: callbacks.findWindow };
  const [windowCount] = policy;
  const length = decisionLength(windowCount);
  core.reserve('numbers', 2 * length);
  core.writePolicy(policy);
  const handle = core.own(exports.portable_new(), exports.portable_delete);

  const write = (state) => (state === undefined ? 0 : core.writeBytes(state));

  /** The next state by the result of a call: bytes; undefined if there is nothing to write, null if it is foreign. */
  function next(outcome) {
    if (outcome === STATUS.EXHAUSTED) callbacks.exhausted();
    if (outcome === FOREIGN) return null;
    if (outcome !== CHANGED) return undefined;
    const { address } = handle;
    return core.copyBytes(
      exports.portable_next(address) >>> 0,
      exports.portable_next_size(address),
    );
  }

  return {
    decide(state, cost, records, now, generation, limits, hasCalendars) {
      core.calendars = calendars;
      const size = write(state);
      const costs = core.writeCosts(cost);
      const terms =
        (limits === undefined ? 0 : TERMS.LIMITS) | (hasCalendars ? TERMS.CALENDARS : 0);
      core.writeLimits(terms, limits);
      const { address } = handle;
      const outcome = exports.portable_decide(
        address,
        size,
        now,
        records,
        costs,
        terms,
        generation,
      );
      if (outcome <= CHANGED) core.readNumbers(callbacks.numbers, 0, length);
      return next(outcome);
    },

    settle(state, at, token, cost, actual, now) {
      const size = write(state);
      const costs = [core.writeCosts(cost), core.writeCosts(actual, windowCount)];
      return next(exports.portable_settle(handle.address, size, now, at, token, ...costs));
    },

    block(state, duration, now, generation) {
      const size = write(state);
      return next(exports.portable_block(handle.address, size, now, duration, generation));
    },

    lifetime: (state, now) => exports.portable_lifetime(handle.address, write(state), now),

    largestState: () => exports.portable_largest_state(handle.address),
  };
}

module.exports = { createPortableLimiter };
