// The calls that wait for one id, in their order. Only the first one makes attempts; where answers take a while, those
// behind it that want the same do as well.
'use strict';

const { nextTurn } = require('#platform');
const { failure } = require('../../base/errors');
const { fromNow, longTimeout, msUntil, now, onAbort, reasonOf } = require('../../base/timers');
const { Order } = require('./priorities');

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
 * A *waiter* is `{ id, demand, priority, signal, deadline, deadlineAt, resolve, reject }`; its other properties belong
 * to this class and to Order. Demands are those of the store, times those of timers.js.
 */
class Line {
  #store;
  #onEmpty;
  #order = new Order();
  #isServing = false;
  #isToBeServed = false;
  #isClosed = false;
  #stopTimer = () => {};
  /** The last refusal of the store: `demand`, or a larger one, is not allowed before `at`. */
  #refusal = null;
  /** How often the refusal was invalidated. */
  #wakings = 0;
  /** How many attempts at once are likely to be allowed. */
  #promising = 1;
  /** No waiter has an earlier deadline. */
  #earliestDeadline = Number.POSITIVE_INFINITY;

  /**
   * @param {object} store
   * @param {Function} store.attempt (id, demand) => an answer, or a promise of it. If it is not `allowed`, it left no trace
   * @param {Function} store.refund takes back an answer; may return a promise
   * @param {Function} store.isAtLeast (demand, other) => whether it is refused where the other one is
   * @param {Function} store.timeLeftOf (refusal) => after how many ms to ask again; Infinity if only `wake` makes sense
   * @param {boolean} store.isTimeKnown whether attempts before that time are refused, unless `wake` is called
   * @param {Function} [store.timeLeftFor] (id, demand) => for how many ms an attempt would be refused, at once
   * @param {number} [store.mostAtOnce] attempts, if it promises its answers and judges them in their order; default 1
   * @param {Polls} [store.polls] ask again, if other processes may change its answers
   * @param {() => void} onEmpty called when no waiter is left and no call is pending
   */
  constructor(store, onEmpty) {
    this.#store = store;
    this.#onEmpty = onEmpty;
  }

  get length() {
    return this.#order.length;
  }

  /** Asks the store before it returns, if no other call is waiting; or else with the next poll. */
  add(waiter, mayTake = true) {
    const refusal = this.#refusalFor(waiter);
    if (refusal !== null && this.#isTooLate(waiter, refusal.at)) {
      waiter.reject(tooLate(waiter, msUntil(refusal.at)));
      return;
    }
    waiter.isWaiting = true;
    this.#order.add(waiter);
    this.#earliestDeadline = Math.min(this.#earliestDeadline, waiter.deadlineAt);
    if (!mayTake) this.#pause({ at: Number.POSITIVE_INFINITY });
    else if (this.#order.first() === waiter) this.#serve();
    else if (waiter.deadline !== undefined && this.#store.timeLeftFor) this.#askBehind(waiter);
    if (waiter.isWaiting) this.#watch(waiter);
  }

  #isTooLate({ deadlineAt }, at) {
    return this.#store.isTimeKnown && at > deadlineAt;
  }

  /** Those in front can only make the wait longer. */
  #askBehind(waiter) {
    try {
      const timeLeft = this.#store.timeLeftFor(waiter.id, waiter.demand);
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
    this.#promising += 1;
    this.#serve();
  }

  /** Rejects those whose demand `assertFits` throws for. Call `wake` after it. */
  failWhere(assertFits) {
    for (const waiter of this.#order) {
      try {
        assertFits(waiter.demand);
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

  #refusalFor({ demand }) {
    const refusal = this.#refusal;
    if (refusal === null || refusal.at <= now()) return null;
    return this.#store.isAtLeast(demand, refusal.demand) ? refusal : null;
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
        this.#pause(refusal);
        break;
      }
      const alike = this.#thoseLike(waiter);
      if (alike.length > 1) {
        await this.#serveTogether(alike);
        continue;
      }
      const { id, demand } = waiter;
      const wakings = this.#wakings;
      try {
        const promised = this.#store.attempt(id, demand);
        const answer = promised instanceof Promise ? await promised : promised;
        if (!answer.allowed) {
          this.#noteRefusal(demand, answer, wakings);
          continue;
        }
        this.#promising = Math.max(this.#promising, 2);
        if (this.#take(waiter)) waiter.resolve(answer);
        else await this.#giveBack(answer);
      } catch (error) {
        this.#fail(waiter, error);
      }
    }
    this.#isServing = false;
    if (this.#order.first() === null) this.#onEmpty();
  }

  /** The first waiter and those behind it whose attempts may be made together with its own. */
  #thoseLike(first) {
    const most = Math.min(this.#promising, this.#store.mostAtOnce ?? 1);
    if (most <= 1) return [first];
    const { isAtLeast } = this.#store;
    const alike = [];
    for (const waiter of this.#order.front()) {
      const { demand } = waiter;
      if (!isAtLeast(demand, first.demand) || !isAtLeast(first.demand, demand)) break;
      if (alike.push(waiter) === most) break;
    }
    return alike;
  }

  /** They want the same, so it is all one which of them an answer was for: the first ones get what is allowed. */
  async #serveTogether(waiters) {
    const wakings = this.#wakings;
    const attempts = waiters.map(async ({ id, demand }) => this.#store.attempt(id, demand));
    const allowed = [];
    for (const { value, reason } of await Promise.allSettled(attempts)) {
      if (value === undefined) this.#failFirst(waiters, reason);
      else if (value.allowed) allowed.push(value);
      else this.#noteRefusal(waiters[0].demand, value, wakings);
    }
    if (allowed.length === waiters.length) this.#promising = 2 * waiters.length;
    for (const waiter of waiters) {
      if (allowed.length > 0 && this.#take(waiter)) waiter.resolve(allowed.shift());
    }
    await Promise.all(allowed.map((answer) => this.#giveBack(answer)));
  }

  #failFirst(waiters, error) {
    const waiter = waiters.find(({ isWaiting }) => isWaiting);
    if (waiter !== undefined) this.#fail(waiter, error);
  }

  /** Until the refusal is over, another one is the first, or it is time to ask again. */
  #pause({ at }) {
    const ms = msUntil(Math.min(at, this.#order.changesAt()));
    const stopTimer = ms < Infinity ? longTimeout(() => this.#serve(), ms) : undefined;
    const stopPoll = this.#store.polls?.add(() => this.wake());
    this.#stopTimer = () => {
      stopTimer?.();
      stopPoll?.();
    };
  }

  /** Rejects all whose deadline cannot be met. */
  #failLate({ demand, at }) {
    if (!this.#store.isTimeKnown || at <= this.#earliestDeadline) return;
    let earliest = Number.POSITIVE_INFINITY;
    for (const waiter of this.#order) {
      const isLate = at > waiter.deadlineAt && this.#store.isAtLeast(waiter.demand, demand);
      if (isLate) this.#fail(waiter, tooLate(waiter, msUntil(at)));
      else earliest = Math.min(earliest, waiter.deadlineAt);
    }
    this.#earliestDeadline = earliest;
  }

  /** Ignores a refusal from before the line was woken. */
  #noteRefusal(demand, refusal, wakings) {
    if (wakings !== this.#wakings) return;
    this.#promising = 0;
    this.#refusal = { demand, at: fromNow(this.#store.timeLeftOf(refusal)) };
  }

  /** Takes back an attempt for a waiter that left meanwhile. */
  async #giveBack(answer) {
    if (this.#isClosed) return;
    try {
      await this.#store.refund(answer);
    } catch {
      // No caller is left to get this error; stats().errors counts it.
    }
  }
}

module.exports = { Line };
