// Five promises of a limiter, checked on traces of the corpus, and the smallest trace that breaks one.
'use strict';

/**
 * A subject is a limiter with a policy of one window:
 *
 * - `time(startMs)`: the time it reads. `goTo(ms)` moves what has passed since the start, `step(ms)` sets the time of day
 *   alone, `elapsed()` is what has passed, `end()` ends it
 * - `open({ interval, max }, time)`: a limiter, or a promise of one. `attempt(id, cost)` gives `{ allowed, wait }`, where
 *   `wait` is the stated wait in ms, if one is stated. `setMax(max)` changes the limit, `close()` ends it
 * - `waits`: instead of refusing. Then `add(id, onStart)` adds a task
 * - `takesCosts`: whether it has costs. `cannot`: by promise, why it cannot be asked for it
 * - `promised`: the promises that its documentation makes
 * - `most(max)`: the most that its algorithm lets through in any interval, while the clock does not step
 */

/** What happens to each operation: `{ id, cost, at, allowed, wait }` of attempts, in ms. */
async function replay(subject, { policy, start, operations }, more = []) {
  const time = subject.time(start / 1000);
  const [{ interval, max }] = policy.limits;
  const limiter = await subject.open({ interval: interval / 1000, max }, time);
  const outcomes = [];
  try {
    for (const { op, at, id, cost, by, max: maxima } of [...operations, ...more]) {
      await time.goTo(at / 1000);
      if (op === 'step') time.step(by / 1000);
      if (op === 'setLimits') await limiter.setMax(maxima[0]);
      const outcome = { op, id, cost, at: at / 1000, by: by / 1000, max: maxima?.[0] };
      outcomes.push(outcome);
      if (op === 'attempt' && subject.waits) addTask(limiter, outcome, time);
      else if (op === 'attempt') Object.assign(outcome, await limiter.attempt(`id${id}`, cost));
    }
    const isWaiting = ({ added, allowed }) => added !== undefined && !allowed;
    for (let i = outcomes.length + 2; i > 0 && outcomes.some(isWaiting); i--) {
      await time.goTo(time.elapsed() + interval / 1000);
    }
  } finally {
    await limiter.close?.();
    time.end?.();
  }
  return outcomes;
}

/** A task counts as allowed when it starts. */
function addTask(limiter, outcome, time) {
  outcome.added = outcome.at;
  limiter.add(`id${outcome.id}`, () => {
    Object.assign(outcome, { at: time.elapsed(), allowed: true });
  });
}

const attempts = (outcomes) => outcomes.filter(({ op }) => op === 'attempt');

/** The most that one id got within an interval. */
function mostWithin(outcomes, interval) {
  const admitted = attempts(outcomes).filter(({ allowed }) => allowed);
  const sums = admitted.map((last) => {
    const isWithin = ({ id, at }) => id === last.id && at <= last.at && at > last.at - interval;
    return admitted.filter(isWithin).reduce((sum, { cost }) => sum + cost, 0);
  });
  return Math.max(0, ...sums);
}

const intervalOf = ({ policy }) => policy.limits[0].interval / 1000;
const maxOf = ({ policy }) => policy.limits[0].max;

/** Never more than `most(max)` in any interval. */
async function neverMore(subject, trace, most = (max) => max) {
  const outcomes = await replay(subject, trace);
  const came = mostWithin(outcomes, intervalOf(trace));
  if (came <= most(maxOf(trace))) return null;
  return { outcomes, note: `${came} within ${seconds(intervalOf(trace))}` };
}

/** Refused one ms before the stated wait has passed, allowed when it has, or both by so many ms more. */
async function statesTheWait(subject, trace, within = 0) {
  const outcomes = await replay(subject, trace);
  if (subject.waits) return startsInTime(trace, outcomes);
  for (const [i, { op, allowed, wait, at, id, cost }] of outcomes.entries()) {
    if (op !== 'attempt' || allowed || wait === undefined) continue;
    for (const [later, expected] of [
      [wait - 1 - within, false],
      [wait + within, true],
    ]) {
      if (later <= 0 && !expected) continue;
      const place = seconds(at + wait - outcomes[0].at);
      const before = { ...trace, operations: trace.operations.slice(0, i + 1) };
      const probe = { op: 'attempt', id, cost, at: (at + later) * 1000 };
      const again = await replay(subject, before, [probe]);
      if (again.at(-1).allowed !== expected) {
        return { outcomes: again, note: `the stated wait, ${wait} ms, ends at ${place}` };
      }
    }
  }
  return null;
}

/** Each task in its turn, when the max-th task before it is one interval old. */
function startsInTime(trace, outcomes) {
  for (const id of new Set(attempts(outcomes).map((one) => one.id))) {
    const tasks = attempts(outcomes).filter((one) => one.id === id);
    const starts = [];
    for (const { added, at, allowed } of tasks) {
      const free = (starts.at(-maxOf(trace)) ?? Number.NEGATIVE_INFINITY) + intervalOf(trace);
      const due = Math.max(added, free, starts.at(-1) ?? 0);
      if (!allowed || at !== due) return { outcomes, note: `a task is due at ${seconds(due)}` };
      starts.push(due);
    }
  }
  return null;
}

const isRefusal = ({ op, allowed }) => op === 'attempt' && !allowed;
const waitOf = ({ allowed, wait = Infinity }) => (allowed ? 0 : wait);
const differ = (one, other) =>
  one.op === 'attempt' && (one.allowed !== other.allowed || waitOf(one) !== waitOf(other));

/** Without its refused attempts but the last operation, a trace has the same answers. */
async function leavesNoTrace(subject, trace) {
  const outcomes = await replay(subject, trace);
  const kept = outcomes.map((outcome, i) => !isRefusal(outcome) || i === outcomes.length - 1);
  if (!kept.includes(false)) return null;
  const without = { ...trace, operations: trace.operations.filter((_, i) => kept[i]) };
  const others = await replay(subject, without);
  const left = outcomes.filter((_, i) => kept[i]);
  const changed = left.findIndex((outcome, i) => differ(outcome, others[i]));
  // From a rounding on, the two runs go different ways.
  if (changed < 0 || Math.abs(waitOf(left[changed]) - waitOf(others[changed])) <= 1) return null;
  const { allowed, wait } = others[changed];
  const instead = allowed ? 'allowed' : `refused for ${wait} ms`;
  const which = changed === left.length - 1 ? 'the last' : `that at ${left[changed].at / 1000} s`;
  return { outcomes, note: `without the refusals before, ${which} is ${instead}` };
}

/** Whether an id that got nothing in two intervals is refused now, though not if the clock does not step. */
function lockedOut(outcomes, plain, trace) {
  const paired = outcomes.filter(({ op }) => op !== 'step');
  return paired.some(({ op, id, at, allowed }, i) => {
    if (op !== 'attempt' || allowed || !plain[i].allowed) return false;
    const last = paired.slice(0, i).findLast((one) => one.id === id && one.allowed);
    return last !== undefined && at - last.at >= 2 * intervalOf(trace);
  });
}

/** Whether a task starts more than two intervals later than without the steps. */
function delayed(outcomes, plain, trace) {
  const paired = outcomes.filter(({ op }) => op !== 'step');
  return paired.some(
    ({ op, at, allowed }, i) =>
      op === 'attempt' && (!allowed || at - plain[i].at > 2 * intervalOf(trace)),
  );
}

/** What goes wrong when the time of day is set, and in which direction, if in one only. */
const STEP_KINDS = {
  'more after a step back': -1,
  'more after a step forward': 1,
  'locked out': 0,
};

/** Compares with the same trace without its steps. */
async function standsSteps(subject, trace, kind) {
  const step = trace.operations.find(({ op }) => op === 'step');
  if (step === undefined) return null;
  if (STEP_KINDS[kind] !== 0 && STEP_KINDS[kind] !== Math.sign(step.by)) return null;
  const outcomes = await replay(subject, trace);
  const operations = trace.operations.filter(({ op }) => op !== 'step');
  const plain = await replay(subject, { ...trace, operations });
  const interval = intervalOf(trace);
  if (kind === 'locked out') {
    const note = `without the step, the last ${subject.waits ? 'starts in time' : 'is allowed'}`;
    const isLate = subject.waits ? delayed : lockedOut;
    return isLate(outcomes, plain, trace) ? { outcomes, note } : null;
  }
  const came = mostWithin(outcomes, interval);
  const usual = Math.max(subject.most(maxOf(trace)), mostWithin(plain, interval));
  return came > usual ? { outcomes, note: `${came} within ${seconds(interval)}` } : null;
}

/** At one moment, an attempt is allowed exactly if what was counted leaves room under the present limit. */
async function keepsCounts(subject, trace) {
  const outcomes = await replay(subject, trace);
  const used = new Map();
  let max = maxOf(trace);
  for (const [i, { op, id, at, allowed, max: next }] of outcomes.entries()) {
    if (at !== outcomes[0].at) return null;
    if (op === 'setLimits') max = next;
    if (op !== 'attempt' || used.get(id) === Infinity) continue;
    const count = used.get(id) ?? 0;
    if (allowed !== count < max) {
      const note = `${count} of ${max} are used`;
      return { outcomes: outcomes.slice(0, i + 1), note };
    }
    // What a refusal leaves is another promise.
    used.set(id, allowed ? count + 1 : Infinity);
  }
  return null;
}

/** By promise: the part of the corpus, and by kind of failure a check, which gives null or what it found. */
const PROMISES = {
  interval: { part: 'plain', checks: { '': neverMore } },
  wait: {
    part: 'plain',
    checks: {
      '': (subject, trace) => statesTheWait(subject, trace, 1),
      'to 1 ms': (subject, trace) => statesTheWait(subject, trace),
    },
  },
  refusals: { part: 'plain', checks: { '': leavesNoTrace } },
  clock: {
    part: 'steps',
    checks: Object.fromEntries(
      Object.keys(STEP_KINDS).map((kind) => [
        kind,
        (subject, trace) => standsSteps(subject, trace, kind),
      ]),
    ),
  },
  limits: { part: 'limits', checks: { '': keepsCounts } },
};

/** Leaves out operations for as long as the check fails. */
async function shrink(check, subject, trace) {
  let best = { trace, found: await check(subject, trace) };
  for (let i = trace.operations.length - 1; i >= 0; i--) {
    const operations = best.trace.operations.filter((_, place) => place !== i);
    if (operations.length === 0) continue;
    const fewer = { ...trace, operations };
    const found = await check(subject, fewer);
    if (found !== null) best = { trace: fewer, found };
  }
  return best;
}

const ENOUGH = 10; // failures, of which the smallest is shown

const fits = (subject, { operations }) =>
  subject.takesCosts || operations.every(({ cost = 1 }) => cost === 1);

/** The smallest of some traces that break a promise, or null; and how many traces were tried. */
async function findFailure(check, subject, traces) {
  const failures = [];
  let tried = 0;
  for (const trace of traces) {
    if (!fits(subject, trace)) continue;
    tried += 1;
    if ((await check(subject, trace)) === null) continue;
    failures.push(await shrink(check, subject, trace));
    if (failures.length === ENOUGH) break;
  }
  const sizes = failures.map((failure) => failure.trace.operations.length);
  return { tried, failure: failures[sizes.indexOf(Math.min(...sizes))] ?? null };
}

const seconds = (ms) => `${ms / 1000} s`;

/** Equal neighbours become one, with their number. */
function withoutRepeats(texts) {
  const firsts = texts.flatMap((text, i) => (text === texts[i - 1] ? [] : i));
  return firsts.map((first, n) => {
    const count = (firsts[n + 1] ?? texts.length) - first;
    return count === 1 ? texts[first] : `${texts[first]} ×${count}`;
  });
}

/** A failure in one line. */
function textOf({ trace, found: { outcomes, note } }) {
  const origin = outcomes[0].added ?? outcomes[0].at;
  const ids = new Set(attempts(outcomes).map(({ id }) => id));
  const shown = outcomes.map(({ op, id, cost, at, by, max, allowed, wait, added }) => {
    if (op === 'step') return `clock set by ${by < 0 ? '−' : '+'}${seconds(Math.abs(by))}`;
    if (op === 'setLimits') return `limit ${max}`;
    const who = `${ids.size > 1 ? ` id ${id}` : ''}${cost > 1 ? ` cost ${cost}` : ''}`;
    if (added !== undefined) {
      const start = allowed ? `starts at ${seconds(at - origin)}` : 'not started';
      return `${seconds(added - origin)}${who}: ${start}`;
    }
    const answer = allowed ? 'allowed' : `refused${wait === undefined ? '' : ` (${wait} ms)`}`;
    return `${seconds(at - origin)}${who}: ${answer}`;
  });
  const policy = `limit ${maxOf(trace)} in ${seconds(intervalOf(trace))}`;
  return `${policy}; ${withoutRepeats(shown).join(', ')}. ${note[0].toUpperCase()}${note.slice(1)}`;
}

module.exports = { PROMISES, STEP_KINDS, findFailure, neverMore, textOf };
