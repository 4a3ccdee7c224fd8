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
  /** Changes when the round under way is given up; what it comes to is dropped then. */
  turn = 0;
  /** What the store is asked, and since when. */
  question = undefined;
  /** Why the last round came to nothing: what a busy store said, null for a lost race. */
  obstacle = undefined;

  constructor(id, key) {
    this.id = id;
    this.key = key;
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
  #ttlMs;
  #lines = new Map();
  conflicts = 0;

  /**
   * @param {object} store of deno-kv.js or plain-kv.js
   * @param {{ deadlines: object, commandTimeout: number, ttlMs: number }} times `deadlines` of remote/
   *   call `expire()` of what is late; a state matters for `ttlMs` once it is written
   */
  constructor(store, { deadlines, commandTimeout, ttlMs }) {
    this.#store = store;
    this.#deadlines = deadlines;
    this.#commandTimeout = commandTimeout;
    this.#ttlMs = ttlMs;
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
    this.#giveUpUnanswered(line);
    if (!line.isRunning) this.#run(line);
  }

  #settle(call, error) {
    if (this.#deadlines.end(call)) call.done(error);
  }

  #expire(call, line) {
    this.#giveUpUnanswered(line);
    const { obstacle } = line;
    if (!line.isRunning) this.#run(line);
    call.done(
      obstacle === null
        ? failures.lostRaces(this.#commandTimeout)
        : failures.timeout(this.#commandTimeout, obstacle),
    );
  }

  /** An answer may never come: other calls do not wait for it any longer than they have to. */
  #giveUpUnanswered(line) {
    const { question } = line;
    if (question === undefined) return;
    if (performance.now() - question.askedAt < this.#commandTimeout) return;
    line.turn += 1;
    line.isRunning = false;
    line.question = undefined;
    line.obstacle = undefined;
  }

  async #ask(line, action) {
    const question = { askedAt: performance.now() };
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
    for (let lost = 0; this.#isAnybodyIn(line); ) {
      const isSettled = await this.#makeRound(line);
      if (line.turn !== turn) return;
      if (isSettled) {
        lost = 0;
        line.obstacle = undefined;
      } else {
        this.conflicts += 1;
        await backOff(lost++);
      }
    }
    line.isRunning = false;
    this.#lines.delete(line.id);
  }

  #isAnybodyIn(line) {
    line.calls = line.calls.filter(({ isPending }) => isPending);
    return line.calls.length > 0;
  }

  /** Whether its calls are settled; else nothing has happened, for somebody else was at it. */
  async #makeRound(line) {
    const { turn } = line;
    let asking = line.calls; // all that are in line by the time the store answers
    let failed = null;
    try {
      const { state, version } = await this.#ask(line, () => this.#store.read(line.key));
      if (line.turn !== turn) return false;
      asking = asking.filter(({ isPending }) => isPending).slice(0, MOST_IN_ROUND);
      const next = this.#decideAll(asking, state);
      if (next !== state) {
        const isWritten = await this.#ask(line, () => this.#write(line.key, next, version));
        if (!isWritten) {
          line.obstacle = null;
          return false;
        }
      }
    } catch (error) {
      if (failures.isBusy(error)) {
        line.obstacle = error;
        return false;
      }
      failed = error;
    }
    if (line.turn !== turn) return false;
    for (const call of asking) this.#settle(call, failed === null ? null : failures.from(failed));
    return true;
  }

  #decideAll(calls, found) {
    let state = found;
    for (const call of calls) {
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
    return this.#store.write(key, state, version, this.#ttlMs);
  }
}

module.exports = { Lines };
