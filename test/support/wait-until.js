// Waits for what other processes do in their own time.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');

/**
 * Asks `condition` until it gives something true, and returns that. What it throws counts as no;
 * when time is over, the error names `what` and has the last thing thrown as its cause.
 */
async function waitUntil(what, condition, { withinMs = 15_000, everyMs = 10 } = {}) {
  const deadline = Date.now() + withinMs;
  for (;;) {
    let cause;
    try {
      const found = await condition();
      if (found) return found;
    } catch (error) {
      cause = error;
    }
    if (Date.now() >= deadline) {
      throw new Error(`waited ${withinMs} ms in vain until ${what}`, { cause });
    }
    await pause(everyMs);
  }
}

module.exports = { waitUntil };
