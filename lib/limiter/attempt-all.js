// RateLimiter.attemptAll: all or nothing over several limiters and ids.
'use strict';

const { RECORDS } = require('../base/decision');
const { optionError, optionTypeError, show } = require('../base/errors');
const { idToString } = require('../base/ids');
const internal = require('../base/internal-methods');
const { readObject, rejectUnknownOptions } = require('../options/values');

const { ANSWERS_AT_ONCE, DECIDE, ENTRY_NAMES, READ_COST, TAKE_BACK } = internal;

const NAME = 'attemptAll';

function readEntry(entry, i) {
  const place = `${NAME}[${i}]`;
  const { limiter, id } = readObject(place, entry);
  const names = ['limiter', 'id', 'cost', ...(limiter?.[ENTRY_NAMES] ?? [])];
  rejectUnknownOptions(entry, names, { place });
  // A bound copy of a limiter has its methods, but not its state.
  if (typeof limiter?.[ANSWERS_AT_ONCE] !== 'boolean') {
    throw optionTypeError(`${place}.limiter`, 'a limiter', limiter);
  }
  return { limiter, id, idString: idToString(id), cost: limiter[READ_COST](entry.cost, entry) };
}

/** @throws TypeError ERR_ROLLGATE_OPTION, ERR_ROLLGATE_ID, ERR_ROLLGATE_COST; RangeError ERR_ROLLGATE_COST */
function readEntries(given) {
  const expected = 'a list of { limiter, id, cost }, with at least one of them';
  if (!Array.isArray(given)) throw optionTypeError(NAME, expected, given);
  if (given.length === 0) throw optionError(NAME, `expected ${expected}`);
  const entries = Array.from(given, readEntry);
  const idsOf = new Map();
  for (const [i, { limiter, id, idString }] of entries.entries()) {
    if (!idsOf.has(limiter)) idsOf.set(limiter, new Set());
    const ids = idsOf.get(limiter);
    if (ids.has(idString)) {
      throw optionError(`${NAME}[${i}]`, `the id ${show(id)} of this limiter is in the list twice`);
    }
    ids.add(idString);
  }
  return entries;
}

const decide = ({ limiter, id, cost }, records) => limiter[DECIDE](id, cost, records);

/** In which order to attempt. Peeks write to `decisions`; the first that is refused comes first. */
function* orderByPeeks(entries, decisions) {
  const order = [...entries.keys()];
  for (const i of order) {
    decisions[i] = yield decide(entries[i], RECORDS.NOTHING);
    if (!decisions[i].allowed) return [i, ...order.filter((other) => other !== i)];
  }
  return order;
}

/** Attempts in this order, up to a refusal. Adds the indexes of those that were allowed to `made`. */
function* attemptInOrder(entries, order, decisions, made) {
  for (const i of order) {
    decisions[i] = yield decide(entries[i], RECORDS.IF_ALLOWED);
    if (!decisions[i].allowed) return;
    made.push(i);
  }
}

/** Refunds all, also if some of that fails. Returns the errors, or a promise of them. */
function refundAll(entries, decisions, made) {
  const errors = [];
  const note = (error) => errors.push(error);
  const pending = [];
  for (const i of made) {
    try {
      const isFound = entries[i].limiter[TAKE_BACK](decisions[i]);
      if (typeof isFound !== 'boolean') pending.push(isFound.catch(note));
    } catch (error) {
      note(error);
    }
  }
  return pending.length === 0 ? errors : Promise.all(pending).then(() => errors);
}

/** The result in steps: each yields what a limiter returned, and is given what it came to. */
function* steps(entries, peeks) {
  const decisions = entries.map(() => null);
  const made = [];
  const errors = [];
  try {
    // Where nobody else can act between the two, a refusal then leaves no trace at all, as if all were one step.
    const order = peeks ? yield* orderByPeeks(entries, decisions) : entries.keys();
    yield* attemptInOrder(entries, order, decisions, made);
  } catch (error) {
    errors.push(error);
  }
  if (made.length < entries.length) errors.push(...(yield refundAll(entries, decisions, made)));
  if (errors.length > 0) throw errors[0];
  const refusedBy = decisions.findIndex((decision) => decision?.allowed === false);
  return { allowed: refusedBy === -1, decisions, refusedBy: refusedBy === -1 ? null : refusedBy };
}

function runAtOnce(generator) {
  let step = generator.next();
  while (!step.done) step = generator.next(step.value);
  return step.value;
}

async function run(generator) {
  let step = generator.next();
  while (!step.done) {
    try {
      const value = await step.value;
      step = generator.next(value);
    } catch (error) {
      step = generator.throw(error);
    }
  }
  return step.value;
}

const isRemote = (entry) => entry?.limiter?.[ANSWERS_AT_ONCE] === false;

/** If one of the limiters promises its results, so does this. */
function attemptAll(given) {
  if (!Array.isArray(given) || !given.some(isRemote)) {
    return runAtOnce(steps(readEntries(given), true));
  }
  try {
    return run(steps(readEntries(given), false));
  } catch (error) {
    return Promise.reject(error);
  }
}

module.exports = { attemptAll };
