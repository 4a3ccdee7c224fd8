// Whose turn it is to take what this process frees of an id, where calls wait in other processes, too. These ask again
// every 50 ms, so they would get nothing from a process that always has a call that takes it at once.
'use strict';

const { now } = require('../../base/timers');

/** In us. For so long this process takes at once what it frees. Then, for the time of a poll, only polls take it. */
const LONGEST_TURN = 1_000_000;
const LONGEST_POLL = 60_000;

/** Ids that are known at once. */
const MOST = 1000;

class Turns {
  /** By id: when the turn of this process began, or will begin, and when it last freed something. */
  #turns = new Map();

  /** To be called when something was freed. Returns whether a call that waits here may take it at once. */
  freed(key) {
    const moment = now();
    const turn = this.#turns.get(key);
    if (turn === undefined) {
      if (this.#turns.size >= MOST) this.#turns.clear();
      this.#turns.set(key, { began: moment, freedAt: moment });
      return true;
    }
    turn.freedAt = moment;
    return this.#isOn(turn, moment);
  }

  /** Whether a call may take at once what it finds, although nobody waited before it. */
  mayTake(key) {
    const moment = now();
    const turn = this.#turns.get(key);
    if (turn === undefined) return true;
    if (moment - turn.freedAt <= LONGEST_POLL) return this.#isOn(turn, moment);
    this.#turns.delete(key); // it has been free for everybody
    return true;
  }

  #isOn(turn, moment) {
    if (moment < turn.began) return false;
    if (moment - turn.began < LONGEST_TURN) return true;
    turn.began = moment + LONGEST_POLL;
    return false;
  }
}

module.exports = { Turns };
