// Lets the calls of this process on one id wait in line, so that they do not race with each other.
'use strict';

const { backOff } = require('./back-off');
const failures = require('./failures');
const { NOTHING } = require('./state');

/** More are decided in a next round, so that the event loop goes on in between. */
const MOST_IN_ROUND = 1000;

/** The calls on one id. */
class Line {
  calls = [];
  isRunning = false;
  /** Changes when the round under way is given up: others are made then without waiting for it. */
  turn = 0;
  /** What the store is asked, and since when. */
  question = undefined;
  /** Why the last round came to nothing: what a busy store said, null for a lost race. */
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
 * Calls are settled in *rounds*: one reads the state of an id, has each call in line decide on it, one
 * after the other, and writes what comes of it once, on the condition that it is what it was.
 */
class Lines {
  #store;
  #deadlines;
  #commandTimeout;
  #ttlOf;
  #lines = new Map();
  conflicts = 0;

  /**
   * @param {object} store of deno-kv.js or plain-kv.js
   * @param {{ deadlines: object, commandTimeout: number, ttlOf: Function }} times `deadlines` of remote/
   *   call `expire()` of what is late; `ttlOf(state)` is for how many ms to keep what was just decided
   */
  constructor(store, { deadlines, commandTimeout, ttlOf }) {
    this.#store = store;
    this.#deadlines = deadlines;
    this.#commandTimeout = commandTimeout;
    this.#ttlOf = ttlOf;
  }

  /**
   * `decide(state)` returns the next state, the same if nothing changes, and may be asked again with
   * another one. `done(error)` is called once, later; with null, what was decided last holds.
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
    this.#giveUpUnanswered(line, this.#commandTimeout);
    if (!line.isRunning) this.#run(line);
  }

  #settle(call, error) {
    if (this.#deadlines.end(call)) call.done(error);
  }

  #expire(call, line) {
    this.#giveUpUnanswered(line, this.#commandTimeout / 2);
    const { obstacle } = line;
    if (!line.isRunning) this.#run(line);
    call.done(
      obstacle === null
        ? failures.lostRaces(this.#commandTimeout)
        : failures.timeout(this.#commandTimeout, obstacle),
    );
  }

  /** An answer may never come: other calls do not wait for it any longer than those that it is for. */
  #giveUpUnanswered(line, afterMs) {
    const { question } = line;
    if (question === undefined || performance.now() - question.askedAt < afterMs) return;
    line.calls = question.undecided.concat(line.calls);
    line.turn += 1;
    line.isRunning = false;
    line.question = undefined;
    line.obstacle = undefined;
  }

  /** Has the store answer; the `undecided` are in line again if it is given up. */
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
    await undefined; // so that calls made one right after the other are of one round
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

  /** Whether there is nothing to do again: nobody else was at it meanwhile. */
  async #makeRound(line) {
    const { turn } = line;
    // Nobody who comes later: what is read may be older than their call.
    const calls = line.calls.splice(0, MOST_IN_ROUND);
    let found;
    try {
      found = await this.#ask(line, calls, () => this.#store.read(line.key));
    } catch (error) {
      return line.turn !== turn || this.#fail(line, calls, error);
    }
    if (line.turn !== turn) return true;
    const next = this.#decideAll(calls, found.state);
    // From here on they are this round's, also if it is given up: they may be written, and only once.
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

  /** Nothing has happened, because of this obstacle: the calls are first in line again. */
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

module.exports = { Lines };
