// The requests about ids that lease: what is settled, asked and wanted of an id goes to the server together.
'use strict';

const { clearTimeout, setTimeout } = require('node:timers'); // as they are now: fake timers of tests must not stop them
const { randomBytes } = require('node:crypto');
const { NUMBERS } = require('../../../base/decision');
const { OPERATIONS } = require('../../remote/operations');
const failures = require('../failures');
const { NONE, TRUSTED } = require('./leased-id');

/** As in leases.lua. */
const GUARD_MS = 1000;

/** Round trips longer than this part of a lease leave too little of it. */
const SLOW = 1 / 2;

/** While they are that long, an id asks for a lease once in so many of them: leases may be what makes them short. */
const SELDOM = 4;

const LOST = Number.NaN; // in place of the moment of uses that the server did not record as such

/** A request about one id, from when it is planned until all of its calls have ended. */
class Request {
  /** Whether a lease is asked for, and is really wanted when it is sent. */
  asks = false;
  wants = false;
  /** Whether what it is granted is given back at once. */
  isRevoked = false;
  isSent = false;
  /** How many permits it brought for the calls that wait; infinity if a refusal answers them. */
  brought = 0;
  /** The attempts in it that have not ended. */
  attempts = new Set();
  /** Called when it has ended. */
  listeners = [];
  /** `forgettings` of the id when this was sent. */
  forgettings = 0;
  /** How many of its calls have not ended. */
  pending = 0;

  /** Whether attempts have to wait for it: not for one that brings no lease. */
  get isOrdered() {
    return !this.isSent || this.wants;
  }
}

class Requests {
  /** Permits since the start. */
  leased = 0;
  returned = 0;
  #ask;
  #length;
  #longestWindow;
  #readClocks;
  #serve;
  #holder;
  #lastNumber = 0;
  /** How long the latest one took, in ms. */
  #roundTrip = 0;
  #planned = [];
  /** The ids whose requests have not ended; those with a lease, the earliest first. */
  #unended = new Set();
  #open = new Set();
  #timer;
  #isClosing = false;
  #ended = () => {};

  /**
   * @param {object} of `ask` of the backend; `length` of a lease in ms; readClocks() with the time for the server as
   *   `now`; serve(leased) answers what waits for the request that has ended
   */
  constructor({ ask, length, longestWindow, readClocks, serve }) {
    this.#ask = ask;
    this.#length = length;
    this.#longestWindow = longestWindow;
    this.#readClocks = readClocks;
    this.#serve = serve;
    const bytes = randomBytes(8);
    this.#holder = [bytes.readUInt32LE(0), bytes.readUInt32LE(4)];
  }

  set longestWindow(ms) {
    this.#longestWindow = ms;
  }

  /** Whether a lease is worth asking for: not often if it would be over, or nearly, when its grant arrives. */
  isTimeToAsk(leased, now) {
    const isSlow = this.#roundTrip > this.#length * SLOW;
    return !isSlow || Math.abs(now - leased.askedAt) >= SELDOM * this.#roundTrip;
  }

  get openLeases() {
    return this.#open.size;
  }

  /** Makes an attempt that is part of no request. */
  askAlone(call) {
    const { steady } = this.#readClocks();
    const done = (failed, numbers) => {
      if (failed === null) this.#roundTrip = this.#readClocks().steady - steady;
      call.done(failed, numbers);
    };
    this.#ask({ ...call, done });
  }

  /**
   * Everything about the id that is to be sent goes at the end of this microtask's turn. While a request is on its way,
   * an open lease is settled with it.
   */
  plan(leased, asks) {
    const { request } = leased;
    if (request?.isSent) {
      const settled = this.#close(leased, request);
      this.#lease(leased, request, { ...this.#readClocks() }, { settled });
      return;
    }
    if (request === null) {
      leased.request = new Request();
      this.#unended.add(leased);
      if (this.#planned.push(leased) === 1) queueMicrotask(() => this.flush());
    }
    leased.request.asks ||= asks;
  }

  flush() {
    const planned = this.#planned;
    this.#planned = [];
    for (const leased of planned) this.#send(leased);
  }

  #send(leased) {
    const { request } = leased;
    const sentAt = { ...this.#readClocks() };
    request.isSent = true;
    request.forgettings = leased.forgettings;
    request.pending += 1; // until all calls are made
    for (const number of leased.givenUp.splice(0)) {
      this.#lease(leased, request, sentAt, { settled: { number, unused: 0, uses: [], ends: 0 } });
    }
    const settled = this.#close(leased, request);
    request.wants =
      request.asks &&
      leased.wanted > 0 &&
      this.isTimeToAsk(leased, sentAt.steady) &&
      !this.#isRefusing(leased, request);
    if (request.wants) leased.askedAt = sentAt.steady;
    const wanted = request.wants ? ++this.#lastNumber : NONE;
    leased.waiting = leased.waiting.filter(({ isPending }) => isPending);
    const [first, ...others] = leased.waiting.splice(0, leased.countToSend(request.wants));
    const isAtOnce = others.length === 0;
    if (settled !== undefined || (wanted !== NONE && isAtOnce)) {
      const own = { settled, wanted: isAtOnce ? wanted : NONE, attempt: first };
      this.#lease(leased, request, sentAt, own);
    } else if (first !== undefined) {
      this.#attempt(leased, request, sentAt, first);
    }
    for (const call of others) this.#attempt(leased, request, sentAt, call);
    if (wanted !== NONE && !isAtOnce) this.#lease(leased, request, sentAt, { wanted });
    this.#end(leased, request);
  }

  /** The lease that is open, which ends here before this is sent. */
  #close(leased, request) {
    if (leased.number === NONE) return undefined;
    this.#open.delete(leased);
    return leased.close(request);
  }

  #attempt(leased, request, sentAt, call) {
    request.pending += 1;
    request.attempts.add(call);
    const done = (failed, numbers) => {
      if (failed === null) this.#roundTrip = this.#readClocks().steady - sentAt.steady;
      this.#answer(leased, request, sentAt, call, failed, numbers);
      this.#end(leased, request);
    };
    this.#ask({ ...call, isFull: true, done });
  }

  /** Ends an attempt unless close() has. */
  #answer(leased, request, sentAt, call, failed, numbers) {
    if (!request.attempts.delete(call)) return;
    const isRefusal = failed === null && numbers[NUMBERS.BLOCKED] !== 0;
    if (isRefusal && leased.wanted > 0 && request.forgettings === leased.forgettings) {
      leased.refuse(call.cost, numbers, sentAt.steady, this.#readClocks().steady);
      request.brought = Number.POSITIVE_INFINITY;
    }
    call.done(failed, numbers);
  }

  /** Settles a lease, makes an attempt, and asks for the lease with the number `wanted`. */
  #lease(leased, request, sentAt, { settled, wanted = NONE, attempt }) {
    const uses = settled?.uses.filter(({ cost }) => cost > 0) ?? [];
    const ages = uses.map(({ at }) => {
      return Math.floor(Math.max(0, sentAt.steady - at) * TRUSTED * 1000);
    });
    const cost = attempt?.cost ?? 0;
    const longestWindow = this.#longestWindow;
    const amounts = Float64Array.of(
      ...this.#holder,
      this.#length * 1000,
      settled?.number ?? NONE,
      wanted,
      wanted === NONE ? 0 : leased.wanted,
      cost,
      ...uses.flatMap((one, i) => [ages[i], one.cost]),
    );
    request.pending += 1;
    if (attempt !== undefined) request.attempts.add(attempt);
    const done = (failed, numbers) => {
      if (failed === null) {
        const { steady } = this.#readClocks();
        this.#roundTrip = steady - sentAt.steady;
        // The reply to a settlement may come after that to a grant.
        if (wanted !== NONE || leased.number === NONE) leased.show(numbers, steady);
        this.#settled(settled, uses, ages, longestWindow, numbers);
        this.#granted(leased, request, sentAt, wanted, numbers);
      } else {
        for (const one of uses) one.moment = LOST;
        if (wanted !== NONE) leased.giveUp(wanted);
      }
      if (attempt !== undefined) this.#answer(leased, request, sentAt, attempt, failed, numbers);
      this.#end(leased, request);
    };
    const { id } = leased;
    this.#ask({ operation: OPERATIONS.LEASE, id, now: sentAt.now, amounts, done });
  }

  /** What was too old for the server to record cannot be taken back later. */
  #settled(settled, uses, ages, longestWindow, numbers) {
    const isKnown = numbers.at(-1) === 1;
    const now = numbers[NUMBERS.AT];
    for (const [i, one] of uses.entries()) {
      const moment = Math.min(now - ages[i], settled.ends + GUARD_MS * 1000);
      one.moment = isKnown && now - moment < longestWindow * 1000 ? moment : LOST;
      one.generation = numbers[NUMBERS.GENERATION];
    }
    if (isKnown) this.returned += settled.unused;
  }

  /** Whether a lease is not wanted any more. */
  #isRefusing({ isForgotten }, { isRevoked }) {
    return isRevoked || isForgotten || this.#isClosing;
  }

  #granted(leased, request, sentAt, wanted, numbers) {
    const permits = numbers.at(-2);
    if (permits === 0) return;
    this.leased += permits;
    if (this.#isRefusing(leased, request)) {
      const settled = { number: wanted, unused: permits, uses: [], ends: 0 };
      this.#lease(leased, request, { ...this.#readClocks() }, { settled });
      return;
    }
    request.brought = Math.max(request.brought, permits);
    leased.open(wanted, permits, numbers[NUMBERS.AT], sentAt);
    this.#open.add(leased);
    if (this.#timer === undefined) this.#arm();
  }

  #end(leased, request) {
    request.pending -= 1;
    if (request.pending > 0) return;
    leased.request = null;
    if (request.wants) leased.brought = request.brought;
    this.#unended.delete(leased);
    for (const listener of request.listeners) listener();
    this.#serve(leased);
    if (this.#isClosing && this.#unended.size === 0) this.#ended();
  }

  /** What the id has, or is granted, is given back. */
  revoke(leased) {
    if (leased.request !== null) leased.request.isRevoked = true;
    if (leased.number === NONE) return;
    leased.isRevoked = true; // also in this turn, at whose end it goes
    this.plan(leased, false);
  }

  /** The server has forgotten the lease, or will: it is not settled. */
  drop(leased) {
    if (leased.request !== null) leased.request.isRevoked = true;
    const dropped = this.#close(leased, null);
    for (const one of dropped?.uses ?? []) one.moment = LOST;
  }

  /** The timer settles leases that have ended, used or not. It does not keep the process alive. */
  #arm() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [first] = this.#open;
    if (first === undefined || this.#isClosing) return;
    const passed = this.#readClocks().steady - first.sentAt.steady;
    // Not before the end, or it would settle before the next attempt does.
    const ms = Math.min(Math.max(1, Math.ceil(this.#length - passed)), this.#length);
    this.#timer = setTimeout(() => this.#onTime(), ms);
    this.#timer.unref();
  }

  #onTime() {
    const now = this.#readClocks();
    for (const leased of this.#open) {
      const age = leased.age(now);
      if (age < 0) continue; // by a user's clock that has stepped back
      if (age < this.#length) break;
      if (age > this.#length + GUARD_MS + this.#longestWindow) this.drop(leased);
      else this.plan(leased, false);
    }
    this.flush();
    this.#arm();
  }

  /** Fails what waits, and promises that all leases are given back. */
  close() {
    this.#isClosing = true;
    clearTimeout(this.#timer);
    for (const leased of this.#open) this.plan(leased, false);
    const failed = failures.closedMeanwhile();
    for (const leased of this.#unended) {
      const calls = [...leased.request.attempts, ...leased.waiting];
      leased.request.attempts.clear();
      leased.waiting = [];
      for (const call of calls) call.done(failed);
    }
    const ended = new Promise((resolve) => {
      this.#ended = resolve;
    });
    this.flush();
    return this.#unended.size === 0 ? Promise.resolve() : ended;
  }
}

module.exports = { Requests };
