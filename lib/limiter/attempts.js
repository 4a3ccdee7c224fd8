// Attempts: what their store decides, as a Decision or usage; under limits of 0 or Infinity also without the store.
'use strict';

const { clockReader } = require('../base/clock');
const {
  BLOCKED_BY_COUNT,
  Decision,
  NUMBERS,
  RECORDS,
  decisionLength,
  newAttempt,
  readUsage,
  tightestWindow,
} = require('../base/decision');
const { MOST, costAt, readCost } = require('../options/costs');
const { closedFor, isClosed, readTerms } = require('./terms');

/** Of a limiter. */
const STORE = Symbol('store');
/** Mutable state: the `checked` options, which setLimits replaces, and the `waiting` calls, which the first wait() creates. */
const CURRENT = Symbol('current');

/** `cost` is checked; `terms` are those of terms.js. */
function decide(limiter, id, cost, records, terms) {
  const attempt = newAttempt(limiter, id, cost, records);
  const { checked } = limiter[CURRENT];
  const { windows } = checked;
  // Two readers: one for both takes a tenth longer.
  const read =
    terms === undefined
      ? (numbers) => new Decision(numbers, 0, windows, attempt)
      : (numbers) => decisionOn(terms, numbers, checked, attempt);
  return limiter[STORE].decide(id, cost, records, read, terms);
}

function decisionOn(terms, numbers, checked, attempt) {
  const decision = new Decision(numbers, 0, checked.windows, attempt, terms.maxima);
  if (decision.timeLeft !== Number.POSITIVE_INFINITY) return decision;
  if (!isClosed(attempt.cost, terms)) return decision;
  decision.timeLeft = closedFor(numbers[NUMBERS.AT], terms, checked);
  decision.resetIn = decision.timeLeft;
  return decision;
}

/** After what is recorded: RECORDS.RECORD, or RECORDS.NOTHING at cost 0. */
function decideUsage(limiter, id, cost, records, terms) {
  const { checked } = limiter[CURRENT];
  const read = (numbers) => {
    const usage = readUsage(numbers, checked.windows, terms?.maxima);
    if (terms !== undefined && isClosed(1, terms)) {
      usage.allowed = false;
      usage.timeLeft = closedFor(numbers[NUMBERS.AT], terms, checked);
    }
    return usage;
  };
  return limiter[STORE].decide(id, cost, records, read, terms);
}

/** ATTEMPT_OR_REFUSE of base/internal-methods.js. */
function attemptOrRefuse(limiter, id, options) {
  const { checked } = limiter[CURRENT];
  const cost = readCost(options.cost, checked, MOST);
  const terms = readTerms(options, checked, Number.POSITIVE_INFINITY);
  if (terms === undefined) return decide(limiter, id, cost, RECORDS.ATTEMPT, terms);
  if (isClosed(cost, terms)) return closedDecision(limiter, id, cost, terms);
  return terms.limits === terms.maxima
    ? decide(limiter, id, cost, RECORDS.ATTEMPT, terms)
    : decidePartly(limiter, id, cost, terms);
}

/** Some windows do not count the attempt: those with a maximum of Infinity. */
function decidePartly(limiter, id, cost, terms) {
  const { checked } = limiter[CURRENT];
  const isCounted = (max) => max !== Number.POSITIVE_INFINITY;
  const costs = terms.maxima.map((max, i) => (isCounted(max) ? costAt(cost, i) : 0));
  if (!costs.some((own) => own > 0)) return openDecision(limiter, id, terms);
  const attempt = newAttempt(limiter, id, costs, RECORDS.ATTEMPT);
  attempt.isNumber = typeof cost === 'number';
  const read = (numbers) => {
    const decision = decisionOn(terms, numbers, checked, attempt);
    decision.limits = decision.limits.filter(({ maxInInterval }) => isCounted(maxInInterval));
    const { remaining, resetIn } = tightestWindow(decision.limits);
    decision.actionsLeft = remaining;
    if (decision.allowed) decision.resetIn = resetIn;
    return decision;
  };
  return limiter[STORE].decide(id, costs, RECORDS.ATTEMPT, read, terms);
}

/** Nothing is counted under limits of Infinity. */
function openDecision(limiter, id, terms) {
  return decisionWithoutStore(limiter, id, 0, terms, { ACTIONS_LEFT: Number.POSITIVE_INFINITY });
}

/** What limits of 0 refuse leaves no trace. They refuse also while the store does not answer. */
function closedDecision(limiter, id, cost, terms) {
  const { clock } = limiter[CURRENT].checked;
  return decisionWithoutStore(limiter, id, cost, terms, {
    BLOCKED: BLOCKED_BY_COUNT,
    TIME_LEFT: Number.POSITIVE_INFINITY,
    AT: clock === undefined ? Date.now() * 1000 : clockReader(clock, () => {})(),
  });
}

/** `given`: the numbers of the decision that are not 0. */
function decisionWithoutStore(limiter, id, cost, terms, given) {
  const { checked } = limiter[CURRENT];
  const numbers = new Float64Array(decisionLength(checked.windows.length));
  for (const [name, number] of Object.entries(given)) numbers[NUMBERS[name]] = number;
  const attempt = newAttempt(limiter, id, cost, RECORDS.NOTHING);
  return decisionOn(terms, numbers, checked, attempt);
}

module.exports = { CURRENT, STORE, attemptOrRefuse, decide, decideUsage };
