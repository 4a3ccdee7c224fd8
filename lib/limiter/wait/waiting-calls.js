// The calls that wait for one id, in their order. Only the first one makes attempts.
'use strict';

const { nextTurn } = require('#platform');
const { isAtLeast } = require('../../options/costs');
const { failure } = require('../../base/errors');
const { Order } = require('./priorities');
const { fromNow, longTimeout, msUntil, now, onAbort, reasonOf } = require('./timers');

/** After as many steps the event loop gets a turn: a store in memory would leave it none. */
const MOST_OF_ONE_TURN = 1000;

function tooLate({ deadline }, timeLeft) {
  const message =
    timeLeft === undefined
      ? `the action was not allowed within ${deadline} ms`
      : `the action would be allowed in ${timeLeft} ms, past its deadline, ${deadline} ms after the call`;
  return failure('ERR_ROLLGATE_WAIT_DEADLINE', message);
}

/**
 * A *waiter* is `{ id, cost, priority, signal, deadline, deadlineAt, resolve, reject }`; its other properties belong
 * to this class and to Order. Costs are checked ones (costs.js), times those of timers.js.
 */
class Line {
  #store;
  #onEmpty;
  #order = new Order();
  #isServing = false;
  #isToBeServed = false;
  #isClosed = false;
  #stopTimer = () => {};
  /** The last refusal of the store: `cost`, or more in some windows, is not allowed before `at`. */
  #refusal = null;
  /** How often the refusal was invalidated. */
  #wakings = 0;
  /** No waiter has an earlier deadline. */
  #earliestDeadline = Number.POSITIVE_INFINITY;

  /**
   * @param {{ answersAtOnce: boolean, attempt: Function, timeLeftFor: Function, refund: Function }} store
   *   attempt(id, cost) returns a Decision whose refusal left no trace, refund(decision) takes it back, both in promises
   *   unless the store `answersAtOnce`. Only then, timeLeftFor(id, cost) returns for how many ms the attempt would be
   *   refused
   * @param {() => void} onEmpty called when no waiter is left and no call is pending
   */
  constructor(store, onEmpty) {
    this.#store = store;
    this.#onEmpty = onEmpty;
  }

  get length() {
    return this.#order.length;
  }

  /** Asks the store before it returns, if no other call is waiting. */
  add(waiter) {
    const refusal = this.#refusalFor(waiter);
    if (refusal !== null && refusal.at > waiter.deadlineAt) {
      waiter.reject(tooLate(waiter, msUntil(refusal.at)));
      return;
    }
    waiter.isWaiting = true;
    this.#order.add(waiter);
    this.#earliestDeadline = Math.min(this.#earliestDeadline, waiter.deadlineAt);
    if (this.#order.first() === waiter) this.#serve();
    else if (waiter.deadline !== undefined && this.#store.answersAtOnce) this.#askBehind(waiter);
    if (waiter.isWaiting) this.#watch(waiter);
  }

  /** Those in front can only make the wait longer. */
  #askBehind(waiter) {
    try {
      const timeLeft = this.#store.timeLeftFor(waiter.id, waiter.cost);
      const isLate = timeLeft > 0 && fromNow(timeLeft) > waiter.deadlineAt;
      if (isLate) this.#fail(waiter, tooLate(waiter, timeLeft));
    } catch (error) {
      this.#fail(waiter, error);
    }
  }

  /** The last refusal may be out of date: asks the store again. */
  wake() {
    this.#refusal = null;
    this.#wakings += 1;
    this.#serve();
  }

  /** Rejects those whose cost `assertFits` throws for. Call `wake` after it. */
  failWhere(assertFits) {
    for (const waiter of this.#order) {
      try {
        assertFits(waiter.cost);
      } catch (error) {
        this.#fail(waiter, error);
      }
    }
  }

  close(error) {
    this.#isClosed = true;
    this.#stopTimer();
    for (const waiter of this.#order) this.#fail(waiter, error);
  }

  #watch(waiter) {
    const { signal, deadline } = waiter;
    if (signal !== undefined) {
      const leave = () => this.#leave(waiter, reasonOf(signal));
      if (signal.aborted)
        leave(); // the user's clock may have done it
      else waiter.unwatchSignal = onAbort(signal, leave);
    }
    if (deadline !== undefined && waiter.isWaiting) {
      waiter.stopDeadline = longTimeout(() => this.#leave(waiter, tooLate(waiter)), deadline);
    }
  }

  /** Removes a waiter; returns whether it was still waiting. */
  #take(waiter) {
    if (!waiter.isWaiting) return false;
    waiter.isWaiting = false;
    this.#order.remove(waiter);
    waiter.unwatchSignal?.();
    waiter.stopDeadline?.();
    return true;
  }

  #fail(waiter, error) {
    if (this.#take(waiter)) waiter.reject(error);
  }

  #leave(waiter, error) {
    const wasFirst = waiter === this.#order.first();
    this.#fail(waiter, error);
    if (!wasFirst || this.#isToBeServed) return;
    // Several may leave at the same time: the new first one is known when all have left.
    this.#isToBeServed = true;
    Promise.resolve().then(() => {
      this.#isToBeServed = false;
      this.#serve();
    });
  }

  #refusalFor({ cost }) {
    const refusal = this.#refusal;
    const holds = refusal !== null && refusal.at > now() && isAtLeast(cost, refusal.cost);
    return holds ? refusal : null;
  }

  /** Serves until the line is empty or the first one has to wait. Synchronous as far as the store is. */
  async #serve() {
    if (this.#isServing) return;
    this.#isServing = true;
    this.#stopTimer();
    let steps = 0;
    for (let waiter = this.#order.first(); waiter !== null; waiter = this.#order.first()) {
      if (++steps % MOST_OF_ONE_TURN === 0) {
        await nextTurn();
        continue;
      }
      const refusal = this.#refusalFor(waiter);
      if (refusal !== null) {
        this.#failLate(refusal);
        if (waiter !== this.#order.first()) continue;
        const moment = Math.min(refusal.at, this.#order.changesAt());
        this.#stopTimer = longTimeout(() => this.#serve(), msUntil(moment));
        break;
      }
      const { id, cost } = waiter;
      const wakings = this.#wakings;
      try {
        const answer = this.#store.attempt(id, cost);
        const decision = answer instanceof Promise ? await answer : answer;
        if (!decision.allowed) this.#noteRefusal(cost, decision.timeLeft, wakings);
        else if (this.#take(waiter)) waiter.resolve(decision);
        else await this.#giveBack(decision);
      } catch (error) {
        this.#fail(waiter, error);
      }
    }
    this.#isServing = false;
    if (this.#order.first() === null) this.#onEmpty();
  }

  /** Rejects all whose deadline cannot be met. */
  #failLate({ cost, at }) {
    if (at <= this.#earliestDeadline) return;
    let earliest = Number.POSITIVE_INFINITY;
    for (const waiter of this.#order) {
      const isLate = at > waiter.deadlineAt && isAtLeast(waiter.cost, cost);
      if (isLate) this.#fail(waiter, tooLate(waiter, msUntil(at)));
      else earliest = Math.min(earliest, waiter.deadlineAt);
    }
    this.#earliestDeadline = earliest;
  }

  /** Ignores a refusal from before the line was woken. */
  #noteRefusal(cost, timeLeft, wakings) {
    if (wakings === this.#wakings) this.#refusal = { cost, at: fromNow(timeLeft) };
  }

  /** Refunds an attempt for a waiter that left meanwhile. */
  async #giveBack(decision) {
    if (this.#isClosed) return;
    try {
      await this.#store.refund(decision);
    } catch {
      // No caller is left to get this error; stats().errors counts it.
    }
  }
}

module.exports = { Line };
