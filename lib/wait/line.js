// Those who wait for one id: first come, first served, and only the first of them asks the store.
'use strict';

const { failure } = require('../errors');
const { Queue } = require('../queue');
const { longTimeout } = require('./long-timeout');
const { fromNow, msUntil, now } = require('./moments');
const { onAbort } = require('./on-abort');

/** After as many, whoever else has something to do has a turn: a store in memory would leave none. */
const MOST_OF_ONE_TURN = 1000;

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

function tooLate({ deadline }, timeLeft) {
  const message =
    timeLeft === undefined
      ? `the action was not allowed within ${deadline} ms`
      : `the action would be allowed in ${timeLeft} ms, past its deadline, ${deadline} ms after the call`;
  return failure('ERR_ROLLGATE_WAIT_DEADLINE', message);
}

/**
 * A *waiter* is `{ id, cost, signal, deadline, deadlineAt, resolve, reject }`; what else is in it belongs to
 * this. Moments are those of ./moments.js.
 */
class Line {
  #store;
  #onEmpty;
  #queue = new Queue();
  #isServing = false;
  #isToBeServed = false;
  #isClosed = false;
  #stopTimer = () => {};
  /** What the store told last: `cost` or more is not allowed before `at`. */
  #refusal = null;
  /** How often that was declared out of date. */
  #wakings = 0;

  /**
   * @param {{ waitOf: Function, attempt: Function, refund: Function, showsRoom: boolean }} store of
   *   functions that may give promises: waitOf(id, cost) of how many ms the attempt would not be allowed
   *   at least, 0 if it would be; attempt(id, cost) of a Decision. `showsRoom`: whether an attempt is
   *   allowed whose cost is within the last one's actionsLeft
   * @param {() => void} onEmpty called when nobody is left and nothing is under way
   */
  constructor(store, onEmpty) {
    this.#store = store;
    this.#onEmpty = onEmpty;
  }

  get length() {
    return this.#queue.length;
  }

  /** Asks the store before it returns if nobody else is waiting. */
  add(waiter) {
    const refusal = this.#refusalFor(waiter);
    if (refusal !== null && refusal.at > waiter.deadlineAt) {
      waiter.reject(tooLate(waiter, msUntil(refusal.at)));
      return;
    }
    waiter.isWaiting = true;
    this.#queue.add(waiter);
    if (this.#queue.length === 1) this.#serve();
    if (waiter.isWaiting) this.#watch(waiter);
  }

  /** What the store told may not hold any more: it is asked again. */
  wake() {
    this.#refusal = null;
    this.#wakings += 1;
    this.#serve();
  }

  close(error) {
    this.#isClosed = true;
    this.#stopTimer();
    while (this.#queue.first !== null) this.#fail(this.#queue.first, error);
  }

  #watch(waiter) {
    const { signal, deadline } = waiter;
    if (signal !== undefined) {
      const leave = () => this.#leave(waiter, signal.reason);
      if (signal.aborted)
        leave(); // the user's clock may have done it
      else waiter.unwatchSignal = onAbort(signal, leave);
    }
    if (deadline !== undefined && waiter.isWaiting) {
      waiter.stopDeadline = longTimeout(() => this.#leave(waiter, tooLate(waiter)), deadline);
    }
  }

  /** Whether the waiter was waiting still. */
  #take(waiter) {
    if (!waiter.isWaiting) return false;
    waiter.isWaiting = false;
    this.#queue.remove(waiter);
    waiter.unwatchSignal?.();
    waiter.stopDeadline?.();
    return true;
  }

  #fail(waiter, error) {
    if (this.#take(waiter)) waiter.reject(error);
  }

  #leave(waiter, error) {
    const wasFirst = waiter === this.#queue.first;
    this.#fail(waiter, error);
    if (!wasFirst || this.#isToBeServed) return;
    // Others may leave at the same time: who is first now is seen when all have.
    this.#isToBeServed = true;
    Promise.resolve().then(() => {
      this.#isToBeServed = false;
      this.#serve();
    });
  }

  #refusalFor({ cost }) {
    const refusal = this.#refusal;
    const holds = refusal !== null && cost >= refusal.cost && refusal.at > now();
    return holds ? refusal : null;
  }

  /** Until everybody has an answer, or the first of them has to wait. Runs on at once as far as the store does. */
  async #serve() {
    if (this.#isServing) return;
    this.#isServing = true;
    this.#stopTimer();
    let room = 0; // an attempt of this cost would be allowed
    for (let steps = 1; this.#queue.first !== null; steps++) {
      if (steps % MOST_OF_ONE_TURN === 0) {
        await nextTurn();
        continue;
      }
      const waiter = this.#queue.first;
      const refusal = this.#refusalFor(waiter);
      if (refusal !== null) {
        if (refusal.at > waiter.deadlineAt) {
          this.#fail(waiter, tooLate(waiter, msUntil(refusal.at)));
          continue;
        }
        this.#stopTimer = longTimeout(() => this.#serve(), msUntil(refusal.at));
        break;
      }
      const { id, cost } = waiter;
      const isAttempt = cost <= room;
      const wakings = this.#wakings;
      room = 0;
      try {
        const asked = isAttempt ? this.#store.attempt : this.#store.waitOf;
        const answer = asked(id, cost);
        const told = answer instanceof Promise ? await answer : answer;
        const timeLeft = isAttempt ? told.timeLeft : told;
        if (timeLeft > 0) {
          this.#noteRefusal(cost, timeLeft, wakings);
        } else if (!isAttempt) {
          room = cost;
        } else if (this.#take(waiter)) {
          waiter.resolve(told);
          if (this.#store.showsRoom) room = told.actionsLeft;
        } else {
          await this.#giveBack(told);
        }
      } catch (error) {
        this.#fail(waiter, error);
      }
    }
    this.#isServing = false;
    if (this.#queue.first === null) this.#onEmpty();
  }

  /** Unless it was asked for before the line was woken: then it is asked for again. */
  #noteRefusal(cost, timeLeft, wakings) {
    if (wakings === this.#wakings) this.#refusal = { cost, at: fromNow(timeLeft) };
  }

  /** What was recorded for somebody who left meanwhile. */
  async #giveBack(decision) {
    if (this.#isClosed) return;
    try {
      await this.#store.refund(decision);
    } catch {
      // Nobody is left to be told; stats().errors counts it.
    }
  }
}

module.exports = { Line };
