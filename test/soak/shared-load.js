// What every thread of the soak test in shared memory does with the regions, again and again.
'use strict';

const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/algorithms');

/** How often each counted id passes, in all threads and processes together. */
const MAX = 200;
/** New ids are counted from then on; those of the last few are kept in use. */
const EPOCH_MS = 1000;
const EPOCHS_IN_USE = 3;
const IDS = 4;
const POURED = 20;
/** One window of the epoch, whenever the test runs: the second begins in the year 2255. */
const INTERVAL = 9_007_199_254_740;

const epochNow = () => Math.floor(Date.now() / EPOCH_MS);

/** `${name}-${algorithm}`: small, so that each new id has to drop another. */
const optionsFor = (name) =>
  ALGORITHMS.map((algorithm) => ({
    shared: { name: `${name}-${algorithm}`, maxKeys: 1000 },
    algorithm,
    interval: INTERVAL,
    maxInInterval: MAX,
  }));

/**
 * A step on all regions. `tell(key, isAllowed)` is told each time a counted id passed, and the first time
 * that this thread saw it refused. Among all ids the counted ones are never the nearest to expiry, for they are
 * asked for all the time, and other ids are poured in only so fast. `forget(key)` is for those that are over:
 * the more of them there are, the fewer places are left to the others, for nothing here expires.
 */
function createLoad(name, tell) {
  const options = optionsFor(name);
  const limiters = options.map((each) => RateLimiter(each));
  const refused = new Set();
  const who = `${process.pid} ${Math.random()}`;
  let steps = 0;

  function attempt(limiter, region, epoch, i) {
    const key = `${region}.${epoch}.${i}`;
    const isAllowed = limiter(key) === 0;
    // It was halted so long that the id may have been dropped.
    if (epochNow() >= epoch + EPOCHS_IN_USE) return;
    if (isAllowed) tell(key, true);
    if (isAllowed || refused.has(key)) return;
    refused.add(key);
    tell(key, false);
  }

  function pour(limiter) {
    for (let i = 0; i < POURED; i++) {
      const decision = limiter.attempt(`${who} ${steps} ${i}`);
      if (i % 5 === 0) limiter.refund(decision);
    }
    limiter.attemptMany([`${who} ${steps} a`, `${who} ${steps} b`]);
    limiter.clear(`${who} ${steps} a`);
  }

  function forget(key) {
    limiters[Number(key.split('.')[0])].clear(key);
  }

  function step() {
    steps += 1;
    for (const [region, limiter] of limiters.entries()) {
      for (let age = 0; age < EPOCHS_IN_USE; age++) {
        for (let i = 0; i < IDS; i++) attempt(limiter, region, epochNow() - age, i);
      }
      pour(limiter);
    }
    if (refused.size > 1000) refused.clear();
    if (steps % 100 > 0) return;
    const guest = RateLimiter(options[(steps / 100) % options.length]);
    guest(`${who} ${steps}`);
    guest.close();
  }

  return { step, forget };
}

/** Whether nobody asks for this key any more, and has not for a while. */
const isOver = (key) => Number(key.split('.')[1]) < epochNow() - EPOCHS_IN_USE - 1;

module.exports = { MAX, createLoad, isOver, optionsFor };
