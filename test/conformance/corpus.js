// The conformance corpus: random traces and the answers that are right, one JSON object in each line. docs/corpus.md describes it.
'use strict';

const { randomFrom } = require('../support/traces');
const { ALGORITHM_NAMES } = require('./oracle');
const { Oracles } = require('./oracles');
const { maximaOf } = require('./plans');
const {
  CORE_KINDS,
  LONG_UNITS,
  SHORT_UNITS,
  largePolicy,
  randomPolicy,
  randomTrace,
} = require('./random-traces');

const VERSION = 1;
const SEED = 1;
const MINUTE = 60_000_000;
const MS = 1000;
const IDS = [0, 1];
const REASONS = ['count', 'minDifference', 'block']; // in the order of the oracle's bits

/** By part: how many traces of each algorithm, and how one is drawn. */
const PARTS = {
  core: { count: 36, algorithms: ALGORITHM_NAMES, draw: coreTrace },
  plain: { count: 370, algorithms: ALGORITHM_NAMES, draw: plainTrace },
  limits: { count: 60, algorithms: ALGORITHM_NAMES, draw: limitsTrace },
  // Aligned windows follow the time of day, so there is no one right answer.
  steps: { count: 120, algorithms: ['sliding-window-log', 'gcra'], draw: stepsTrace },
};

/** Everything that the core and the scripts can do. */
function coreTrace(random, algorithm, n) {
  const units = n % 2 === 0 ? LONG_UNITS : SHORT_UNITS;
  const drawPolicy = n % 5 === 0 ? largePolicy : randomPolicy;
  const policy = drawPolicy(random, { algorithm, units });
  return randomTrace(random, { policy, steps: 45, ids: IDS, kinds: CORE_KINDS });
}

/** One small window of whole minutes, so that any limiter can have it. */
function plainPolicy(random, algorithm) {
  const limits = [
    { interval: random.between(1, 10) * MINUTE, maxInInterval: random.between(1, 6) },
  ];
  return { algorithm, limits, minDifference: 0, countBlocked: false, blockFor: [] };
}

/** A trace that grows by operations at moments in whole milliseconds; `draw` gives their answers. */
class Walk {
  #oracles;
  #boundaries = [];

  constructor(random, policy) {
    Object.assign(this, { random, policy, operations: [], answers: [] });
    this.#oracles = new Oracles(policy);
    this.now = 1_700_000_000_000_000 + random.between(0, 6_000_000) * MS;
  }

  /** Leaves an operation out if stores may answer it either way. */
  perform(operation) {
    const complete = { now: this.now, ...operation };
    const answer = operation.kind === 'step' ? null : this.#oracles.perform(complete);
    if (answer === undefined) return;
    this.operations.push(complete);
    this.answers.push(answer);
    if (operation.kind !== 'attempt') return;
    const waits = [answer.timeLeft, ...answer.windows.map(({ resetIn }) => resetIn)];
    const ends = waits.map((micros) => Math.ceil((this.now + micros) / MS) * MS);
    this.#boundaries = [...this.#boundaries, ...ends].slice(-6);
  }

  attempt(cost = 1) {
    this.perform({ kind: 'attempt', id: this.random.chance(80) ? 0 : 1, cost });
  }

  /** Goes on, often to a boundary or a millisecond before it. */
  goOn() {
    const { random } = this;
    const [{ interval, maxInInterval }] = this.policy.limits;
    const ahead = this.#boundaries.filter((moment) => moment > this.now);
    if (random.chance(30)) return;
    if (ahead.length > 0 && random.chance(50)) {
      this.now = Math.max(this.now, random.pick(ahead) + random.pick([-MS, 0, 0]));
    } else {
      const far = random.chance(75) ? interval / maxInInterval : 2 * interval;
      this.now += random.between(1, Math.floor(far / MS)) * MS;
    }
  }

  get trace() {
    return { policy: this.policy, operations: this.operations, answers: this.answers };
  }
}

/** Attempts on two ids; in every other trace all of them cost 1. */
function plainTrace(random, algorithm, n) {
  const walk = new Walk(random, plainPolicy(random, algorithm));
  const [{ maxInInterval }] = walk.policy.limits;
  for (let i = 0; i < 14; i++) {
    walk.attempt(n % 2 === 0 || random.chance(50) ? 1 : random.between(1, maxInInterval));
    walk.goOn();
  }
  return walk.trace;
}

/** The limit changes between attempts, at first in one moment. */
function limitsTrace(random, algorithm) {
  const walk = new Walk(random, plainPolicy(random, algorithm));
  for (let i = 0; i < 16; i++) {
    if (random.chance(25)) walk.perform({ kind: 'setLimits', maxima: [random.between(1, 8)] });
    else walk.attempt();
    if (i > 9) walk.goOn();
  }
  return walk.trace;
}

/** The time of day is set, back or forward; the time that passes is not. Then nothing happens for some intervals. */
function stepsTrace(random, algorithm, n) {
  const walk = new Walk(random, plainPolicy(random, algorithm));
  const [{ interval }] = walk.policy.limits;
  const direction = n % 2 === 0 ? -1 : 1;
  for (let i = 0; i < 12; i++) {
    if (i > 1 && i < 8 && random.chance(20)) {
      const by = direction * random.pick([1, 2, 4, 20, 100]) * (interval / 2);
      walk.perform({ kind: 'step', by });
    }
    walk.attempt();
    walk.goOn();
  }
  walk.now += 3 * interval;
  walk.attempt();
  walk.attempt();
  return walk.trace;
}

/** The traces of a part for an algorithm, the same for a seed. */
function drawnTraces(part, algorithm, seed) {
  const { count, draw } = PARTS[part];
  return Array.from({ length: count }, (_, n) => {
    const random = randomFrom(1_000_000 * seed + n);
    return { part, ...draw(random, algorithm, n) };
  });
}

const windowsOf = ({ windows }) => windows.map(({ used, resetIn }) => [used, resetIn]);

function answerFields({ kind, now }, answer) {
  if (kind === 'refund') return { found: answer };
  if (answer?.windows === undefined) return {};
  const { allowed, blockedBy, timeLeft, wait, actionsLeft, resetIn, at } = answer;
  return {
    allowed,
    ...(!allowed && { blockedBy: REASONS.filter((_, bit) => blockedBy & (1 << bit)) }),
    ...{ timeLeft, wait, actionsLeft, resetIn },
    ...(at !== now && { later: at - now }),
    windows: windowsOf(answer),
  };
}

function lineOf({ part, policy, operations, answers }, number) {
  const { algorithm, limits, minDifference, countBlocked, blockFor } = policy;
  const start = operations[0].now;
  return JSON.stringify({
    trace: number,
    part,
    policy: {
      algorithm,
      limits: limits.map(({ interval, maxInInterval }) => ({ interval, max: maxInInterval })),
      ...{ minDifference, countBlocked, blockFor },
    },
    start,
    operations: operations.map((operation, i) => {
      const { kind, now, id, cost, of, maxima, by } = operation;
      const hasId = kind !== 'clearAll' && kind !== 'setLimits' && kind !== 'step';
      const asked = { op: kind, at: now - start, ...(hasId && { id }), cost, of, max: maxima, by };
      return { ...asked, ...answerFields(operation, answers[i]) };
    }),
  });
}

/** All lines of the corpus: what it is, then the traces. */
function linesOf(seed = SEED) {
  const traces = Object.entries(PARTS).flatMap(([part, { algorithms }]) =>
    algorithms.flatMap((algorithm) => drawnTraces(part, algorithm, seed)),
  );
  const header = { corpus: 'rollgate', version: VERSION, unit: 'us', seed, traces: traces.length };
  return [JSON.stringify(header), ...traces.map(lineOf)];
}

/** An answer of a line as the oracle gave it. */
function answerOf({ op, at, later = 0, blockedBy = [], windows, found, ...fields }, start, limits) {
  if (op === 'refund') return found;
  if (windows === undefined) return null;
  const bits = blockedBy.reduce((sum, reason) => sum + (1 << REASONS.indexOf(reason)), 0);
  return {
    ...fields,
    ...{ limits, blockedBy: bits, at: start + at + later, neverPasses: false },
    windows: windows.map(([used, resetIn], i) => {
      return {
        used,
        resetIn,
        remaining: limits[i].maxInInterval - Math.min(used, limits[i].maxInInterval),
      };
    }),
  };
}

/** A line as the trace that was drawn: `{ part, policy, operations, answers }`. */
function traceOf(line) {
  const { part, policy: written, start, operations } = JSON.parse(line);
  const limits = written.limits.map(({ interval, max }) => ({ interval, maxInInterval: max }));
  const policy = { ...written, limits };
  let current = policy;
  const answers = operations.map((operation) => {
    if (operation.op === 'setLimits') current = maximaOf(current, operation.max);
    return answerOf(operation, start, current.limits);
  });
  return {
    ...{ part, policy, answers },
    operations: operations.map(({ op, at, id, cost, of, max, by }) => {
      const named = { kind: op, now: start + at, id, cost, of, maxima: max, by };
      return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
    }),
  };
}

/** What a limiter sees of a trace whose clock does not step. */
function withoutSteps({ operations, answers, ...trace }) {
  const kept = (list) => list.filter((_, i) => operations[i].kind !== 'step');
  return { ...trace, operations: kept(operations), answers: kept(answers) };
}

/** The traces of a part for an algorithm, as read from their lines. */
const tracesOf = (algorithm, part = 'core') =>
  drawnTraces(part, algorithm, SEED).map((trace, n) => traceOf(lineOf(trace, n)));

module.exports = {
  PARTS,
  SEED,
  linesOf,
  traceOf,
  tracesOf,
  withoutSteps,
};
