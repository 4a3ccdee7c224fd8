// Runs the traffic of a preset against all four algorithms, on a clock that the page moves.
'use strict';

const RateLimiter = require('../../..'); // in your application: require('rollgate')
const { runClients } = require('./clients');
const { hasLeases, runLeases } = require('./leases');
const { PRESETS } = require('./presets');

/**
 * `hasBoundaries`: its windows begin at multiples of the interval. `startsAgain`: only the current one counts.
 * `hasWindow: false`: it keeps no window at all.
 */
const ALGORITHMS = [
  {
    name: 'sliding-window-log',
    text: (_limit, window) => `Counts the last ${window}, exactly.`,
  },
  {
    name: 'sliding-window-counter',
    text: () => 'This window and a share of the one before.',
    hasBoundaries: true,
  },
  {
    name: 'fixed-window',
    text: () => 'Starts again from 0 at each boundary.',
    hasBoundaries: true,
    startsAgain: true,
  },
  {
    name: 'gcra',
    text: (limit, _window, gap) => `A bucket of ${limit}: one leaks out every ${gap}.`,
    hasWindow: false,
    cannotCountBlocked: true,
  },
];

/** The options of a limiter that both limiters and the code on the page are made from. */
function limiterOptions({ limit, windowMs, countBlocked }, algorithm) {
  const options = { interval: windowMs, maxInInterval: limit, algorithm: algorithm.name };
  return algorithm.cannotCountBlocked ? options : { ...options, countBlocked };
}

/**
 * The requests of a run against one algorithm, from the oldest to the newest.
 *
 * @param {{ preset: string, limit: number, windowMs: number, countBlocked: boolean }} settings
 * @returns {{ at: number, client: number, decision: object }[]}
 */
function runLane(settings, algorithm) {
  if (hasLeases(settings, algorithm)) return runLeases(settings).requests;
  const preset = PRESETS[settings.preset];
  const clients = preset.clients(settings);
  let now = 0;
  const create = () => RateLimiter({ ...limiterOptions(settings, algorithm), clock: () => now });
  const one = preset.limiters === 'own' ? undefined : create();
  const limiters = clients.map(() => one ?? create());
  const requests = runClients(settings, (at, client) => {
    now = at;
    return { decision: limiters[client].attempt('ada') };
  });
  for (const limiter of limiters) limiter.close();
  return requests;
}

/** The same for all algorithms, in their order. */
const simulate = (settings) => ALGORITHMS.map((algorithm) => runLane(settings, algorithm));

/**
 * The most allowed requests in any window: how many, and when the first and the last of them came. A request is in a
 * window until exactly `windowMs` after it.
 */
function mostInAnyWindow(requests, windowMs) {
  const times = requests.filter(({ decision }) => decision.allowed).map(({ at }) => at);
  let most = { count: 0 };
  let first = 0;
  times.forEach((to, last) => {
    while (times[first] <= to - windowMs) first++;
    const count = last - first + 1;
    if (count > most.count) most = { count, from: times[first], to };
  });
  return most;
}

module.exports = { ALGORITHMS, limiterOptions, mostInAnyWindow, runLane, simulate };
