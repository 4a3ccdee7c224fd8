// wait(): its options, and for each limiter a line for each id that somebody waits for.
'use strict';

const { optionTypeError, failure, closedError } = require('../../base/errors');
const { idToString } = require('../../base/ids');
const { fromNow, reasonOf } = require('../../base/timers');
const {
  hasMethods,
  readCount,
  readInteger,
  readNumber,
  readObject,
  rejectUnknownOptions,
} = require('../../options/values');
const { POLLS } = require('./polls');
const { Line } = require('./waiting-calls');
const { HIGHEST } = require('./priorities');
const { Turns } = require('./turns');

const NAMES = ['signal', 'deadline', 'maxQueue', 'priority'];
const PLACE = 'wait options';

/** 31 years: a larger number is a time of day, as of Date.now(), and not a duration. */
const LONGEST_DEADLINE = 1e12;

function readSignal(signal) {
  if (signal === undefined) return undefined;
  const isTarget = hasMethods(signal, 'addEventListener', 'removeEventListener');
  if (isTarget && typeof signal.aborted === 'boolean') return signal;
  throw optionTypeError('signal', 'an AbortSignal', signal);
}

function readDeadline(deadline) {
  if (deadline === undefined) return undefined;
  const isInRange = (ms) => ms >= 0 && ms < LONGEST_DEADLINE;
  const expected = 'a number of ms from the call on, from 0 to below 1e12';
  return readNumber('deadline', deadline, expected, isInRange);
}

/**
 * The options of one call; `deadline` in ms after it. Those with the names `ofDemand` are the limiter's own: `readDemand`
 * checks them.
 */
function readWaitOptions(options = {}, ofDemand, readDemand) {
  rejectUnknownOptions(readObject(PLACE, options), [...ofDemand, ...NAMES], { place: PLACE });
  const { signal, deadline, maxQueue, priority = 0 } = options;
  return {
    demand: readDemand(options),
    signal: readSignal(signal),
    deadline: readDeadline(deadline),
    maxQueue: maxQueue === undefined ? Infinity : readCount('maxQueue', maxQueue),
    priority: readInteger('priority', priority, 0, HIGHEST),
  };
}

/** The waiting calls of one limiter. */
class Waiting {
  /** As in Line. */
  #store;
  #lines = new Map();
  /** Where other processes poll. */
  #turns;

  constructor(store) {
    this.#store = store;
    if (store.polls !== undefined) this.#turns = new Turns();
  }

  /** How many calls wait. */
  get length() {
    return [...this.#lines.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Promises the answer of the attempt that is allowed. */
  wait(id, { demand, signal, deadline, maxQueue, priority }) {
    return new Promise((resolve, reject) => {
      const key = idToString(id);
      if (signal?.aborted) {
        reject(reasonOf(signal));
        return;
      }
      const waiting = this.#lines.get(key)?.length ?? 0;
      if (waiting >= maxQueue) {
        const message = `${waiting} are waiting for this id already (maxQueue ${maxQueue})`;
        throw failure('ERR_ROLLGATE_WAIT_QUEUE', message);
      }
      const deadlineAt = deadline === undefined ? Infinity : fromNow(deadline);
      const waiter = { id, demand, priority, signal, deadline, deadlineAt, resolve, reject };
      const mayTake = waiting > 0 || this.#turns === undefined || this.#turns.mayTake(key);
      this.#lineOf(key).add(waiter, mayTake);
    });
  }

  /** Call this after anything that may allow an id earlier than the store said. */
  changed(id) {
    if (this.#lines.size === 0 && this.#turns === undefined) return;
    const key = idToString(id);
    const line = this.#lines.get(key);
    if (this.#turns === undefined || this.#turns.freed(key)) line?.wake();
  }

  changedAll() {
    for (const line of [...this.#lines.values()]) line.wake();
  }

  /** After a change of limits: rejects calls with a demand that `assertFits` throws for, because it can never pass now. */
  limitsChanged(assertFits) {
    for (const line of [...this.#lines.values()]) {
      line.failWhere(assertFits);
      line.wake();
    }
  }

  close() {
    for (const line of [...this.#lines.values()]) line.close(closedError());
    this.#lines.clear();
  }

  #lineOf(key) {
    const found = this.#lines.get(key);
    if (found !== undefined) return found;
    const line = new Line(this.#store, () => {
      if (this.#lines.get(key) === line) this.#lines.delete(key);
    });
    this.#lines.set(key, line);
    return line;
  }
}

module.exports = { POLLS, Waiting, readWaitOptions };
