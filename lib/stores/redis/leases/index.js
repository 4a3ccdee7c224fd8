// Leases: a backend on Redis that takes permits of an id ahead and decides on them here. docs/design/leases.md has the
// protocol.
'use strict';

const { RECORDS, decisionLength } = require('../../../base/decision');
const { Deadlines } = require('../../remote/deadlines');
const { OPERATIONS, isAttempt } = require('../../remote/operations');
const { clocks } = require('../clocks');
const failures = require('../failures');
const { LeasedId, NONE } = require('./leased-id');
const { LeasedIds } = require('./leased-ids');
const { Requests } = require('./requests');

/** The numbers of an allowed decision as far as a brief one has them. */
const ALLOWED = new Float64Array(2);

/** How many ids that nobody asks for are forgotten for each new one. */
const FORGOTTEN_AT_ONCE = 2;

/** An attempt may need so many calls. */
const CALLS_OF_AN_ATTEMPT = 3;
const MOST_OF_ONE_TURN = 1000;

const longestOf = (windows) => Math.max(...windows.map(({ interval }) => interval));

/** A backend of remote/store.js in front of a RedisBackend. */
class Leases {
  #backend;
  #length;
  #windows;
  #maxKeys;
  /** The latest times: one object, because a new one for each call takes longer than the rest. */
  #times = { boot: 0, steady: 0, wall: 0, now: undefined };
  #readNow = () => undefined;
  #ids = new LeasedIds();
  #requests;
  /** Of the calls that wait for a request, or are part of one. */
  #deadlines;
  #local = 0;

  constructor(backend, { lease, windows, maxKeys }) {
    this.#backend = backend;
    this.detectedClientType = backend.detectedClientType;
    this.#length = lease;
    this.#windows = windows;
    this.#maxKeys = maxKeys;
    const timedOut = failures.timeout(backend.commandTimeout);
    this.#deadlines = new Deadlines(backend.commandTimeout, ({ fail }) => fail(timedOut));
    this.#requests = new Requests({
      ask: (call) => backend.ask(call),
      length: lease,
      longestWindow: longestOf(windows),
      readClocks: () => this.#readClocksAgain(),
      serve: (leased) => this.#serve(leased),
    });
  }

  /** @param {() => number | undefined} readNow the time in us by the user's clock, which may throw; undefined without */
  useClock(readNow) {
    this.#readNow = readNow;
  }

  /** `now` is the time in us by the user's clock, undefined without one. */
  #readClocks(now) {
    const times = this.#times;
    times.now = now;
    if (now === undefined) {
      times.boot = clocks.boot();
      times.steady = clocks.steady();
      times.wall = clocks.wall();
    } else {
      times.boot = now / 1000;
      times.steady = times.boot;
      times.wall = times.boot;
    }
    return times;
  }

  /** Outside of a call, which brings the user's time. */
  #readClocksAgain() {
    let { now } = this.#times;
    try {
      now = this.#readNow();
    } catch {
      // stats().errors counts it, and the time of the latest call goes on
    }
    return this.#readClocks(now);
  }

  /** The numbers of a decision that needs no reply, or undefined. As in remote/store.js. */
  answer(id, cost, records, isFull, now) {
    const leased = this.#ids.get(id);
    if (leased === undefined || records === RECORDS.RECORD || cost === 0) return undefined;
    const times = this.#readClocks(now);
    const isFirst = leased.waiting.length === 0; // those that wait are served before
    const hasRoom = isFirst && leased.balance >= cost && !leased.hasEnded(times);
    if (records === RECORDS.NOTHING) {
      if (!hasRoom) return undefined;
      return leased.allowed(leased.balance - cost, times.steady, this.#windows, 0);
    }
    const numbers = hasRoom
      ? this.#use(leased, cost, isFull, times.steady)
      : leased.refused(cost, times.steady);
    if (numbers === undefined) return undefined;
    this.#ids.touch(leased);
    leased.demand(cost, times.steady);
    this.#local++;
    return numbers;
  }

  #use(leased, cost, isFull, now) {
    const uses = leased.use(cost, now);
    if (leased.balance === 0) this.#requests.plan(leased, true);
    return isFull ? leased.allowed(leased.balance, now, this.#windows, uses) : ALLOWED;
  }

  ask(call) {
    const { operation, receipt } = call;
    if (isAttempt(operation) && call.cost !== 0) this.#attempt(call);
    else if (operation === OPERATIONS.SETTLE && typeof receipt.at === 'object') this.#settle(call);
    else this.#askOther(call);
  }

  #attempt(call) {
    const { steady } = this.#readClocks(call.now);
    const leased = this.#ids.get(call.id) ?? this.#add(call.id, steady);
    this.#ids.touch(leased);
    leased.demand(call.cost, steady);
    const isInUse =
      leased.number !== NONE || leased.waiting.length > 0 || leased.request?.isOrdered === true;
    const isWanted = leased.wanted > 0;
    if (isInUse || (isWanted && this.#requests.isTimeToAsk(leased, steady)))
      this.#wait(leased, call);
    else if (isWanted) this.#requests.askAlone(call);
    else this.#backend.ask(call);
  }

  #wait(leased, call) {
    const { maxQueue } = this.#backend;
    if (this.#deadlines.pending >= maxQueue) {
      queueMicrotask(() => call.done(failures.queueFull(maxQueue)));
      return;
    }
    const waiting = { ...call, fail: call.done, deadline: 0, isPending: false };
    waiting.done = (failed, numbers) => {
      if (this.#deadlines.end(waiting)) call.done(failed, numbers);
    };
    this.#deadlines.begin(waiting);
    leased.waiting.push(waiting);
    if (!leased.request?.isSent) this.#requests.plan(leased, true);
  }

  #add(id, now) {
    for (let i = 0; i < FORGOTTEN_AT_ONCE && this.#ids.oldest?.isUnseen(now); i++) {
      this.#forget(this.#ids.oldest);
    }
    while (this.#ids.size >= this.#maxKeys) this.#forget(this.#ids.oldest);
    const leased = new LeasedId(id, this.#length);
    this.#ids.add(leased);
    return leased;
  }

  #forget(leased) {
    this.#ids.delete(leased);
    this.#requests.revoke(leased);
  }

  /** Answers the calls that have waited for a request, in their order, as far as a lease or a refusal allows. */
  #serve(leased) {
    while (leased.waiting.length > 0) {
      const [{ cost, isFull, isPending, done }] = leased.waiting;
      if (!isPending) {
        leased.waiting.shift();
        continue;
      }
      const times = this.#readClocksAgain();
      let numbers;
      if (leased.balance >= cost && !leased.hasEnded(times)) {
        numbers = this.#use(leased, cost, isFull, times.steady);
      } else {
        numbers = leased.refused(cost, times.steady);
      }
      if (numbers === undefined) break;
      leased.waiting.shift();
      this.#local++;
      done(null, numbers);
    }
    if (leased.waiting.length > 0) this.#requests.plan(leased, true);
  }

  #askOther(call) {
    const { operation, id } = call;
    const clears = operation === OPERATIONS.CLEAR;
    const blocks = operation === OPERATIONS.BLOCK && call.ms > 0;
    const leased = this.#ids.get(id);
    if (clears && leased !== undefined) this.#requests.drop(leased);
    if (blocks && leased !== undefined) this.#requests.revoke(leased);
    this.#requests.flush(); // what was called before is decided before
    if (operation === OPERATIONS.PEEK) {
      this.#backend.ask(call);
      return;
    }
    leased?.forgetRefusal();
    const done = (failed, result) => {
      const known = this.#ids.get(id);
      // A lease that was granted meanwhile may be from before the call.
      if ((clears || blocks) && known !== undefined) this.#requests.revoke(known);
      known?.forgetRefusal();
      call.done(failed, result);
    };
    this.#backend.ask({ ...call, done });
  }

  /** Settles a decision on a lease. */
  #settle(call) {
    const { receipt, actual, done } = call;
    const { at: uses, cost } = receipt;
    const { leased } = uses;
    if (uses.request === undefined) {
      const change = actual - cost;
      const isOverdraft = change > leased.balance;
      uses.cost += change;
      leased.balance = Math.max(0, leased.balance - change);
      leased.forgetRefusal();
      if (!isOverdraft) {
        queueMicrotask(() => done(null, true));
        return;
      }
      this.#requests.revoke(leased); // a refund must not open it again
      this.#whenSent(uses, () => done(null, !Number.isNaN(uses.moment)));
    } else if (uses.moment === undefined) {
      this.#whenSent(uses, () => this.#settle(call));
    } else if (Number.isNaN(uses.moment)) {
      queueMicrotask(() => done(null, false));
    } else {
      const recorded = { ...receipt, at: uses.moment, generation: uses.generation };
      this.#askOther({ ...call, receipt: recorded });
    }
  }

  /** Calls back once it is known whether the server has recorded these Uses. */
  #whenSent(uses, callback) {
    if (uses.moment !== undefined) callback();
    else (uses.request ?? uses.leased.request).listeners.push(() => this.#whenSent(uses, callback));
  }

  async attemptMany(ids, now) {
    const length = decisionLength(this.#windows.length);
    const all = new Array(ids.length * length);
    const most = Math.min(
      MOST_OF_ONE_TURN,
      Math.max(1, Math.floor(this.#backend.maxQueue / CALLS_OF_AN_ATTEMPT)),
    );
    for (let first = 0; first < ids.length; first += most) {
      const turn = ids.slice(first, first + most);
      const attempts = turn.map(async (id, i) => {
        const numbers = await this.#attemptFully(id, now);
        for (let n = 0; n < length; n++) all[(first + i) * length + n] = numbers[n];
      });
      await Promise.all(attempts);
    }
    return all;
  }

  #attemptFully(id, now) {
    return new Promise((resolve, reject) => {
      const known = this.answer(id, 1, RECORDS.ATTEMPT, true, now);
      if (known !== undefined) {
        resolve(known);
        return;
      }
      // A copy, because they are valid in the callback only.
      const done = (failed, numbers) =>
        failed === null ? resolve(Array.from(numbers)) : reject(failed);
      this.ask({ operation: OPERATIONS.ATTEMPT, id, cost: 1, isFull: true, now, done });
    });
  }

  /** Leases that were given stay valid. */
  setLimits(next) {
    this.#requests.flush(); // what waits was called under the old ones
    this.#backend.setLimits(next);
    this.#windows = next.windows;
    this.#requests.longestWindow = longestOf(next.windows);
    for (const leased of this.#ids) leased.forgetRefusal();
  }

  async clearAll() {
    for (const leased of this.#ids) {
      this.#requests.drop(leased);
      leased.forgetRefusal();
    }
    try {
      await this.#backend.clearAll();
    } finally {
      // What came meanwhile may be from before its key went.
      for (const leased of this.#ids) {
        this.#requests.revoke(leased);
        leased.forgetRefusal();
      }
    }
  }

  partOf(id) {
    return this.#backend.partOf(id);
  }

  isOutage(failed) {
    return this.#backend.isOutage(failed);
  }

  ownedBy(owner) {
    this.#backend.ownedBy(owner);
  }

  stats() {
    return this.#backend.stats();
  }

  leaseStats() {
    const { openLeases, leased, returned } = this.#requests;
    return { leases: openLeases, leased, returned, local: this.#local };
  }

  async close() {
    const settled = this.#requests.close();
    this.#backend.flush();
    await settled;
    await this.#backend.close();
  }
}

module.exports = { Leases };
