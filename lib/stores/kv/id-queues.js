// Queues this process's calls on one id, so that they do not race with each other.
'use strict';

const failures = require('./failures');
const { NOTHING } = require('./adapters');

/** Further calls are decided in the next round, so that the event loop turns in between. */
const MOST_IN_ROUND = 1000;

/** The calls on one id. */
class Line {
  calls = [];
  isRunning = false;
  /** Changes when the current round is abandoned: the next one does not wait for it. */
  turn = 0;
  /** The pending request to the store, and since when. */
  question = undefined;
  /** Why the last round failed: the error of a busy store, null for a lost race. */
  obstacle = undefined;

  constructor(id, key) {
    this.id = id;
    this.key = key;
  }

  dropSettled() {
    this.calls = this.calls.filter(({ isPending }) => isPending);
  }
}

/**
 * Calls are settled in *rounds*: a round reads the state of an id, lets each call in the line decide on it in
 * turn, and writes the result once, on the condition that the stored state is unchanged.
 */
class Lines {
  #store;
  #deadlines;
  #commandTimeout;
  #ttlOf;
  #lines = new Map();
  conflicts = 0;

  /**
   * @param {object} store see adapters.js
   * @param {{ deadlines: object, commandTimeout: number, ttlOf: Function }} times `deadlines` (of remote/) call
   *   `expire()` of late calls; `ttlOf(state)` is for how many ms to keep the state that was just decided
   */
  constructor(store, { deadlines, commandTimeout, ttlOf }) {
    this.#store = store;
    this.#deadlines = deadlines;
    this.#commandTimeout = commandTimeout;
    this.#ttlOf = ttlOf;
  }

  /**
   * `decide(state)` returns the next state, the same one if nothing changes, and may be called again with another
   * state. `done(error)` is called once, later; with null, the last decision is valid.
   */
  add(id, decide, done) {
    let line = this.#lines.get(id);
    if (line === undefined) {
      line = new Line(id, this.#store.keyOf(id));
      this.#lines.set(id, line);
    }
    const call = { decide, done, expire: () => this.#expire(call, line) };
    this.#deadlines.begin(call);
    line.calls.push(call);
    this.#abandonUnanswered(line, this.#commandTimeout);
    if (!line.isRunning) this.#run(line);
  }

  #settle(call, error) {
    if (this.#deadlines.end(call)) call.done(error);
  }

  #expire(call, line) {
    this.#abandonUnanswered(line, this.#commandTimeout / 2);
    const { obstacle } = line;
    if (!line.isRunning) this.#run(line);
    call.done(
      obstacle === null
        ? failures.lostRaces(this.#commandTimeout)
        : failures.timeout(this.#commandTimeout, obstacle),
    );
  }

  /** The store may never answer: other calls wait no longer than those of the pending request. */
  #abandonUnanswered(line, afterMs) {
    const { question } = line;
    if (question === undefined || performance.now() - question.askedAt < afterMs) return;
    line.calls = question.undecided.concat(line.calls);
    line.turn += 1;
    line.isRunning = false;
    line.question = undefined;
    line.obstacle = undefined;
  }

  /** Asks the store; the `undecided` calls return to the line if the request is abandoned. */
  async #ask(line, undecided, action) {
    const question = { undecided, askedAt: performance.now() };
    line.question = question;
    try {
      return await action();
    } finally {
      if (line.question === question) line.question = undefined;
    }
  }

  /** Makes rounds while there are calls in line. */
  async #run(line) {
    const { turn } = line;
    line.isRunning = true;
    await undefined; // so that calls made in one go share a round
    for (let lost = 0; ; ) {
      line.dropSettled();
      if (line.calls.length === 0) break;
      const isDone = await this.#makeRound(line);
      if (line.turn !== turn) return;
      if (isDone) {
        lost = 0;
        line.obstacle = undefined;
      } else {
        this.conflicts += 1;
        await backOff(lost++);
      }
    }
    line.isRunning = false;
    if (this.#lines.get(line.id) === line) this.#lines.delete(line.id);
  }

  /** Whether the round succeeded: nobody else wrote meanwhile. */
  async #makeRound(line) {
    const { turn } = line;
    // Without later calls: what is read may be older than they are.
    const calls = line.calls.splice(0, MOST_IN_ROUND);
    let found;
    try {
      found = await this.#ask(line, calls, () => this.#store.read(line.key));
    } catch (error) {
      return line.turn !== turn || this.#fail(line, calls, error);
    }
    if (line.turn !== turn) return true;
    const next = this.#decideAll(calls, found.state);
    // From here on the calls belong to this round even if it is abandoned: they may be written, and only once.
    try {
      if (
        next !== found.state &&
        !(await this.#ask(line, [], () => this.#write(line.key, next, found.version)))
      ) {
        return this.#putBack(line, calls, null);
      }
    } catch (error) {
      return this.#fail(line, calls, error);
    }
    for (const call of calls) this.#settle(call, null);
    return true;
  }

  /** Nothing was written because of this obstacle: the calls are first in the line again. */
  #putBack(line, calls, obstacle) {
    line.calls = calls.concat(line.calls);
    line.obstacle = obstacle;
    if (!line.isRunning) this.#run(line);
    return false;
  }

  #fail(line, calls, error) {
    if (failures.isBusy(error)) return this.#putBack(line, calls, error);
    for (const call of calls) this.#settle(call, failures.from(error));
    return true;
  }

  #decideAll(calls, found) {
    let state = found;
    for (const call of calls) {
      if (!call.isPending) continue;
      try {
        state = call.decide(state);
      } catch (error) {
        this.#settle(call, error);
      }
    }
    return state;
  }

  #write(key, state, version) {
    if (state === NOTHING) return this.#store.forget(key, version);
    return this.#store.write(key, state, version, this.#ttlOf(state));
  }
}

/** The longest back-off the first time, in ms; it doubles with each. */
const FIRST = 1;
const LONGEST = 64;

/** Waits at random after a lost race. The timer is unref'd, because the deadlines of calls keep the process alive. */
function backOff(times) {
  const longest = Math.min(FIRST * 2 ** times, LONGEST);
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.random() * longest);
    timer.unref?.();
  });
}

module.exports = { Lines, backOff };
