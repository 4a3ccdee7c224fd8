// Calls without a pause while a cluster changes, and what came of them.
'use strict';

const { keySlot } = require('../../lib/redis/cluster');

/** The first `count` ids whose keys are in the slot of the id `like`, that one among them. */
function idsInSlotOf(like, count) {
  const slot = keySlot(`{${like}}`);
  const ids = [like];
  for (let i = 0; ids.length < count; i++) {
    if (keySlot(`{same ${i}}`) === slot) ids.push(`same ${i}`);
  }
  return ids;
}

/**
 * Begins to make calls, `atOnce` at a time: `call(i)` promises the ids that were allowed. `stop()`
 * resolves to how often each id was, how many calls were made, and how they failed.
 */
function startLoad(call, { atOnce = 4 } = {}) {
  const allowed = new Map();
  const failures = [];
  let made = 0;
  let isOver = false;
  const keepCalling = async () => {
    while (!isOver) {
      try {
        for (const id of await call(made++)) allowed.set(id, (allowed.get(id) ?? 0) + 1);
      } catch (error) {
        failures.push(error);
        await new Promise(setImmediate);
      }
    }
  };
  const callers = Array.from({ length: atOnce }, keepCalling);
  return {
    allowed,
    failures,
    async stop() {
      isOver = true;
      await Promise.all(callers);
      return { allowed, failures, made };
    },
  };
}

/** A call for startLoad: one id after the other. */
const callingEach = (limiter, ids) => async (i) => {
  const id = ids[i % ids.length];
  return (await limiter(id)) === 0 ? [id] : [];
};

/** A call for startLoad: all ids at once. */
const callingAll = (limiter, ids) => async () => {
  const decisions = await limiter.attemptMany(ids);
  return ids.filter((_, i) => decisions[i].allowed);
};

module.exports = { callingAll, callingEach, idsInSlotOf, startLoad };
