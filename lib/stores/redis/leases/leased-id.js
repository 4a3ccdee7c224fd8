// What a process knows of an id on Redis: how often it is asked for, its lease, and the calls that wait.
'use strict';

const { NUMBERS, decisionLength, isDuration } = require('../../../base/decision');
const { elapsedMs } = require('../clocks');

/** A shorter time tells too little of a rate. */
const MEASURED_FOR_MS = 1000;
const FORGOTTEN_AFTER = 4; // leases

const MOST_PERMITS = 65_535;
const FEWEST_PERMITS = 2;

/** The uses of a lease are remembered in so many parts of its length. */
const PARTS = 32;

/** A process believes in a lease for this part of its length, and makes ages shorter by it: clocks differ in rate. */
const TRUSTED = 7 / 8;

/** A refusal is repeated for this part of a lease at least, so that what comes back collects. */
const REFUSED_FOR = 1 / 4;

const MOST_GIVEN_UP = 8;

const NONE = 0; // in place of a lease's number

/**
 * Uses of a lease in one part of its length. A decision refers to them; they have the moment that the server has
 * recorded them at once it is known, or never.
 *
 * @typedef {{ at: number, cost: number, leased: LeasedId, request: object | undefined,
 *   moment: number | undefined, generation: number }} Uses `at` is that of the newest, by the steady clock
 */

class LeasedId {
  /** By use: see leased-ids.js. */
  newer = null;
  older = null;
  isForgotten = false;
  /** The lease. The balance is 0 without one, and from when it is settled. */
  number = NONE;
  balance = 0;
  ends = 0; // by the server's clock, in us
  sentAt = { boot: 0, steady: 0, wall: 0 };
  /** Whether it decides nothing more: the id was blocked, cleared, forgotten or overdrawn. */
  isRevoked = false;
  /** How often its refusal was forgotten. One that was on its way then may be out of date. */
  forgettings = 0;
  /** When a lease was asked for last. */
  askedAt = Number.NEGATIVE_INFINITY;
  /** @type {Uses[]} */
  uses = [];
  /** Calls that wait for the next request, and the request that is planned or sent. */
  waiting = [];
  request = null;
  /** What the latest request that wanted a lease brought, as in Request. */
  brought = Number.POSITIVE_INFINITY;
  /** The numbers of leases that the server may have granted, and whose grant is not known here. */
  givenUp = [];
  #length;
  #measuredSince = 0;
  #measured = 0;
  #rate = 0;
  #seenAt = Number.NEGATIVE_INFINITY;
  /** What the server said last of the windows, and when. */
  #shown;
  #shownAt = 0;
  #permits = 0;
  #refusal = null;

  /** @param {number} length of a lease, in ms */
  constructor(id, length) {
    this.id = id;
    this.#length = length;
  }

  /** Notes what a caller asks for. The first one begins the measurement, and is not part of it. */
  demand(cost, now) {
    const isNew = this.isUnseen(now);
    this.#seenAt = now;
    if (isNew) {
      this.#measuredSince = now;
      this.#measured = 0;
      this.#rate = 0;
      return;
    }
    this.#measured += cost;
    const passed = now - this.#measuredSince;
    if (passed < this.#length && passed < MEASURED_FOR_MS) return;
    this.#rate = (this.#rate + this.#measured / passed) / 2;
    this.#measuredSince = now;
    this.#measured = 0;
  }

  /** Whether its rate is forgotten. */
  isUnseen(now) {
    return now - this.#seenAt > FORGOTTEN_AFTER * this.#length;
  }

  /** How many permits a lease should have; 0 if the id is too slow for one. */
  get wanted() {
    const permits = Math.min(MOST_PERMITS, Math.floor(this.#rate * this.#length));
    return permits < FEWEST_PERMITS ? 0 : permits;
  }

  /**
   * How many of the calls that wait go with a request, at least one. If it wants a lease, those stay that the lease, or
   * a refusal, will probably answer without the server.
   */
  countToSend(isForLease) {
    const { waiting } = this;
    let count = waiting.length;
    if (!isForLease) return count;
    let permits = Math.min(this.wanted, this.brought);
    while (count > 1 && waiting[count - 1].cost <= permits) {
      count -= 1;
      permits -= waiting[count].cost;
    }
    return count;
  }

  /** Takes a lease that was granted at `at`, by the server's clock in us, to a request that was sent at `sentAt`. */
  open(number, permits, at, sentAt) {
    this.number = number;
    this.balance = permits;
    this.#permits = permits;
    this.ends = at + this.#length * 1000;
    this.sentAt = sentAt;
    this.isRevoked = false;
    this.uses = [];
  }

  hasEnded(now) {
    return this.isRevoked || this.age(now) >= this.#length * TRUSTED;
  }

  /** How long ago the lease was asked for, at most. */
  age(now) {
    return elapsedMs(this.sentAt, now);
  }

  /** Uses the lease; returns the Uses that this is one of. */
  use(cost, now) {
    this.balance -= cost;
    const part = Math.floor(((now - this.sentAt.steady) * PARTS) / this.#length);
    let last = this.uses.at(-1);
    const at = Math.max(now, last?.at ?? now); // in order, also if a user's clock steps back
    if (last === undefined || (last.part !== part && this.uses.length < PARTS)) {
      last = {
        part,
        at,
        cost: 0,
        leased: this,
        request: undefined,
        moment: undefined,
        generation: 0,
      };
      this.uses.push(last);
    }
    last.at = at;
    last.cost += cost;
    return last;
  }

  /** Ends the lease here. Its Uses belong to the `request` that settles it. */
  close(request) {
    const { number, uses, ends, balance: unused } = this;
    for (const one of uses) one.request = request;
    this.number = NONE;
    this.balance = 0;
    this.uses = [];
    return { number, uses, ends, unused };
  }

  /** The server may have granted a lease with this number. Others run out by themselves. */
  giveUp(number) {
    if (this.givenUp.length < MOST_GIVEN_UP) this.givenUp.push(number);
  }

  /** Notes the windows in a full reply. */
  show(numbers, now) {
    this.#shown = Float64Array.from(numbers);
    this.#shownAt = now;
  }

  /** The numbers of an allowed decision after which this balance is left; they have `at` and no generation. */
  allowed(balance, now, windows, at) {
    const shown = this.#shown;
    const passed = now - this.#shownAt;
    const length = decisionLength(windows.length);
    const numbers = new Array(length).fill(0);
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0, place = NUMBERS.WINDOWS; i < windows.length; i++, place += 2) {
      const used = shown[place] + this.#permits - balance;
      const resetIn = Math.max(0, Math.ceil(shown[place + 1] - passed));
      const left = Math.max(balance, windows[i].maxInInterval - used);
      if (left < least || (left === least && resetIn > numbers[NUMBERS.RESET_IN])) {
        least = left;
        numbers[NUMBERS.RESET_IN] = resetIn;
      }
      numbers[place] = used;
      numbers[place + 1] = resetIn;
    }
    numbers[NUMBERS.ACTIONS_LEFT] = least;
    numbers[NUMBERS.WAIT] = least === 0 ? numbers[NUMBERS.RESET_IN] : 0;
    numbers[NUMBERS.AT] = at;
    return numbers;
  }

  /** Remembers a refusal by the server, and makes its time left what it is remembered for. */
  refuse(cost, numbers, sentAt, now) {
    const timeLeft = numbers[NUMBERS.TIME_LEFT];
    if (timeLeft === Number.POSITIVE_INFINITY) return;
    const holdsFor = Math.max(timeLeft, Math.ceil(this.#length * REFUSED_FOR));
    for (const place of [NUMBERS.TIME_LEFT, NUMBERS.RESET_IN, NUMBERS.WAIT]) {
      numbers[place] = Math.max(numbers[place], holdsFor);
    }
    // By a user's clock that has stepped back, the reply is no later than what was sent.
    const at = Math.max(now, sentAt);
    this.#refusal = {
      cost,
      sentAt,
      until: sentAt + holdsFor,
      at,
      numbers: Float64Array.from(numbers),
    };
  }

  /** The numbers of a refusal that holds now; undefined without one. */
  refused(cost, now) {
    const refusal = this.#refusal;
    if (refusal === null) return undefined;
    const isOver = now >= refusal.until || now < refusal.sentAt;
    if (isOver) this.#refusal = null;
    if (isOver || cost < refusal.cost) return undefined;
    const passed = Math.max(0, now - refusal.at);
    return refusal.numbers.map((number, i) =>
      isDuration(i) ? Math.max(0, Math.ceil(number - passed)) : number,
    );
  }

  forgetRefusal() {
    this.forgettings += 1;
    this.#refusal = null;
  }
}

module.exports = { LeasedId, NONE, TRUSTED };
