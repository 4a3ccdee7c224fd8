// The traffic that the page offers. A client is a generator: it yields the time of its next request, in milliseconds,
// and gets the decision on it.
'use strict';

/** How long a run takes, in windows. */
const WINDOWS = 3;

const ATTACKS_PER_SECOND = 10;

/** `count` requests at equal distances in the part of time from `from` to `to`, ends included. */
function* evenly(count, from, to) {
  const step = count > 1 ? (to - from) / (count - 1) : 0;
  for (let i = 0; i < count; i++) yield Math.round(from + i * step);
}

/** The requests of a client that sends at this rate from `start` on, whatever it is answered. */
function* every(ms, start) {
  for (let i = 0; ; i++) yield Math.round(start + i * ms);
}

/** The whole limit just before each boundary of two windows, and once more just after it. */
function* doubleBursts({ limit, windowMs }) {
  for (let window = 1; window < WINDOWS; window++) {
    const at = (share) => (window + share) * windowMs;
    yield* evenly(limit, at(-0.13), at(-0.03));
    yield* evenly(limit, at(0.03), at(0.13));
  }
}

/** Sends as soon as it may: after the last action that was left, it waits for `resetIn`. */
function* polite({ windowMs }) {
  const pause = windowMs / 40;
  for (let at = pause; ; ) {
    const { allowed, actionsLeft, timeLeft, resetIn } = yield Math.round(at);
    if (!allowed) at += timeLeft;
    else if (actionsLeft === 0) at += Math.max(resetIn, pause);
    else at += pause;
  }
}

/** Also with a short window and a high limit, an attack is more than is allowed. */
const attackRate = ({ limit, windowMs }) =>
  Math.max(ATTACKS_PER_SECOND, Math.ceil((3000 * limit) / windowMs));

/** Each process sends as much as the limit allows, evenly, and they take turns. */
const twoProcesses = ({ limit, windowMs }) => {
  const step = windowMs / limit;
  return [every(step, step / 4), every(step, (3 * step) / 4)];
};

/** Requests at `share` of the limit in each window, from one part of time to another, in windows. */
function* busy({ limit, windowMs }, share, from, to) {
  const step = windowMs / (share * limit);
  for (let at = from * windowMs; at < to * windowMs; at += step) yield Math.round(at);
}

/** One process is busy, then the other one is a little, then both want the whole limit. */
function* takingTurns(settings, isFirst) {
  if (isFirst) yield* busy(settings, 0.7, 0.1, 1.3);
  else yield* busy(settings, 0.3, 1.2, 2.2);
  yield* busy(settings, 1, isFirst ? 2.3 : 2.31, WINDOWS);
}

const seconds = (ms) => `${ms / 1000} s`;

/**
 * `clients` gives the clients of a run; `traffic` says what they send, `lesson` what to see. `countBlocked`: whether the
 * preset makes refusals count. `limiters`: 'shared' if the clients are processes with one limit, 'own' if each counts
 * alone, 'leases' if they have one limit on Redis, whose log lends them permits. `leastLimit`: the least that shows it.
 */
const PRESETS = {
  burst: {
    name: 'Burst',
    traffic: ({ limit }) => `${limit} requests before each boundary, ${limit} after it.`,
    lesson: () => 'The fixed window lets twice the limit pass.',
    clients: (settings) => [doubleBursts(settings)],
  },
  steady: {
    name: 'Steady',
    traffic: ({ limit, windowMs }) =>
      `Twice the limit, evenly: ${2 * limit} in each ${seconds(windowMs)}.`,
    lesson: () => 'gcra soon allows every second request, evenly.',
    clients: ({ limit, windowMs }) => {
      const step = windowMs / (2 * limit);
      return [every(step, step / 2)];
    },
  },
  polite: {
    name: 'Polite client',
    traffic: () => 'One client per lane. It waits as long as told.',
    lesson: () => 'Such a client is never refused.',
    clients: (settings) => [polite(settings)],
  },
  attacker: {
    name: 'Attacker',
    traffic: (settings) => `${attackRate(settings)} requests a second, without end.`,
    lesson: ({ countBlocked }) =>
      countBlocked
        ? 'Two algorithms count refusals, and keep it out.'
        : 'Refusals do not count: it gets its limit again.',
    clients: (settings) => {
      const step = 1000 / attackRate(settings);
      return [every(step, step / 2)];
    },
    countBlocked: true,
  },
  shared: {
    name: '2 processes, 1 limit',
    traffic: () => 'Two processes. Each sends as much as is allowed.',
    lesson: () => 'They share a limiter, and get one limit together.',
    clients: twoProcesses,
    limiters: 'shared',
  },
  separate: {
    name: '2 processes, 2 limits',
    traffic: () => 'Two processes. Each sends as much as is allowed.',
    lesson: () => 'Each counts alone: together they get two limits.',
    clients: twoProcesses,
    limiters: 'own',
  },
  leases: {
    name: '2 processes, leases',
    traffic: () => 'Process A is busy, then B a little, then both.',
    lesson: ({ countBlocked }) =>
      countBlocked
        ? 'Leases need refusals that do not count.'
        : 'The log lends them permits, and still holds.',
    clients: (settings) => [takingTurns(settings, true), takingTurns(settings, false)],
    limiters: 'leases',
    leastLimit: 20,
  },
};

module.exports = { PRESETS, WINDOWS };
