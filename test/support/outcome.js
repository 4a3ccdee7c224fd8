// How calls end that may fail: their value or their code; waiting for what others do in their own time.
'use strict';

const fs = require('node:fs');
const { setTimeout: pause } = require('node:timers/promises');
const { isDeepStrictEqual } = require('node:util');
const { patient } = require('./tiers');

/** Far longer than any deadline in tests, far shorter than a hang. */
const PATIENCE_MS = patient(20_000);

/** The value of a promise, or the code of the error it rejects with; throws if neither comes. */
async function outcomeOf(promise, withinMs = PATIENCE_MS) {
  let timer;
  const impatience = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not settled within ${withinMs} ms`)), withinMs);
  });
  const settled = promise.then(
    (value) => value,
    (error) => {
      if (error.code === undefined) throw error;
      return error.code;
    },
  );
  try {
    return await Promise.race([settled, impatience]);
  } finally {
    clearTimeout(timer);
  }
}

/** The error that a promise rejects with. */
async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it did not reject');
}

/** An error with its causes, and their stacks, as one text. */
function everythingIn(error) {
  if (!(error instanceof Object)) return '';
  const own = Object.getOwnPropertyNames(error).map((name) => String(error[name]));
  return [...own, everythingIn(error.cause)].join('\n');
}

/**
 * Asks `condition` until it gives something true, and returns that. What it throws counts as no;
 * when time is over, the error names `what` and has the last thing thrown as its cause.
 */
async function waitUntil(what, condition, { withinMs = patient(20_000), everyMs = 10 } = {}) {
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

/** Resolves once a process that is sent SIGSTOP runs no more. */
async function standsStill(pid) {
  const status = `/proc/${pid}/stat`;
  if (!fs.existsSync(status)) return; // not Linux
  await waitUntil(`process ${pid} stands still`, () => / T /.test(fs.readFileSync(status, 'utf8')));
}

/** Quick if both are equal; otherwise the failure shows the context, such as a seed and a step. */
function expectEqual(actual, expected, context) {
  if (isDeepStrictEqual(actual, expected)) return;
  expect({ ...context, actual }).toEqual({ ...context, actual: expected });
  throw new Error('different, although toEqual sees no difference');
}

module.exports = { errorOf, everythingIn, expectEqual, outcomeOf, standsStill, waitUntil };
