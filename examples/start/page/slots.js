// Runs the traffic of a preset against a limit of what runs at once, on a clock that the page moves.
'use strict';

const { ConcurrencyLimiter } = require('../../..'); // in your application: require('rollgate')
const { runClients } = require('./clients');

/** How long an action runs, in windows. */
const SHORTEST = 0.06;
const LONGEST = 0.36;

/** Multiples of it, modulo 1, are spread like random numbers, and are the same in each run. */
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;

const durationOf = (index, windowMs) =>
  Math.round(windowMs * (SHORTEST + (LONGEST - SHORTEST) * (((index + 1) * GOLDEN_RATIO) % 1)));

/**
 * The requests of a run, from the oldest to the newest. An allowed one is an action, which holds a slot until `end`.
 * Slots are in the memory of a process, so each process has its own limiter.
 *
 * @param {{ preset: string, limit: number, windowMs: number, max: number }} settings
 * @returns {{ at: number, client: number, end?: number, decision: object, slot: object }[]}
 */
function runSlots(settings) {
  const { max, windowMs } = settings;
  const limiters = [];
  let running = [];
  let now = 0;

  function releaseUntil(at) {
    for (const { end, slot } of running.filter((action) => action.end <= at)) {
      now = end;
      slot.release();
    }
    running = running.filter(({ end }) => end > at);
    now = at;
  }

  const requests = runClients(settings, (at, client, index) => {
    releaseUntil(at);
    limiters[client] ??= ConcurrencyLimiter({ max, clock: () => now });
    const slot = limiters[client].acquire('ada');
    const end = slot.allowed ? at + durationOf(index, windowMs) : undefined;
    if (slot.allowed) running = [...running, { end, slot }].sort((a, b) => a.end - b.end);
    // A refusal does not say when a slot will be free. A client knows when its own actions end.
    const timeLeft = running[0].end - at;
    const { allowed, used, remaining } = slot;
    const decision = { allowed, actionsLeft: remaining, timeLeft, resetIn: timeLeft };
    return { end, decision: { ...decision, limits: [{ used }] }, slot };
  });
  for (const limiter of limiters) limiter.close();
  return requests;
}

/** How many actions run at this time. */
const runningAt = (requests, time) =>
  requests.filter(({ at, end }) => at <= time && time < end).length;

/** The most that ran at once until this time. */
function mostAtOnce(requests, time = Infinity) {
  const actions = requests.filter(({ at, end }) => end !== undefined && at <= time);
  return Math.max(0, ...actions.map(({ at }) => runningAt(actions, at)));
}

module.exports = { mostAtOnce, runningAt, runSlots };
